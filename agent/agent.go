package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"netdelta/engine"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/rpc"
)

// ErrHung is matched by the error of a burst that was not over when its deadline had passed: the network, or the other end,
// has let nothing through for all that time.
var ErrHung = errors.New("burst hung")

// hungError makes an error match ErrHung; its words say so already.
type hungError struct{ error }

// kindHung is how an agent says that the error is that of a burst whose deadline has passed.
const kindHung = "hung"

func (e *hungError) Is(target error) bool { return target == ErrHung }
func (e *hungError) Unwrap() error        { return e.error }

// Kind implements rpc.Kinder.
func (e *hungError) Kind() (string, any) { return kindHung, nil }

// Program is how to start the agent: the path of a binary that understands Subcommand, and what its environment needs.
type Program struct {
	Path string
	Args []string // before Subcommand
	Env  []string
	// CPUs holds the processors of the agent's own threads; those of the engines pin themselves.
	CPUs []int
}

// Agent is the controller's end of an agent in a pod. Its methods may be called by several goroutines.
type Agent struct {
	*rpc.Client
	pod   testbed.Pod
	local bool
}

// Start starts an agent in the pod and waits until it has introduced itself.
func Start(ctx context.Context, pod testbed.Pod, p Program) (*Agent, error) {
	args := append(append([]string{}, p.Args...), Subcommand)
	proc, err := pod.Start(ctx, testbed.Command{Path: p.Path, Args: args, CPUs: p.CPUs, Env: append(runtimeEnv(), p.Env...)})
	if err != nil {
		return nil, fmt.Errorf("starting the agent in pod %s: %w", pod.Name(), err)
	}
	a := &Agent{Client: rpc.NewClient("pod "+pod.Name(), proc), pod: pod}
	hello, err := invoke[Hello](ctx, a, rpc.OpHello, nil, greetDeadline)
	if err == nil {
		err = hello.Check()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("greeting the agent in pod %s: %w", pod.Name(), err), a.Close())
	}
	a.local = hello.Place != "" && hello.Place == place() && hello.PID == proc.PID()
	return a, nil
}

// runtimeEnv keeps the Go runtime of an agent out of what it measures: few processors for goroutines, and no signals to
// threads that sit in a system call of the measured loop.
func runtimeEnv() []string {
	env := []string{"GOMAXPROCS=3", "GODEBUG=asyncpreemptoff=1", "GOTRACEBACK=single"}
	// Where the user's cache is: what takes long to make is made once and kept there. What the race detector is told is for tests.
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "GORACE"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Pod is the pod that the agent runs in.
func (a *Agent) Pod() testbed.Pod { return a.pod }

// PID is the number of the agent's process, on this machine if it is Local.
func (a *Agent) PID() int { return a.Process().PID() }

// Local says whether PID is the number of the agent's own process on this machine, by which this program can read what the
// kernel counts of it. An agent of another machine, or in a PID namespace of its own, is behind some other process.
func (a *Agent) Local() bool { return a.local }

// Serve starts the server's side of a workload and returns its session.
func (a *Agent) Serve(ctx context.Context, w string, p result.Params, listen netip.AddrPort, cpu int) (int, error) {
	return a.ServeWithin(ctx, w, p, listen, cpu, 0)
}

// Dial arms the client's side of a workload and returns its session.
func (a *Agent) Dial(ctx context.Context, w string, p result.Params, local, server netip.AddrPort, cpu int) (int, error) {
	return a.DialWithin(ctx, w, p, local, server, cpu, 0)
}

// ServeWithin is Serve for a server that has programs to start, and may take so long; 0 is as Serve.
func (a *Agent) ServeWithin(ctx context.Context, w string, p result.Params, listen netip.AddrPort, cpu int, within time.Duration) (int, error) {
	return invoke[int](ctx, a, opServe, serveArgs{w, p, listen, cpu, within}, startDeadline(within))
}

// DialWithin is Dial for a client that has programs to start, and may take so long; 0 is as Dial.
func (a *Agent) DialWithin(ctx context.Context, w string, p result.Params, local, server netip.AddrPort, cpu int, within time.Duration) (int, error) {
	return invoke[int](ctx, a, opDial, dialArgs{w, p, local, server, cpu, within}, startDeadline(within))
}

// greetDeadline bounds the start of an agent. It takes milliseconds, and seconds in an emulated guest on a busy machine; one that
// can't be started ends, and is not waited for.
const greetDeadline = time.Minute

// dialDeadline bounds the set-up of a session: connecting takes milliseconds, unless the network does not reach.
const dialDeadline = 15 * time.Second

// Burst runs one burst of a client's session. The error of one that outlasts its deadline matches ErrHung; the session is
// then of no more use, and if even the agent does not answer, neither is the agent (rpc.ErrGone).
func (a *Agent) Burst(ctx context.Context, session int, spec engine.BurstSpec) (engine.Burst, error) {
	b, err := invoke[engine.Burst](ctx, a, opBurst, burstArgs{session, spec}, spec.Deadline+time.Second)
	if errors.Is(err, rpc.ErrNoAnswer) {
		err = &hungError{err}
	}
	return b, err
}

// Collect fetches what a client's session summed up since the last Collect.
func (a *Agent) Collect(ctx context.Context, session int, dropLast bool) (engine.Totals, error) {
	return invoke[engine.Totals](ctx, a, opCollect, collectArgs{session, dropLast}, 10*time.Second)
}

// Totals fetches what a server's session saw.
func (a *Agent) Totals(ctx context.Context, session int) (engine.Totals, error) {
	return invoke[engine.Totals](ctx, a, opTotals, sessionArgs{session}, 10*time.Second)
}

// Threads are the numbers of the threads that a session of either end runs on, on the agent's machine; none where its
// workload doesn't say. A server may have a thread for each client: ask when the client is connected.
func (a *Agent) Threads(ctx context.Context, session int) ([]int, error) {
	return invoke[[]int](ctx, a, opThreads, sessionArgs{session}, 10*time.Second)
}

// Drop closes a session.
func (a *Agent) Drop(ctx context.Context, session int) error {
	_, err := invoke[struct{}](ctx, a, opClose, sessionArgs{session}, 5*time.Second)
	return err
}

// invoke is rpc.Do. The error of a burst that hung matches ErrHung.
func invoke[R any](ctx context.Context, a *Agent, op string, args any, deadline time.Duration) (R, error) {
	value, err := rpc.Do[R](ctx, a.Client, op, args, deadline)
	if there, ok := errors.AsType[*rpc.Error](err); ok && there.Kind == kindHung {
		err = &hungError{err}
	}
	return value, err
}
