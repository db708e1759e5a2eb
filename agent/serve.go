package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"netdelta/engine"
	"netdelta/internal/machine"
	"netdelta/testbed/rpc"
	"netdelta/workload"
)

// Serve answers requests from in on out until in ends, as rpc.Serve does, also while one hangs.
func Serve(in io.Reader, out io.Writer, workloads []workload.Workload) error {
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{ctx: ctx, workloads: workloads, sessions: map[int]session{}}
	defer s.grips.release()
	defer cancel()
	return rpc.Serve(in, out, true, s.handle)
}

// session is what this agent holds open, one end of a workload or a target: exactly one of them is set.
type session struct {
	server engine.Server
	client engine.Client
	target workload.Held
}

func (s session) close() error {
	switch {
	case s.server != nil:
		return s.server.Close()
	case s.target != nil:
		return s.target.Close()
	}
	return s.client.Close()
}

type server struct {
	ctx       context.Context
	workloads []workload.Workload
	sessions  map[int]session
	next      int
	burners   burners
	grips     grips
}

func (s *server) handle(r rpc.Request) (any, error) {
	switch r.Op {
	case opServe:
		return rpc.Call(r, s.serve)
	case opDial:
		return rpc.Call(r, s.dial)
	case opBurst:
		return rpc.Call(r, s.burst)
	case opCollect:
		return rpc.Call(r, s.collect)
	case opTotals:
		return rpc.Call(r, s.totals)
	case opThreads:
		return rpc.Call(r, s.threads)
	case opServeCluster:
		return rpc.Call(r, s.serveCluster)
	case opDialCluster:
		return rpc.Call(r, s.dialCluster)
	case opHealth:
		return rpc.Call(r, s.health)
	case opRestart:
		return rpc.Call(r, s.restart)
	case opVolley:
		return rpc.Call(r, s.volley)
	case opHold:
		return rpc.Call(r, s.hold)
	case opDialTarget:
		return rpc.Call(r, s.dialTarget)
	case opClear:
		return rpc.Call(r, s.clear)
	case opClose:
		return rpc.Call(r, s.end)
	}
	return s.handleHere(r)
}

// handleHere carries out what is about the agent and its machine, and no session.
func (s *server) handleHere(r rpc.Request) (any, error) {
	switch r.Op {
	case rpc.OpHello:
		return Hello{Greeting: rpc.Greet(), PID: os.Getpid(), Place: place()}, nil
	case opClock:
		return Reading{Received: r.Received, Answered: Now()}, nil
	case opBurn:
		return rpc.Call(r, func(b Burning) (struct{}, error) { return struct{}{}, s.burners.burn(b) })
	case opRest:
		s.burners.rest()
		return struct{}{}, nil
	case opCounters:
		return machine.ReadCounters()
	case opMachine:
		return machine.Describe(machine.Version())
	}
	return nil, r.Unknown()
}

func (s *server) serve(a serveArgs) (int, error) {
	w, err := s.find(a.Workload)
	if err != nil {
		return 0, err
	}
	if w.Serve == nil {
		return 0, fmt.Errorf("workload %s is served by a cluster", w.Name)
	}
	ctx, cancel := s.within(a.Within)
	defer cancel()
	srv, err := w.Serve(ctx, a.Params, a.Listen, a.CPU)
	if err != nil {
		return 0, err
	}
	return s.add(session{server: srv}), nil
}

func (s *server) dial(a dialArgs) (int, error) {
	w, err := s.find(a.Workload)
	if err != nil {
		return 0, err
	}
	if w.Dial == nil {
		return 0, fmt.Errorf("workload %s is served by a cluster", w.Name)
	}
	ctx, cancel := s.within(a.Within)
	defer cancel()
	c, err := w.Dial(ctx, a.Params, a.Local, a.Server, a.CPU)
	if err != nil {
		return 0, err
	}
	return s.add(session{client: c}), nil
}

// hung makes an error match ErrHung if it is that of a burst whose deadline has passed.
func hung(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &hungError{err}
	}
	return err
}

func (s *server) burst(a burstArgs) (engine.Burst, error) {
	c, err := s.client(a.Session)
	if err != nil {
		return engine.Burst{}, err
	}
	b, err := c.Burst(a.Spec)
	return b, hung(err)
}

func (s *server) collect(a collectArgs) (engine.Totals, error) {
	c, err := s.client(a.Session)
	if err != nil {
		return engine.Totals{}, err
	}
	return c.Collect(a.DropLast)
}

func (s *server) totals(a sessionArgs) (engine.Totals, error) {
	if e := s.sessions[a.Session]; e.server != nil {
		return e.server.Totals(), nil
	}
	return engine.Totals{}, fmt.Errorf("session %d is not a server", a.Session)
}

// end closes a session; one that is not open is none.
func (s *server) end(a sessionArgs) (struct{}, error) {
	e, ok := s.sessions[a.Session]
	if !ok {
		return struct{}{}, nil
	}
	delete(s.sessions, a.Session)
	return struct{}{}, e.close()
}

// threaded is an end of a workload that knows which threads it runs on.
type threaded interface{ Threads() []int }

// threads are those of a session; an end that doesn't know has none.
func (s *server) threads(a sessionArgs) ([]int, error) {
	e, found := s.sessions[a.Session]
	if !found {
		return nil, fmt.Errorf("session %d is not open", a.Session)
	}
	if t, ok := e.server.(threaded); ok {
		return t.Threads(), nil
	}
	if t, ok := e.client.(threaded); ok {
		return t.Threads(), nil
	}
	return nil, nil
}

func (s *server) add(e session) int {
	s.next++
	s.sessions[s.next] = e
	return s.next
}

func (s *server) client(id int) (engine.Client, error) {
	if e := s.sessions[id]; e.client != nil {
		return e.client, nil
	}
	return nil, fmt.Errorf("session %d is not a client", id)
}

func (s *server) find(name string) (workload.Workload, error) {
	for _, w := range s.workloads {
		if w.Name == name {
			return w, nil
		}
	}
	return workload.Workload{}, errors.New("unknown workload " + name)
}
