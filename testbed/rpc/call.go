package rpc

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
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
