package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// ErrGone is matched by the error of every call on an agent whose process has ended or was given up.
var ErrGone = errors.New("agent is gone")

// ErrHung is matched by the error of a burst that was not over when its deadline had passed: the network, or the other end,
// has let nothing through for all that time.
var ErrHung = errors.New("burst hung")

// hungError makes an error match ErrHung; its words say so already.
type hungError struct{ error }

func (e *hungError) Is(target error) bool { return target == ErrHung }
func (e *hungError) Unwrap() error        { return e.error }

// errNoAnswer is matched by the error of a call that the agent did not answer in time.
var errNoAnswer = errors.New("no answer")

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
	pod  testbed.Pod
	proc testbed.Process

	write sync.Mutex
	mu    sync.Mutex
	next  uint64
	calls map[uint64]chan response
	gone  error
	done  chan struct{}
	local bool
}

// Start starts an agent in the pod and waits until it has introduced itself.
func Start(ctx context.Context, pod testbed.Pod, p Program) (*Agent, error) {
	args := append(append([]string{}, p.Args...), Subcommand)
	proc, err := pod.Start(ctx, testbed.Command{Path: p.Path, Args: args, CPUs: p.CPUs, Env: append(runtimeEnv(), p.Env...)})
	if err != nil {
		return nil, fmt.Errorf("starting the agent in pod %s: %w", pod.Name(), err)
	}
	a := &Agent{pod: pod, proc: proc, calls: map[uint64]chan response{}, done: make(chan struct{})}
	go a.read()
	hello, err := invoke[Hello](ctx, a, opHello, struct{}{}, greetDeadline)
	if err == nil && hello.Version != Version {
		err = fmt.Errorf("it speaks protocol %d, this is %d: use the same netdelta on both sides", hello.Version, Version)
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
	// Where the user's cache is: what takes long to make is made once and kept there.
	for _, name := range []string{"HOME", "XDG_CACHE_HOME"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Pod is the pod that the agent runs in.
func (a *Agent) Pod() testbed.Pod { return a.pod }

// PID is the number of the agent's process, on this machine if it is Local.
func (a *Agent) PID() int { return a.proc.PID() }

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
// then of no more use, and if even the agent does not answer, neither is the agent (ErrGone).
func (a *Agent) Burst(ctx context.Context, session int, spec workload.BurstSpec) (workload.Burst, error) {
	b, err := invoke[workload.Burst](ctx, a, opBurst, burstArgs{session, spec}, spec.Deadline+time.Second)
	if errors.Is(err, errNoAnswer) {
		err = &hungError{err}
	}
	return b, err
}

// Collect fetches what a client's session summed up since the last Collect.
func (a *Agent) Collect(ctx context.Context, session int, dropLast bool) (workload.Totals, error) {
	return invoke[workload.Totals](ctx, a, opCollect, collectArgs{session, dropLast}, 10*time.Second)
}

// Totals fetches what a server's session saw.
func (a *Agent) Totals(ctx context.Context, session int) (workload.Totals, error) {
	return invoke[workload.Totals](ctx, a, opTotals, sessionArgs{session}, 10*time.Second)
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

// Alive says whether the agent still takes calls.
func (a *Agent) Alive() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gone == nil
}

// Close ends the agent: it closes its standard input and, if it does not end by itself, kills it. How an agent ended that
// was lost before is no news: the call that lost it has said so.
func (a *Agent) Close() error {
	lost := !a.Alive()
	err := a.proc.Close()
	<-a.done
	if lost {
		return nil
	}
	return err
}

// invoke sends one request and waits for its answer. An agent that does not answer in time is killed: its state is
// unknown, and nothing that it would say later could be trusted.
func invoke[R any](ctx context.Context, a *Agent, op string, args any, deadline time.Duration) (R, error) {
	var value R
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	answer, err := a.send(op, args)
	if err != nil {
		return value, err
	}
	select {
	case r, ok := <-answer:
		if !ok {
			return value, a.goneError()
		}
		if r.Error != "" {
			err := fmt.Errorf("pod %s: %s", a.pod.Name(), r.Error)
			if r.Hung {
				err = &hungError{err}
			}
			return value, err
		}
		if err := json.Unmarshal(r.Value, &value); err != nil {
			return value, fmt.Errorf("pod %s: decoding the answer to %s: %w", a.pod.Name(), op, err)
		}
		return value, nil
	case <-ctx.Done():
		cause := context.Cause(ctx)
		if errors.Is(cause, context.DeadlineExceeded) {
			cause = fmt.Errorf("%w to %q within %v", errNoAnswer, op, deadline)
			a.giveUp(cause)
		}
		return value, fmt.Errorf("pod %s: %w%s", a.pod.Name(), cause, a.failureReason())
	}
}

func (a *Agent) send(op string, args any) (<-chan response, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", op, err)
	}
	answer := make(chan response, 1)
	a.mu.Lock()
	if a.gone != nil {
		a.mu.Unlock()
		return nil, a.goneError()
	}
	a.next++
	id := a.next
	a.calls[id] = answer
	a.mu.Unlock()

	line, err := json.Marshal(request{ID: id, Op: op, Args: raw})
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", op, err)
	}
	a.write.Lock()
	_, err = a.proc.Write(append(line, '\n'))
	a.write.Unlock()
	if err != nil {
		a.giveUp(fmt.Errorf("sending %q: %w", op, err))
		return nil, a.goneError()
	}
	return answer, nil
}

// read hands each answer to the call that waits for it, until the agent's output ends.
func (a *Agent) read() {
	defer close(a.done)
	scanner := bufio.NewScanner(a.proc)
	// Most answers are short, and there may be a thousand agents: the buffer grows where it must.
	scanner.Buffer(make([]byte, 4<<10), 16<<20)
	for scanner.Scan() {
		var r response
		if err := json.Unmarshal(scanner.Bytes(), &r); err != nil {
			a.giveUp(fmt.Errorf("it wrote what is not an answer: %.80q", scanner.Text()))
			break
		}
		a.mu.Lock()
		answer := a.calls[r.ID]
		delete(a.calls, r.ID)
		a.mu.Unlock()
		if answer != nil {
			answer <- r
		}
	}
	a.giveUp(errors.New("its process ended"))
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, answer := range a.calls {
		delete(a.calls, id)
		close(answer)
	}
}

// giveUp marks the agent as gone, for the first reason given, and kills its process.
func (a *Agent) giveUp(why error) {
	a.mu.Lock()
	first := a.gone == nil
	if first {
		a.gone = why
	}
	a.mu.Unlock()
	if first {
		// The process is being abandoned: whether it was already dead changes nothing for the caller.
		_ = a.proc.Kill()
	}
}

func (a *Agent) goneError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if tail := a.proc.Stderr(); tail != "" {
		return fmt.Errorf("%w: pod %s: %w%s; its last words: %s", ErrGone, a.pod.Name(), a.gone, a.failureReason(), tail)
	}
	return fmt.Errorf("%w: pod %s: %w%s", ErrGone, a.pod.Name(), a.gone, a.failureReason())
}

// failureReason is why the process was lost, to be added to an error, where its testbed can tell.
func (a *Agent) failureReason() string {
	if why := a.proc.FailureReason(); why != "" {
		return ": " + why
	}
	return ""
}
