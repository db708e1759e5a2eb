package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"netdelta/internal/machine"
	"netdelta/testbed"
)

// ErrGone is matched by the error of every call on a process that has ended or was given up.
var ErrGone = errors.New("agent is gone")

// ErrNoAnswer is matched by the error of a call that was not answered in time.
var ErrNoAnswer = errors.New("no answer")

// Client is the caller's end of a process that runs Serve. Its methods may be called by several goroutines.
type Client struct {
	who  string
	proc testbed.Process
	conn *Conn
}

// NewClient speaks to a process, which it owns from now on. Errors name it as who: "pod p1".
func NewClient(who string, proc testbed.Process) *Client {
	return &Client{who, proc, NewConn(killed{proc}, true)}
}

// killed is a process as the other end of a connection. One that the connection is over with is of no more use.
type killed struct{ testbed.Process }

func (k killed) Close() error { return k.Kill() }

// Process is the other end.
func (c *Client) Process() testbed.Process { return c.proc }

// Alive says whether the process still takes calls.
func (c *Client) Alive() bool { return c.conn.Err() == nil }

// Close ends the process: it closes its standard input and, if it does not end by itself, kills it. How one ended that was lost before is
// no news: the call that lost it has said so.
func (c *Client) Close() error {
	lost := !c.Alive()
	err := c.proc.Close()
	<-c.conn.Done()
	if lost {
		return nil
	}
	return err
}

// Do sends one request and waits for its answer, at most for deadline. The error of the other end is an *Error. A process that does not
// answer in time is killed, and the error matches ErrNoAnswer: its state is unknown, and nothing that it would say later could be trusted.
func Do[R any](ctx context.Context, c *Client, op string, args any, deadline time.Duration) (R, error) {
	within, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	value, err := Ask[R](within, c.conn, op, args)
	if err == nil {
		return value, nil
	}
	if _, answered := errors.AsType[*Error](err); answered {
		return value, fmt.Errorf("%s: %w", c.who, err)
	}
	if !c.Alive() {
		return value, c.goneError()
	}
	if cause := context.Cause(within); cause != nil {
		err = cause
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w to %q within %v", ErrNoAnswer, op, deadline.Round(time.Millisecond))
		c.conn.fail(err)
	}
	return value, fmt.Errorf("%s: %w%s", c.who, err, c.failureReason())
}

func (c *Client) goneError() error {
	why := c.conn.Err()
	if _, ended := errors.AsType[*endedError](why); ended {
		why = errors.New("its process ended")
	}
	if tail := c.proc.Stderr(); tail != "" {
		return fmt.Errorf("%w: %s: %w%s; its last words: %s", ErrGone, c.who, why, c.failureReason(), tail)
	}
	return fmt.Errorf("%w: %s: %w%s", ErrGone, c.who, why, c.failureReason())
}

// failureReason is why the process was lost, to be added to an error, where its testbed can tell.
func (c *Client) failureReason() string {
	if why := c.proc.FailureReason(); why != "" {
		return ": " + why
	}
	return ""
}

// Greeter is a greeting that can be refused.
type Greeter interface{ Check() error }

// Meet waits until a process has introduced itself, as long as deadline, and refuses one of another version. A program may be too old or too
// new to understand the greeting, and end: the same one, started by the command, then tells its version on its own.
func Meet[G Greeter](ctx context.Context, c *Client, pod testbed.Pod, version testbed.Command, deadline time.Duration) (G, error) {
	hello, err := Do[G](ctx, c, OpHello, nil, deadline)
	if err == nil {
		return hello, hello.Check()
	}
	if !errors.Is(err, ErrGone) {
		return hello, err
	}
	there := versionOf(ctx, pod, version)
	if there == "" || there == machine.Version() && !errors.Is(err, errNotProtocol) {
		return hello, err
	}
	return hello, fmt.Errorf("%s: it is netdelta %s and does not speak protocol %d of this netdelta, which is %s: use the same netdelta on both sides", c.who, there, Version, machine.Version())
}

// versionWithin bounds how long a program may take to tell its version, and versionMost what it says.
const (
	versionWithin = 20 * time.Second
	versionMost   = 200
)

// versionOf is what a program says of its version: "netdelta-agent version 1.2". It is "" where it does not tell.
func versionOf(ctx context.Context, pod testbed.Pod, command testbed.Command) string {
	ctx, cancel := context.WithTimeout(ctx, versionWithin)
	defer cancel()
	p, err := pod.Start(ctx, command)
	if err != nil {
		return ""
	}
	stop := context.AfterFunc(ctx, func() { _ = p.Kill() })
	said, _ := io.ReadAll(io.LimitReader(p, versionMost)) // what came before it ended
	stop()
	_ = p.Close() // it has ended, or is ended
	name, version, told := strings.Cut(strings.TrimSpace(string(said)), " version ")
	if !told || !strings.HasPrefix(name, "netdelta") {
		return ""
	}
	return version
}
