package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"netdelta/engine"
	"netdelta/internal/machine"
	"netdelta/internal/procfile"
	"netdelta/internal/softirq"
	"netdelta/testbed/rpc"
	"netdelta/workload"
)

// memory is where an agent's garbage collector steps in: far above what bursts need, so that it never does within one.
const memory = 256 << 20

// Become makes this process an agent on its standard input and output, and ends it when its input ends: also while a burst
// is under way, whose result can no longer be delivered.
func Become(workloads []workload.Workload) {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(memory)
	if err := Serve(os.Stdin, os.Stdout, workloads); err != nil {
		fmt.Fprintln(os.Stderr, "netdelta agent:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Asked says whether this process was started as an agent. Programs other than netdelta that start agents of their own
// call it first thing.
func Asked() bool { return os.Args[len(os.Args)-1] == Subcommand }

// place is the same for two processes if and only if a process number means the same process to both: they run under the
// same boot of a kernel and in the same PID namespace. It is "" where that can't be told.
func place() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, nsErr := os.Readlink("/proc/self/ns/pid")
	if err != nil || nsErr != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + namespace
}

// Serve answers requests from in on out until in ends, as rpc.Serve does, also while one hangs.
func Serve(in io.Reader, out io.Writer, workloads []workload.Workload) error {
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{ctx: ctx, workloads: workloads, sessions: map[int]session{}}
	defer s.held.release()
	defer cancel()
	operations := s.operations()
	return rpc.Serve(in, out, true, func(r rpc.Request) (any, error) {
		if carryOut, known := operations[r.Op]; known {
			return carryOut(r)
		}
		return nil, r.Unknown()
	})
}

// session is what this agent holds open, one end of a workload, a target, or connections: exactly one of them is set.
type session struct {
	server engine.Server
	client engine.Client
	target workload.Held
	files  []int // connections that another agent takes over
}

func (s session) close() error {
	switch {
	case s.server != nil:
		return s.server.Close()
	case s.target != nil:
		return s.target.Close()
	case s.client != nil:
		return s.client.Close()
	}
	return engine.CloseAll(s.files)
}

type server struct {
	ctx       context.Context
	workloads []workload.Workload
	sessions  map[int]session
	next      int
	burners   burners
	held      heldTargets
	sweeps    sweeps
}

// operation carries out one kind of request.
type operation func(rpc.Request) (any, error)

// operations are all that an agent does.
func (s *server) operations() map[string]operation {
	cards := sync.OnceValue(machine.CardInterrupts)
	return map[string]operation{
		opServe:        s.opens(serve),
		opDial:         s.opens(connect),
		opServeCluster: s.opens(serveCluster),
		opDialCluster:  s.opens(dialCluster),
		opDialTarget:   s.opens(dialTarget),
		opConnect:      withWorkload(s, s.open),
		opDisconnect:   takes(s.disconnect),
		opReconnect:    takes(s.reconnect),
		opHold:         withWorkload(s, s.hold),
		opClear:        withWorkload(s, clearTarget),

		opBurst:   takes(s.burst),
		opSweep:   takes(s.sweep),
		opBurstAt: takes(s.burstAt),
		opCollect: takes(s.collect),
		opTotals:  takes(s.totals),
		opSpent:   takes(s.spent),
		opThreads: takes(s.threads),
		opHealth:  takes(s.health),
		opRestart: takes(s.restart),
		opClose:   takes(s.end),

		rpc.OpHello: func(rpc.Request) (any, error) {
			return Hello{Greeting: rpc.Greet(), PID: os.Getpid(), Place: place()}, nil
		},
		opClock:    func(r rpc.Request) (any, error) { return Reading{Received: r.Received, Answered: Now()}, nil },
		opCounters: func(rpc.Request) (any, error) { return machine.ReadCounters(cards()) },
		opMachine:  describe,
		opBurn:     takes(func(b Burning) (any, error) { return nil, s.burners.burn(b) }),
		opRest:     func(rpc.Request) (any, error) { s.burners.rest(); return nil, nil },
	}
}

// describe describes the machine.
func describe(rpc.Request) (any, error) {
	about, err := machine.Describe(machine.Version())
	if cpus, unknown := machine.AllowedCPUs(); err == nil && unknown == nil {
		if how, err := softirq.Find(cpus[0]); err == nil { // else it stays unknown
			about.SoftirqTime = string(how)
		}
	}
	return about, err
}

// takes is an operation with arguments.
func takes[A, R any](f func(A) (R, error)) operation {
	return func(r rpc.Request) (any, error) { return rpc.Call(r, f) }
}

// withWorkload is an operation on a workload, which has to be over within a time.
func withWorkload[R any](s *server, f func(context.Context, workload.Workload, openArgs) (R, error)) operation {
	return takes(func(a openArgs) (none R, err error) {
		w := workload.Find(s.workloads, a.Workload)
		if w.Name == "" {
			return none, errors.New("unknown workload " + a.Workload)
		}
		ctx, cancel := s.within(a.Within)
		defer cancel()
		return f(ctx, w, a)
	})
}

// opens is an operation that opens an end of a workload. It answers the session.
func (s *server) opens(open func(context.Context, workload.Workload, openArgs) (session, error)) operation {
	return withWorkload(s, func(ctx context.Context, w workload.Workload, a openArgs) (int, error) {
		opened, err := open(ctx, w, a)
		if err != nil {
			return 0, err
		}
		return s.add(opened), nil
	})
}

// within is a context that ends after a time, or with the server where none is given.
func (s *server) within(d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return s.ctx, func() {}
	}
	return context.WithTimeout(s.ctx, d)
}

func serve(ctx context.Context, w workload.Workload, a openArgs) (e session, err error) {
	if w.Serve == nil {
		return e, fmt.Errorf("workload %s is served by a cluster", w.Name)
	}
	if a.Shared {
		ctx = engine.Shared(ctx)
	}
	e.server, err = w.Serve(ctx, a.Params, a.Local, a.CPU)
	return e, err
}

func connect(ctx context.Context, w workload.Workload, a openArgs) (e session, err error) {
	if w.Dial == nil {
		return e, fmt.Errorf("workload %s is served by a cluster", w.Name)
	}
	err = over(ctx, a.Sockets, func(ctx context.Context) (err error) {
		e.client, err = w.Dial(ctx, a.Params, a.Local, a.Server, a.CPU)
		return err
	})
	return e, err
}

func clusterOf(w workload.Workload, a openArgs) (*workload.Cluster, error) {
	c := w.Demands(a.Params).Cluster
	if c == nil {
		return nil, fmt.Errorf("workload %s has no cluster with these parameters", w.Name)
	}
	return c, nil
}

func serveCluster(ctx context.Context, w workload.Workload, a openArgs) (e session, err error) {
	c, err := clusterOf(w, a)
	if err == nil {
		e.server, err = c.Serve(ctx, a.Params, a.Place)
	}
	return e, err
}

func dialCluster(ctx context.Context, w workload.Workload, a openArgs) (e session, err error) {
	c, err := clusterOf(w, a)
	if err == nil {
		e.client, err = c.Dial(ctx, a.Params, a.Place)
	}
	return e, err
}

// hung makes an error match ErrHung if it says that the deadline of a burst has passed.
func hung(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &hungError{err}
	}
	return err
}

func (s *server) burst(a sessionArgs) (engine.Burst, error) {
	c, err := s.client(a.Session)
	if err != nil {
		return engine.Burst{}, err
	}
	b, err := c.Burst(a.Spec)
	return b, hung(err)
}

func (s *server) collect(a sessionArgs) (engine.Totals, error) {
	c, err := s.client(a.Session)
	if err != nil {
		return engine.Totals{}, err
	}
	return c.Collect(a.DropLast)
}

func (s *server) totals(a sessionArgs) (engine.Totals, error) {
	served, err := s.serving(a.Session)
	if err != nil {
		return engine.Totals{}, err
	}
	return served.Totals(), nil
}

// spender is a server that knows what it has used.
type spender interface {
	CPU() (time.Duration, error)
}

// spent is what a server says that it has used, or else what all programs have that this agent has started.
func (s *server) spent(a sessionArgs) (Spent, error) {
	served, err := s.serving(a.Session)
	if err != nil {
		return Spent{}, err
	}
	if own, ok := served.(spender); ok {
		used, err := own.CPU()
		return Spent{used, true}, err
	}
	programs, err := procfile.Below(os.Getpid())
	if err != nil {
		return Spent{}, err
	}
	if len(programs) == 0 {
		return Spent{}, errors.New("the server does not tell, and has no programs")
	}
	used, err := procfile.FamilyCPU(programs)
	return Spent{CPU: used}, err
}

// end closes a session. A session that is not open is no error.
func (s *server) end(a sessionArgs) (any, error) {
	e, ok := s.sessions[a.Session]
	if !ok {
		return nil, nil
	}
	delete(s.sessions, a.Session)
	return nil, errors.Join(s.sweeps.forget(a.Session), e.close())
}

// threaded is an end of a workload that knows which threads it runs on.
type threaded interface{ Threads() []int }

// threads are a session's threads; an end that doesn't know them has none.
func (s *server) threads(a sessionArgs) ([]int, error) {
	e, found := s.sessions[a.Session]
	if !found {
		return nil, fmt.Errorf("session %d is not open", a.Session)
	}
	for _, end := range []any{e.server, e.client} {
		if t, ok := end.(threaded); ok {
			return t.Threads(), nil
		}
	}
	return nil, nil
}

func (s *server) health(a sessionArgs) (workload.Health, error) {
	served, err := s.serving(a.Session)
	w, ok := served.(workload.DaemonServer)
	if !ok {
		return workload.Health{}, err
	}
	ctx, cancel := s.within(a.Within)
	defer cancel()
	return w.Health(ctx), nil
}

func (s *server) restart(a sessionArgs) (any, error) {
	served, err := s.serving(a.Session)
	w, ok := served.(workload.DaemonServer)
	if !ok {
		return nil, errors.Join(err, errors.New("there are no daemons to restart"))
	}
	ctx, cancel := s.within(a.Within)
	defer cancel()
	return nil, w.Restart(ctx)
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

func (s *server) serving(id int) (engine.Server, error) {
	if e := s.sessions[id]; e.server != nil {
		return e.server, nil
	}
	return nil, fmt.Errorf("session %d is not a server", id)
}
