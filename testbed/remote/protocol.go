package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/unit"
)

// Verb is the argument with which the program serves.
const Verb = "node"

// operation says what is asked.
type operation string

const (
	opSupports operation = "supports"
	opOpen     operation = "open"
	opClose    operation = "close"
	opSwap     operation = "swap"
	opLinks    operation = "links"
	opSysctls  operation = "sysctls"
	opCounters operation = "counters"
	opStacks   operation = "stacks"
	opTap      operation = "tap"
	opPackets  operation = "packets"
	opUntap    operation = "untap"
	opFit      operation = "fit"
	opStart    operation = "start"
	opKill     operation = "kill"
)

// request is the header of a stream. What an operation does not need is zero.
type request struct {
	Operation operation        `json:"operation"`
	Lab       int              `json:"lab,omitempty"`
	Spec      testbed.Spec     `json:"spec"`
	Part      lab.Part         `json:"part"`
	Network   string           `json:"network,omitempty"`
	Spaces    []network.Space  `json:"spaces,omitempty"`
	Tap       int              `json:"tap,omitempty"`
	From      int              `json:"from,omitempty"`
	To        int              `json:"to,omitempty"`
	Size      unit.Bytes       `json:"size,omitempty"`
	Command   *testbed.Command `json:"command,omitempty"`
	Process   int              `json:"process,omitempty"`
}

// answer is what comes back for each operation but start.
type answer struct {
	Error    *failure          `json:"error,omitempty"`
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

// failure is an error on its way. Those that callers tell from others keep their type.
type failure struct {
	Text        string                    `json:"text"`
	Unsupported *testbed.UnsupportedError `json:"unsupported,omitempty"`
	TooLarge    *testbed.TooLargeError    `json:"too_large,omitempty"`
	NotPossible *network.NotPossibleError `json:"not_possible,omitempty"`
	Denied      *denial                   `json:"denied,omitempty"`
}

// denial is a testbed.PermissionError without the error that it wraps.
type denial struct{ Doing, Need, Mend, Why string }

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: err.Error()}
	_ = errors.As(err, &f.Unsupported)
	_ = errors.As(err, &f.TooLarge)
	_ = errors.As(err, &f.NotPossible)
	var denied *testbed.PermissionError
	if errors.As(err, &denied) {
		f.Denied = &denial{denied.Doing, denied.Need, denied.Mend, denied.Err.Error()}
	}
	return f
}

// error is the error again: it reads as it did, and matches what it matched.
func (f *failure) error() error {
	if f == nil {
		return nil
	}
	var cause error
	switch {
	case f.Unsupported != nil:
		cause = f.Unsupported
	case f.TooLarge != nil:
		cause = f.TooLarge
	case f.NotPossible != nil:
		cause = f.NotPossible
	case f.Denied != nil:
		cause = &testbed.PermissionError{Doing: f.Denied.Doing, Need: f.Denied.Need, Mend: f.Denied.Mend, Err: errors.New(f.Denied.Why)}
	}
	return &Error{Text: f.Text, Cause: cause}
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

// answerMost bounds an answer: a list of packets is the longest.
const answerMost = 256 << 20

func readAnswer(from io.Reader) (answer, error) {
	var a answer
	if err := json.NewDecoder(io.LimitReader(from, answerMost)).Decode(&a); err != nil {
		return a, fmt.Errorf("read the machine's answer: %w", err)
	}
	return a, a.Error.error()
}
