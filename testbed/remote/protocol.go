package remote

import (
	"encoding/json"
	"errors"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/rpc"
	"netdelta/unit"
)

// Verb is the argument with which the program serves.
const Verb = "node"

// The operations.
const (
	opSupports = "supports"
	opOpen     = "open"
	opClose    = "close"
	opSwap     = "swap"
	opLinks    = "links"
	opSysctls  = "sysctls"
	opCounters = "counters"
	opStacks   = "stacks"
	opTap      = "tap"
	opPackets  = "packets"
	opUntap    = "untap"
	opFit      = "fit"
	opStart    = "start" // messages of the process come back
	opKill     = "kill"
)

// request is what an operation is about. What it does not need is zero.
type request struct {
	Lab     int              `json:"lab,omitempty"`
	Spec    testbed.Spec     `json:"spec"`
	Part    lab.NodePart     `json:"part"`
	Network string           `json:"network,omitempty"`
	Spaces  []network.Space  `json:"spaces,omitempty"`
	Tap     int              `json:"tap,omitempty"`
	From    int              `json:"from,omitempty"`
	To      int              `json:"to,omitempty"`
	Size    unit.Bytes       `json:"size,omitempty"`
	Command *testbed.Command `json:"command,omitempty"`
	Process int              `json:"process,omitempty"`
}

// answer is what comes back for each operation but start.
type answer struct {
	Lab      int               `json:"lab,omitempty"`
	Tap      int               `json:"tap,omitempty"`
	Links    []result.Link     `json:"links,omitempty"`
	Sysctls  map[string]string `json:"sysctls,omitempty"`
	Counters []counted         `json:"counters,omitempty"`
	Stacks   []stacked         `json:"stacks,omitempty"`
	Packets  []testbed.Packet  `json:"packets,omitempty"`
	Missed   int               `json:"missed,omitempty"`
}

// counted and stacked are entries of maps whose keys JSON can't have.
type counted struct {
	Device   network.Device   `json:"device"`
	Counters testbed.Counters `json:"counters"`
}

type stacked struct {
	Space network.Space `json:"space"`
	Stack testbed.Stack `json:"stack"`
}

// Kinds of errors that callers tell from others: they keep their type on the way.
const (
	kindUnsupported = "unsupported"
	kindTooLarge    = "too-large"
	kindNotPossible = "not-possible"
	kindDenied      = "denied"
)

// typed is an error of such a type, or of none, on its way.
type typed struct{ error }

// denial is a testbed.PermissionError without the error that it wraps.
type denial struct{ Doing, Need, Fix, Why string }

// Kind implements rpc.Kinder.
func (t typed) Kind() (string, any) {
	if e, ok := errors.AsType[*testbed.UnsupportedError](t.error); ok {
		return kindUnsupported, e
	}
	if e, ok := errors.AsType[*testbed.TooLargeError](t.error); ok {
		return kindTooLarge, e
	}
	if e, ok := errors.AsType[*network.NotPossibleError](t.error); ok {
		return kindNotPossible, e
	}
	if e, ok := errors.AsType[*testbed.PermissionError](t.error); ok {
		return kindDenied, denial{e.Doing, e.Need, e.Fix, e.Err.Error()}
	}
	return "", nil
}

// far makes of an error of another machine one that reads as it did, and matches what it matched.
func far(err error) error {
	there, ok := errors.AsType[*rpc.Error](err)
	if !ok {
		return err
	}
	var cause error
	switch there.Kind {
	case kindUnsupported:
		cause = detail[testbed.UnsupportedError](there)
	case kindTooLarge:
		cause = detail[testbed.TooLargeError](there)
	case kindNotPossible:
		cause = detail[network.NotPossibleError](there)
	case kindDenied:
		var d denial
		_ = json.Unmarshal(there.Detail, &d) // see detail
		cause = &testbed.PermissionError{Doing: d.Doing, Need: d.Need, Fix: d.Fix, Err: errors.New(d.Why)}
	}
	return &Error{Text: there.Text, Cause: cause}
}

// detail is an error of a type. The other end has the same types, as the greeting has shown.
func detail[T any, P interface {
	*T
	error
}](from *rpc.Error) error {
	e := P(new(T))
	_ = json.Unmarshal(from.Detail, e)
	return e
}

// Error is what went wrong on another machine.
type Error struct {
	Text  string
	Cause error // of a type of package testbed or network, else nil
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Unwrap makes errors.As find what the error was on its machine.
func (e *Error) Unwrap() error { return e.Cause }
