package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"netdelta/internal/machine"
	"netdelta/workload"
)

// Serve answers requests from in on out until in ends, which is not an error: the controller is gone or done. The
// requests are carried out one after another in their order; the end of in is noticed even while one hangs, and Serve
// then returns at once, for the caller to end the process.
func Serve(in io.Reader, out io.Writer, workloads []workload.Workload) error {
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{ctx: ctx, workloads: workloads, sessions: map[int]session{}, out: bufio.NewWriter(out)}
	defer s.grips.release()
	requests := make(chan request)
	done := make(chan error, 1)
	go func() { done <- s.loop(requests) }()

	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 64<<10), 1<<20)
	for scanner.Scan() {
		r := request{read: Now()}
		if err := json.Unmarshal(scanner.Bytes(), &r); err != nil {
			cancel()
			return fmt.Errorf("reading a request: %w", err)
		}
		select {
		case requests <- r:
		case err := <-done:
			cancel()
			return err
		}
	}
	cancel()
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("reading requests: %w", err)
	}
	return nil
}

// session is what this agent holds open, one end of a workload or a target: exactly one of them is set.
type session struct {
	server workload.Server
	client workload.Client
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
	out       *bufio.Writer
}

func (s *server) loop(requests <-chan request) error {
	for r := range requests {
		resp := response{ID: r.ID}
		value, err := s.handle(r)
		if err == nil {
			resp.Value, err = json.Marshal(value)
		}
		if err != nil {
			resp.Error, resp.Hung = err.Error(), (r.Op == opBurst || r.Op == opVolley) && errors.Is(err, context.DeadlineExceeded)
		}
		line, err := json.Marshal(resp)
		if err != nil {
			return fmt.Errorf("encoding the answer to %s: %w", r.Op, err)
		}
		if _, err := s.out.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("answering %s: %w", r.Op, err)
		}
		if err := s.out.Flush(); err != nil {
			return fmt.Errorf("answering %s: %w", r.Op, err)
		}
	}
	return nil
}

func (s *server) handle(r request) (any, error) {
	switch r.Op {
	case opServe:
		return call(r.Args, s.serve)
	case opDial:
		return call(r.Args, s.dial)
	case opBurst:
		return call(r.Args, s.burst)
	case opCollect:
		return call(r.Args, s.collect)
	case opTotals:
		return call(r.Args, s.totals)
	case opThreads:
		return call(r.Args, s.threads)
	case opServeCluster:
		return call(r.Args, s.serveCluster)
	case opDialCluster:
		return call(r.Args, s.dialCluster)
	case opHealth:
		return call(r.Args, s.health)
	case opRestart:
		return call(r.Args, s.restart)
	case opVolley:
		return call(r.Args, s.volley)
	case opHold:
		return call(r.Args, s.hold)
	case opDialTarget:
		return call(r.Args, s.dialTarget)
	case opClear:
		return call(r.Args, s.clear)
	case opClose:
		return call(r.Args, s.end)
	}
	return s.handleHere(r)
}

// handleHere carries out what is about the agent and its machine, and no session.
func (s *server) handleHere(r request) (any, error) {
	switch r.Op {
	case opHello:
		return Hello{Version: Version, PID: os.Getpid(), Place: place()}, nil
	case opClock:
		return Reading{Received: r.read, Answered: Now()}, nil
	case opBurn:
		return call(r.Args, func(b Burning) (struct{}, error) { return struct{}{}, s.burners.burn(b) })
	case opRest:
		s.burners.rest()
		return struct{}{}, nil
	case opCounters:
		return machine.ReadCounters()
	case opMachine:
		return machine.Describe(machine.Version())
	}
	return nil, fmt.Errorf("unknown operation %q", r.Op)
}

// call decodes the arguments and carries out the operation.
func call[A, R any](raw json.RawMessage, f func(A) (R, error)) (any, error) {
	var args A
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, fmt.Errorf("decoding arguments: %w", err)
	}
	return f(args)
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

func (s *server) burst(a burstArgs) (workload.Burst, error) {
	c, err := s.client(a.Session)
	if err != nil {
		return workload.Burst{}, err
	}
	return c.Burst(a.Spec)
}

func (s *server) collect(a collectArgs) (workload.Totals, error) {
	c, err := s.client(a.Session)
	if err != nil {
		return workload.Totals{}, err
	}
	return c.Collect(a.DropLast)
}

func (s *server) totals(a sessionArgs) (workload.Totals, error) {
	if e := s.sessions[a.Session]; e.server != nil {
		return e.server.Totals(), nil
	}
	return workload.Totals{}, fmt.Errorf("session %d is not a server", a.Session)
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

func (s *server) client(id int) (workload.Client, error) {
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
