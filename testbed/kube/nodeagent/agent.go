package nodeagent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"netdelta/testbed"
)

// ErrGone is matched by the error of every call on an agent that has ended, or that was given up since it did not answer.
var ErrGone = errors.New("the node agent is gone")

const (
	// answerMost bounds an answer: a list of packets is the longest.
	answerMost = 64 << 20
	// patience is how long an answer may take. It takes milliseconds.
	patience = 20 * time.Second
)

// Agent is the controller's end of an agent in a pod. It is safe for concurrent use.
type Agent struct {
	pod  testbed.Pod
	proc testbed.Process

	mu    sync.Mutex
	lines *bufio.Scanner
	gone  error
}

// Start starts the program as an agent in a pod, where it has this path, and waits until it has introduced itself.
func Start(ctx context.Context, pod testbed.Pod, program string) (*Agent, error) {
	proc, err := pod.Start(ctx, testbed.Command{Path: program, Args: []string{Verb}})
	if err != nil {
		return nil, fmt.Errorf("start an agent that looks at %s: %w", pod.Name(), err)
	}
	a := &Agent{pod: pod, proc: proc, lines: bufio.NewScanner(proc)}
	a.lines.Buffer(make([]byte, 64<<10), answerMost)
	hello, err := a.ask(ctx, request{Operation: opHello})
	if err == nil && hello.Version != version {
		err = fmt.Errorf("it speaks version %d of the protocol, this is %d: use the same netdelta on both sides", hello.Version, version)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("greet the agent that looks at %s: %w", pod.Name(), err), a.Close())
	}
	return a, nil
}

// Pod is the pod that the agent runs in: one in its node's own namespace has the node's address.
func (a *Agent) Pod() testbed.Pod { return a.pod }

// Alive says whether the agent still takes calls.
func (a *Agent) Alive() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gone == nil
}

// Close ends the agent. It is idempotent.
func (a *Agent) Close() error { return a.proc.Close() }

// Describe lists the devices of the agent's namespace.
func (a *Agent) Describe(ctx context.Context) ([]testbed.Interface, error) {
	answer, err := a.ask(ctx, request{Operation: opDescribe})
	return answer.Interfaces, err
}

// Count reads the counters of all devices by their names, and those of the IP stack.
func (a *Agent) Count(ctx context.Context) (map[string]testbed.Counters, testbed.Stack, error) {
	answer, err := a.ask(ctx, request{Operation: opCount})
	return answer.Counters, answer.Stack, err
}

// ask makes a request and waits for its answer. An agent that does not answer in time is killed: what it would say later would
// be taken for the answer to something else.
func (a *Agent) ask(ctx context.Context, r request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a.mu.Lock()
	defer a.mu.Unlock()
	fail := func(err error) (answer, error) {
		return answer{}, fmt.Errorf("ask %s to %s: %w", a.pod.Name(), r.Operation, err)
	}
	if a.gone != nil {
		return fail(a.gone)
	}
	type outcome struct {
		answer answer
		err    error
	}
	// It has room, so that nobody who has been given up is waited for.
	done := make(chan outcome, 1)
	go func() {
		got, err := a.exchange(r)
		done <- outcome{got, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			a.gone = fmt.Errorf("%w: %w", ErrGone, o.err)
			return fail(a.gone)
		}
		if o.answer.Error != "" {
			return fail(errors.New(o.answer.Error))
		}
		return o.answer, nil
	case <-ctx.Done():
		a.gone = fmt.Errorf("%w: it did not answer: %w", ErrGone, context.Cause(ctx))
		return fail(errors.Join(a.gone, a.proc.Kill()))
	}
}

// exchange writes a line and reads one.
func (a *Agent) exchange(r request) (got answer, err error) {
	line, err := json.Marshal(r)
	if err != nil {
		return got, fmt.Errorf("encode the request: %w", err)
	}
	if _, err := a.proc.Write(append(line, '\n')); err != nil {
		return got, fmt.Errorf("send the request: %w", err)
	}
	if !a.lines.Scan() {
		err := a.lines.Err()
		if err == nil {
			err = errors.New("its process ended")
		}
		if words := a.proc.Stderr(); words != "" {
			return got, fmt.Errorf("%w; its last words: %s", err, words)
		}
		return got, err
	}
	if err := json.Unmarshal(a.lines.Bytes(), &got); err != nil {
		return got, fmt.Errorf("read the answer: %w", err)
	}
	return got, nil
}
