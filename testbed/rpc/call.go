package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"netdelta/internal/machine"
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
