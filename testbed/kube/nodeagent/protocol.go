package nodeagent

import (
	"errors"
	"fmt"
	"net/netip"

	"netdelta/testbed"
	"netdelta/unit"
)

// Verb is the argument with which the program serves.
const Verb = "look"

// version is the protocol's: both ends must agree on it.
const version = 1

// operation says what is asked.
type operation string

const (
	opHello    operation = "hello"
	opDescribe operation = "describe"
	opCount    operation = "count"
	opBegin    operation = "begin"
	opEnd      operation = "end"
	opDrop     operation = "drop"
	opFit      operation = "fit"
)

// request is one line to the agent. What an operation does not need is zero.
type request struct {
	Operation operation `json:"operation"`
	Watch     int       `json:"watch,omitempty"`
	// Addresses are those of which each sampled packet must have two.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// To are those whose routes are asked for, and Port is that of the server whose peers are.
	To   []netip.Addr   `json:"to,omitempty"`
	Port uint16         `json:"port,omitempty"`
	At   netip.AddrPort `json:"at"`
	Size unit.Bytes     `json:"size,omitempty"`
}

// answer is one line from the agent, in the order of the requests.
type answer struct {
	Error      *failure                    `json:"error,omitempty"`
	Version    int                         `json:"version,omitempty"`
	Watch      int                         `json:"watch,omitempty"`
	Interfaces []testbed.Interface         `json:"interfaces,omitempty"`
	Counters   map[string]testbed.Counters `json:"counters,omitempty"`
	Stack      testbed.Stack               `json:"stack"`
	Packets    []testbed.Packet            `json:"packets,omitempty"`
	Missed     int                         `json:"missed,omitempty"`
	Lacks      string                      `json:"lacks,omitempty"`
	Routes     []testbed.Route             `json:"routes,omitempty"`
	Peers      []netip.AddrPort            `json:"peers,omitempty"`
}

// failure is an error on its way. One that callers tell from others keeps its type.
type failure struct {
	Text     string                 `json:"text"`
	TooLarge *testbed.TooLargeError `json:"too_large,omitempty"`
}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: err.Error()}
	_ = errors.As(err, &f.TooLarge)
	return f
}

// error is the error again.
func (f *failure) error() error {
	switch {
	case f == nil:
		return nil
	case f.TooLarge != nil:
		return fmt.Errorf("%w", f.TooLarge)
	}
	return errors.New(f.Text)
}
