// Package agent runs workloads inside pods on behalf of a controller.
//
// An agent is this same binary, started in a pod and spoken to over its standard input and output (package rpc). No port is
// opened and no control traffic crosses the network that is measured; every kind of testbed needs only a way to start a process
// in a pod. An agent ends by itself when its standard input is closed.
package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/engine"
	"netdelta/internal/machine"
	"netdelta/internal/native"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/rpc"
	"netdelta/workload"
)

// ErrHung is matched by the error of a burst that was not over when its deadline had passed: the network, or the other end,
// has let nothing through for all that time.
var ErrHung = errors.New("burst hung")

// hungError makes an error match ErrHung; its words say so already.
type hungError struct{ error }

// kindHung is how an agent says that a burst's deadline has passed.
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
	// CPUs holds the processors of the agent's own threads; threads of the engines pin themselves.
	CPUs []int
	// Patience is how long an agent may take to answer, beyond the time of what it was asked to do, before it is given up; 0 is as long
	// as one behind a slow stream may need.
	Patience time.Duration
}

// Agent is the controller's end of an agent in a pod. Its methods may be called by several goroutines.
type Agent struct {
	*rpc.Client
	pod      testbed.Pod
	local    bool
	patience time.Duration // 0 for none that is shorter than usual
}

// Start starts an agent in the pod and waits until it has introduced itself.
func Start(ctx context.Context, pod testbed.Pod, p Program) (*Agent, error) {
	command := func(verb string) testbed.Command {
		return testbed.Command{Path: p.Path, Args: append(append([]string{}, p.Args...), verb), CPUs: p.CPUs, Env: append(runtimeEnv(), p.Env...)}
	}
	proc, err := pod.Start(ctx, command(Subcommand))
	if err != nil {
		return nil, fmt.Errorf("starting the agent in pod %s: %w", pod.Name(), err)
	}
	a := &Agent{Client: rpc.NewClient("pod "+pod.Name(), proc), pod: pod, patience: p.Patience}
	hello, err := rpc.Meet[Hello](ctx, a.Client, pod, command("--version"), a.atMost(greetDeadline))
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
// kernel counts of it. An agent on another machine, or in a PID namespace of its own, is reached through some other process.
func (a *Agent) Local() bool { return a.local }

const (
	// greetDeadline bounds the start of an agent. It takes milliseconds, and seconds in an emulated guest on a busy machine; one that
	// can't be started ends, and is not waited for.
	greetDeadline = time.Minute
	// dialDeadline bounds the set-up of a session: connecting takes milliseconds, unless the network does not reach.
	dialDeadline = 15 * time.Second
	// shortDeadline bounds what takes a millisecond, less a stream over a busy server between.
	shortDeadline = 10 * time.Second
	// releaseWithin is how long it may take to take away what was put into a target.
	releaseWithin = 30 * time.Second
)

// atMost is how long the agent is waited for where it usually is for so long.
func (a *Agent) atMost(usual time.Duration) time.Duration {
	if a.patience > 0 {
		return min(usual, a.patience)
	}
	return usual
}

// ProgramsPatience is by how much more patient an agent's controller is with what programs do that it starts.
const ProgramsPatience = 3

// programs is how long programs are waited for where they usually are for so long; 0 stays 0.
func (a *Agent) programs(usual time.Duration) time.Duration {
	if a.patience > 0 {
		return min(usual, ProgramsPatience*a.patience)
	}
	return usual
}

// late is how much longer than it may take an agent is waited for: it gives up by itself, and then has more to say than one that is
// killed.
func (a *Agent) late() time.Duration { return a.atMost(shortDeadline) }

// open opens an end of a workload and returns its session. Without a time to do so, it may take what one of netdelta's own takes.
func (a *Agent) open(ctx context.Context, op string, args openArgs) (int, error) {
	return invoke[int](ctx, a, op, args, a.bounded(&args))
}

// bounded is how long an agent that opens something is waited for, which then is to give up before.
func (a *Agent) bounded(args *openArgs) time.Duration {
	switch {
	case args.Within > 0:
		return args.Within + a.late()
	case a.patience > 0:
		args.Within = a.patience / 2
		return a.patience
	}
	return dialDeadline
}

// Serve starts the server's side of a workload, for any number of clients, and returns its session.
func (a *Agent) Serve(ctx context.Context, w string, p result.Params, listen netip.AddrPort, cpu int) (int, error) {
	return a.open(ctx, opServe, openArgs{Workload: w, Params: p, Local: listen, CPU: cpu, Shared: true})
}

// Dial connects the client's side of a workload, which then is ready for bursts, and returns its session.
func (a *Agent) Dial(ctx context.Context, w string, p result.Params, local, server netip.AddrPort, cpu int) (int, error) {
	return a.DialWithin(ctx, w, p, local, server, cpu, 0)
}

// ServeWithin is Serve for one client. A server that has programs to start may take so long; 0 is as Serve.
func (a *Agent) ServeWithin(ctx context.Context, w string, p result.Params, listen netip.AddrPort, cpu int, within time.Duration) (int, error) {
	return a.open(ctx, opServe, openArgs{Workload: w, Params: p, Local: listen, CPU: cpu, Within: a.programs(within)})
}

// DialWithin is Dial for a client that has programs to start, and may take so long; 0 is as Dial.
func (a *Agent) DialWithin(ctx context.Context, w string, p result.Params, local, server netip.AddrPort, cpu int, within time.Duration) (int, error) {
	return a.open(ctx, opDial, openArgs{Workload: w, Params: p, Local: local, Server: server, CPU: cpu, Within: a.programs(within)})
}

// ServeCluster starts the daemons of one pod of a workload's cluster, within a time, and returns their session.
func (a *Agent) ServeCluster(ctx context.Context, w string, p result.Params, at workload.Member, within time.Duration) (int, error) {
	return a.open(ctx, opServeCluster, openArgs{Workload: w, Params: p, Place: at, Within: within})
}

// DialCluster opens a client of a workload's cluster, within a time, and returns its session.
func (a *Agent) DialCluster(ctx context.Context, w string, p result.Params, at workload.Member, within time.Duration) (int, error) {
	return a.open(ctx, opDialCluster, openArgs{Workload: w, Params: p, Place: at, Within: within})
}

// DialTarget opens a client of a target that is held, within a time, and returns its session.
func (a *Agent) DialTarget(ctx context.Context, w string, p result.Params, t workload.Target, cpu int, within time.Duration) (int, error) {
	return a.open(ctx, opDialTarget, openArgs{Workload: w, Params: p, Target: targetOf(t), CPU: cpu, Within: within})
}

// Hold looks a target up, as the agent's pod sees it, takes the first of its addresses, and has the workload make it ready, within a
// time. It stays so until the session is released, or the agent ends. The parameters say what is put there, and which family it is looked up in.
func (a *Agent) Hold(ctx context.Context, w string, p result.Params, t workload.Target, within time.Duration) (Holding, error) {
	args := openArgs{Workload: w, Params: p, Target: targetOf(t), Within: within}
	args.Target.Family = p.Family
	return invoke[Holding](ctx, a, opHold, args, within+a.late())
}

// Clear takes away what a Hold has put into a target, known by its mark, where the agent that held it was lost.
func (a *Agent) Clear(ctx context.Context, w string, t workload.Target, mark string) error {
	args := openArgs{Workload: w, Target: targetOf(t), Within: releaseWithin}
	args.Target.Mark = mark
	return a.do(ctx, opClear, args, releaseWithin+a.late())
}

// Release lets go of a target that is held: what Hold has put there is taken away.
func (a *Agent) Release(ctx context.Context, session int) error {
	return a.do(ctx, opClose, sessionArgs{Session: session}, releaseWithin)
}

// Drop closes a session.
func (a *Agent) Drop(ctx context.Context, session int) error {
	return a.do(ctx, opClose, sessionArgs{Session: session}, 5*time.Second)
}

// Burst runs one burst of a client's session. The error of one that outlasts its deadline matches ErrHung; the session is
// then of no more use, and if even the agent does not answer, neither is the agent (rpc.ErrGone).
func (a *Agent) Burst(ctx context.Context, session int, spec engine.BurstSpec) (engine.Burst, error) {
	return unansweredHung(invoke[engine.Burst](ctx, a, opBurst, sessionArgs{Session: session, Spec: spec}, spec.Deadline+time.Second))
}

// Collect fetches what a client's session summed up since the last Collect.
func (a *Agent) Collect(ctx context.Context, session int, dropLast bool) (engine.Totals, error) {
	return invoke[engine.Totals](ctx, a, opCollect, sessionArgs{Session: session, DropLast: dropLast}, a.late())
}

// Totals fetches what a server's session saw.
func (a *Agent) Totals(ctx context.Context, session int) (engine.Totals, error) {
	return invoke[engine.Totals](ctx, a, opTotals, sessionArgs{Session: session}, a.late())
}

// Spent tells the processor time of a server's session, read on its own machine: what its threads have used, or its programs.
func (a *Agent) Spent(ctx context.Context, session int) (Spent, error) {
	return invoke[Spent](ctx, a, opSpent, sessionArgs{Session: session}, a.late())
}

// Threads are the numbers of the threads that a session of either end runs on, on the agent's machine; none where its
// workload doesn't say. A server may have a thread for each client: ask when the client is connected.
func (a *Agent) Threads(ctx context.Context, session int) ([]int, error) {
	return invoke[[]int](ctx, a, opThreads, sessionArgs{Session: session}, a.late())
}

// Health is how the daemons of a server's session are. Those that do not say so within the time are unwell; a server without
// daemons is well.
func (a *Agent) Health(ctx context.Context, session int, within time.Duration) (workload.Health, error) {
	if a.patience > 0 {
		within = min(within, a.patience/2)
	}
	return invoke[workload.Health](ctx, a, opHealth, sessionArgs{Session: session, Within: within}, within+a.late())
}

// Restart starts the daemons of a server's session again that have ended, or makes them whole again, within a time.
func (a *Agent) Restart(ctx context.Context, session int, within time.Duration) error {
	within = a.programs(within)
	return a.do(ctx, opRestart, sessionArgs{Session: session, Within: within}, within+a.late())
}

// Burn begins to keep processors busy and returns when it has begun: threads on processors that others use too may take their time.
func (a *Agent) Burn(ctx context.Context, b Burning) error {
	return a.do(ctx, opBurn, b, a.late())
}

// Rest ends what Burn began and returns when the processors are left alone. Without a Burn before it does nothing.
func (a *Agent) Rest(ctx context.Context) error { return a.do(ctx, opRest, nil, a.late()) }

// Counters reads what the agent's machine counts of its processors.
func (a *Agent) Counters(ctx context.Context) (machine.Counters, error) {
	return invoke[machine.Counters](ctx, a, opCounters, nil, a.late())
}

// Machine describes the agent's machine, as far as the pod shows it: the host name is the pod's own, and so is the system.
func (a *Agent) Machine(ctx context.Context) (result.Environment, error) {
	return invoke[result.Environment](ctx, a, opMachine, nil, a.late())
}

// do is invoke where nothing is answered.
func (a *Agent) do(ctx context.Context, op string, args any, deadline time.Duration) error {
	_, err := invoke[any](ctx, a, op, args, deadline)
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

// unansweredHung has the error of a burst that the agent did not answer match ErrHung.
func unansweredHung[R any](value R, err error) (R, error) {
	if errors.Is(err, rpc.ErrNoAnswer) {
		err = &hungError{err}
	}
	return value, err
}

// Burning is how an agent keeps processors busy, as a neighbour of those that are measured: on each processor a thread works
// and sleeps in turns. One that is named twice has two threads.
type Burning struct {
	CPUs []int `json:"cpus"`
	// Seed draws how long each turn is: from half of Turn to one and a half, so that the processor is taken half of the time
	// and no program falls into step with it. The same seed gives the same turns.
	Seed uint64        `json:"seed"`
	Turn time.Duration `json:"turn"`
	// Longest ends it when no Rest does.
	Longest time.Duration `json:"longest"`
}

// burners are an agent's threads that burn.
type burners struct {
	resting atomic.Bool
	busy    sync.WaitGroup
}

// burn begins threads on the processors, and returns when each is where it belongs.
func (s *burners) burn(b Burning) error {
	if b.Turn <= 0 || len(b.CPUs) == 0 {
		return errors.New("burning takes processors, and turns that last")
	}
	s.rest()
	s.resting.Store(false)
	ready := make(chan error, len(b.CPUs))
	for number, cpu := range b.CPUs {
		s.busy.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with its turns
			if err := native.Pin(cpu); err != nil {
				ready <- err
				return
			}
			ready <- nil
			s.turns(b, number)
		})
	}
	var err error
	for range b.CPUs {
		err = errors.Join(err, <-ready)
	}
	if err != nil {
		s.rest()
	}
	return err
}

// rest has all threads end their turns and waits for it.
func (s *burners) rest() {
	s.resting.Store(true)
	s.busy.Wait()
}

// turns works and sleeps until it is told to rest.
func (s *burners) turns(b Burning, number int) {
	rng := rand.New(rand.NewPCG(b.Seed, uint64(number)))
	turn := func() time.Duration { return b.Turn/2 + time.Duration(rng.Int64N(int64(b.Turn)+1)) }
	for end := time.Now().Add(b.Longest); !s.resting.Load() && time.Now().Before(end); {
		for until := time.Now().Add(turn()); time.Now().Before(until); {
			if s.resting.Load() {
				return
			}
		}
		nap := unix.NsecToTimespec(turn().Nanoseconds())
		_ = unix.Nanosleep(&nap, nil) // a nap that is cut short is a nap
	}
}
