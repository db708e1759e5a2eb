package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"netdelta/internal/clock"
	"netdelta/testbed"
)

// ErrGone is matched by the error of every call on a process that has ended or was given up.
var ErrGone = errors.New("agent is gone")

// ErrNoAnswer is matched by the error of a call that was not answered in time.
var ErrNoAnswer = errors.New("no answer")

// answerMost bounds the line of an answer: a list of packets is the longest.
const answerMost = 64 << 20

// Client is the caller's end of a process that runs Serve. Its methods may be called by several goroutines.
type Client struct {
	who  string
	proc testbed.Process

	write sync.Mutex
	mu    sync.Mutex
	next  uint64
	calls map[uint64]chan Answer
	gone  error
	done  chan struct{}
}

// NewClient speaks to a process, which it owns from now on. Errors name it as who: "pod p1".
func NewClient(who string, proc testbed.Process) *Client {
	c := &Client{who: who, proc: proc, calls: map[uint64]chan Answer{}, done: make(chan struct{})}
	go c.read()
	return c
}

// Process is the other end.
func (c *Client) Process() testbed.Process { return c.proc }

// Alive says whether the process still takes calls.
func (c *Client) Alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone == nil
}

// Close ends the process: it closes its standard input and, if it does not end by itself, kills it. How one ended that was lost before is
// no news: the call that lost it has said so.
func (c *Client) Close() error {
	lost := !c.Alive()
	err := c.proc.Close()
	<-c.done
	if lost {
		return nil
	}
	return err
}

// Do sends one request and waits for its answer, at most for deadline. The error of the other end is an *Error. A process that does not
// answer in time is killed, and the error matches ErrNoAnswer: its state is unknown, and nothing that it would say later could be trusted.
func Do[R any](ctx context.Context, c *Client, op string, args any, deadline time.Duration) (R, error) {
	var value R
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	answer, err := c.send(op, args)
	if err != nil {
		return value, err
	}
	select {
	case a, ok := <-answer:
		switch {
		case !ok:
			return value, c.goneError()
		case a.Error != nil:
			return value, fmt.Errorf("%s: %w", c.who, a.Error)
		}
		if err := json.Unmarshal(a.Value, &value); err != nil {
			return value, fmt.Errorf("%s: decoding the answer to %s: %w", c.who, op, err)
		}
		return value, nil
	case <-ctx.Done():
		cause := context.Cause(ctx)
		if errors.Is(cause, context.DeadlineExceeded) {
			cause = fmt.Errorf("%w to %q within %v", ErrNoAnswer, op, deadline.Round(time.Millisecond))
			c.giveUp(cause)
		}
		return value, fmt.Errorf("%s: %w%s", c.who, cause, c.failureReason())
	}
}

func (c *Client) send(op string, args any) (<-chan Answer, error) {
	r, err := NewRequest(op, args)
	if err != nil {
		return nil, err
	}
	answer := make(chan Answer, 1)
	c.mu.Lock()
	if c.gone != nil {
		c.mu.Unlock()
		return nil, c.goneError()
	}
	c.next++
	r.ID = c.next
	c.calls[r.ID] = answer
	c.mu.Unlock()

	line, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", op, err)
	}
	c.write.Lock()
	_, err = c.proc.Write(append(line, '\n'))
	c.write.Unlock()
	if err != nil {
		c.giveUp(fmt.Errorf("sending %q: %w", op, err))
		return nil, c.goneError()
	}
	return answer, nil
}

// read hands each answer to the call that waits for it, until the process's output ends.
func (c *Client) read() {
	defer close(c.done)
	scanner := bufio.NewScanner(c.proc)
	// Most answers are short, and there may be a thousand agents: the buffer grows where it must.
	scanner.Buffer(make([]byte, 4<<10), answerMost)
	for scanner.Scan() {
		var a Answer
		if err := json.Unmarshal(scanner.Bytes(), &a); err != nil {
			c.giveUp(fmt.Errorf("it wrote what is not an answer: %.80q", scanner.Text()))
			break
		}
		c.mu.Lock()
		answer := c.calls[a.ID]
		delete(c.calls, a.ID)
		c.mu.Unlock()
		if answer != nil {
			answer <- a
		}
	}
	c.giveUp(errors.New("its process ended"))
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, answer := range c.calls {
		delete(c.calls, id)
		close(answer)
	}
}

// giveUp marks the process as gone, for the first reason given, and kills it.
func (c *Client) giveUp(why error) {
	c.mu.Lock()
	first := c.gone == nil
	if first {
		c.gone = why
	}
	c.mu.Unlock()
	if first {
		// It is being abandoned: whether it was already dead changes nothing for the caller.
		_ = c.proc.Kill()
	}
}

func (c *Client) goneError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if tail := c.proc.Stderr(); tail != "" {
		return fmt.Errorf("%w: %s: %w%s; its last words: %s", ErrGone, c.who, c.gone, c.failureReason(), tail)
	}
	return fmt.Errorf("%w: %s: %w%s", ErrGone, c.who, c.gone, c.failureReason())
}

// failureReason is why the process was lost, to be added to an error, where its testbed can tell.
func (c *Client) failureReason() string {
	if why := c.proc.FailureReason(); why != "" {
		return ": " + why
	}
	return ""
}

// requestMost bounds the line of a request.
const requestMost = 1 << 20

// Serve answers requests from in on out until in ends, which is not an error: the caller is gone or done. They are carried out one after
// another in their order. With abandon, the end of in is noticed even while one hangs: Serve then returns at once, for its caller to end the
// process. Else it returns when the last is answered.
func Serve(in io.Reader, out io.Writer, abandon bool, handle func(Request) (any, error)) error {
	requests := make(chan Request)
	done := make(chan error, 1)
	go func() { done <- serve(requests, out, handle) }()
	err := read(in, requests, done)
	close(requests)
	if !abandon && err == nil {
		err = <-done
	}
	return err
}

func read(in io.Reader, requests chan<- Request, done <-chan error) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 64<<10), requestMost)
	for scanner.Scan() {
		r := Request{Received: clock.Now()}
		if err := json.Unmarshal(scanner.Bytes(), &r); err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		select {
		case requests <- r:
		case err := <-done:
			return err
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("reading requests: %w", err)
	}
	return nil
}

func serve(requests <-chan Request, out io.Writer, handle func(Request) (any, error)) error {
	for r := range requests {
		line, err := json.Marshal(r.Reply(handle(r)))
		if err != nil {
			return fmt.Errorf("encoding the answer to %s: %w", r.Op, err)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("answering %s: %w", r.Op, err)
		}
	}
	return nil
}
