// Package rpc is how netdelta speaks to the parts of it that run elsewhere: agents in pods, node agents, nodes on other machines, guests
// and keepers of labs. All it needs is a stream of bytes each way: pipes of a process, a serial port, a socket.
//
// A Conn carries many streams over one connection. Each begins with a Request in JSON, an operation and its arguments, and goes on with
// its Answer, a value or an error, or with messages of what a program writes. A request and its answer are one write each. Client calls a
// process, with deadlines, and Serve answers it.
//
// Whatever is spoken to introduces itself with a Greeting first, and Greeting.Check refuses one of another version.
package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"netdelta/internal/machine"
	"netdelta/testbed"
)

// Version is the protocol's, of everything that speaks it: both ends must have the same.
const Version = 9

// OpHello is the operation that every server answers with its Greeting, or with something that has one in it.
const OpHello = "hello"

// Greeting is how one end introduces itself.
type Greeting struct {
	Version int `json:"version"`
	// Build is the version of the program, "" from programs before the sixth version of the protocol.
	Build string `json:"build,omitempty"`
}

// Greet is this program's greeting.
func Greet() Greeting { return Greeting{Version, machine.Version()} }

// Check refuses the other end's greeting where it speaks another version.
func (g Greeting) Check() error {
	if g.Version == Version {
		return nil
	}
	build := cmp.Or(g.Build, "older")
	return fmt.Errorf("it speaks protocol %d (netdelta %s), this is %d (netdelta %s): use the same netdelta on both sides", g.Version, build, Version, machine.Version())
}

// Request is what is asked of the other end.
type Request struct {
	Op   string          `json:"op"`
	Args json.RawMessage `json:"args,omitempty"`

	// Received is when it came in, by clock.Now.
	Received time.Duration `json:"-"`
}

// Answer is what comes back for a request.
type Answer struct {
	Error *Error          `json:"error,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// Error is an error of the other end.
type Error struct {
	Text string `json:"text"`
	// Kind is by what the caller tells it from others, and Detail what there is to it; most errors have neither.
	Kind   string          `json:"kind,omitempty"`
	Detail json.RawMessage `json:"detail,omitempty"`
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Kinder is an error that says its own kind, with a detail or nil, on its way to the other end.
type Kinder interface {
	error
	Kind() (kind string, detail any)
}

// NewRequest asks for an operation.
func NewRequest(op string, args any) (Request, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return Request{}, fmt.Errorf("encoding %s: %w", op, err)
	}
	return Request{Op: op, Args: raw}, nil
}

// Reply answers a request.
func (r Request) Reply(value any, err error) Answer {
	var a Answer
	if err == nil {
		if a.Value, err = json.Marshal(value); err != nil {
			err = fmt.Errorf("encoding the answer to %s: %w", r.Op, err)
		}
	}
	if err != nil {
		a.Error = &Error{Text: err.Error()}
		if k, ok := errors.AsType[Kinder](err); ok {
			kind, detail := k.Kind()
			a.Error.Kind = kind
			a.Error.Detail, _ = json.Marshal(detail) // without it the kind says enough
		}
	}
	return a
}

// Call carries out an operation with the arguments of a request.
func Call[A, R any](r Request, f func(A) (R, error)) (any, error) {
	var args A
	if len(r.Args) > 0 {
		if err := json.Unmarshal(r.Args, &args); err != nil {
			return nil, fmt.Errorf("decoding arguments: %w", err)
		}
	}
	return f(args)
}

// Unknown is the error for an operation that there is not.
func (r Request) Unknown() error {
	return fmt.Errorf("there is no operation %.64q: use the same netdelta on both sides", r.Op)
}

// answerMost bounds an answer: a list of packets is the longest.
const answerMost = 256 << 20

// Begin opens a stream with a request.
func (c *Conn) Begin(op string, args any) (*Stream, error) { return c.begin(op, args, false) }

func (c *Conn) begin(op string, args any, shut bool) (*Stream, error) {
	r, err := NewRequest(op, args)
	if err != nil {
		return nil, err
	}
	header, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", op, err)
	}
	return c.open(header, shut)
}

// Ask makes a request on a stream of its own and waits for the answer. When ctx ends first, the request is given up. The error of the other
// end is an *Error. One write goes each way and no more: an agent that has answered sleeps while another one measures.
func Ask[R any](ctx context.Context, c *Conn, op string, args any) (value R, err error) {
	stream, err := c.begin(op, args, true)
	if err != nil {
		return value, err
	}
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
	text, err := io.ReadAll(io.LimitReader(stream, answerMost))
	stop()
	_ = stream.Close() // it has ended, or is given up
	var a Answer
	switch broken := c.Err(); {
	case err != nil && ctx.Err() != nil:
		return value, ctx.Err()
	case err != nil && broken != nil:
		return value, broken
	case err == nil:
		err = json.Unmarshal(text, &a)
	}
	switch {
	case err != nil:
		return value, fmt.Errorf("read the answer to %s: %w", op, err)
	case a.Error != nil:
		return value, a.Error
	}
	if err := json.Unmarshal(a.Value, &value); err != nil {
		return value, fmt.Errorf("decoding the answer to %s: %w", op, err)
	}
	return value, nil
}

// Serve hands each stream that the other end opens, with its request, to a goroutine of its own, until the connection ends. It then calls
// cleanUp and returns when all of them are done; without a cleanUp it returns at once.
func (c *Conn) Serve(serve func(*Stream, Request), cleanUp func() error) error {
	var under sync.WaitGroup
	for s, err := c.Accept(); err == nil; s, err = c.Accept() {
		under.Go(func() { s.serve(serve) })
	}
	if cleanUp == nil {
		return nil
	}
	err := cleanUp()
	under.Wait()
	return err
}

// serve serves a stream with its request. What it leaves of the stream is ended for it.
func (s *Stream) serve(serve func(*Stream, Request)) {
	r := Request{Received: s.received}
	if err := json.Unmarshal(s.header, &r); err != nil {
		s.Answer(r, nil, fmt.Errorf("reading a request: %w", err))
	} else {
		serve(s, r)
	}
	_ = s.CloseWrite()
	_, _ = io.Copy(io.Discard, s)
	_ = s.Close()
}

// Answer answers the request of a stream, and ends this half of it. The caller learns by the end of the stream what it could not be told.
func (s *Stream) Answer(r Request, value any, err error) {
	text, unsaid := json.Marshal(r.Reply(value, err))
	if unsaid == nil {
		_, _ = s.send(text, true)
	}
}

// pipes are a process's own standard input and output.
type pipes struct {
	io.Reader
	io.Writer
}

func (pipes) Close() error { return nil }

// Serve answers requests from in on out until in ends, which is not an error: the caller is gone or done. They are carried out one after
// another in their order. With abandon, Serve then returns at once, even while one hangs, for its caller to end the process. Else it
// returns when the one that was begun is over.
func Serve(in io.Reader, out io.Writer, abandon bool, handle func(Request) (any, error)) error {
	c := NewConn(pipes{in, out}, false)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s, err := c.Accept(); err == nil; s, err = c.Accept() {
			s.serve(func(s *Stream, r Request) {
				value, err := handle(r)
				s.Answer(r, value, err)
			})
		}
	}()
	<-c.Done()
	if !abandon {
		<-done
	}
	if err := c.Err(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

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
