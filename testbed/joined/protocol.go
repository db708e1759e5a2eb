package joined

import (
	"encoding/json"
	"errors"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/rpc"
	"netdelta/unit"
)

// Verb is the argument with which the program serves.
const Verb = "node"

// The operations. From close on they are about a lab that is open.
const (
	opSupports = "supports" // takes a testbed.Spec
	opOpen     = "open"     // takes openArgs, and answers with the lab's number
	opLacking  = "lacking"  // takes names of programs, and answers with those that are not there
	opKill     = "kill"     // takes the number of a process
	opPackets  = "packets"  // takes the number of a tap
	opUntap    = "untap"    // likewise
	opClose    = "close"
	opSwap     = "swap" // takes the name of a network
	opLinks    = "links"
	opSysctls  = "sysctls"
	opCounters = "counters"
	opStacks   = "stacks"
	opTap      = "tap"     // takes namespaces, and answers with the tap's number
	opFit      = "fit"     // takes fitArgs
	opLargest  = "largest" // takes fitArgs without a size, and answers with a Largest
	opStart    = "start"   // takes startArgs; messages of the process come back
)

type openArgs struct {
	Spec testbed.Spec `json:"spec"`
	Part lab.NodePart `json:"part"` // its cards are named as in Node
	// Whole has the machine build all nodes, joined there.
	Whole bool `json:"whole,omitempty"`
}

// toLab is what an operation about a lab takes.
type toLab[A any] struct {
	Lab  int `json:"lab"`
	Args A   `json:"args"`
}

type fitArgs struct {
	From int        `json:"from"`
	To   int        `json:"to"`
	Size unit.Bytes `json:"size"`
}

// Largest is how large packets can be between two pods.
type Largest struct {
	// Way is the size of the largest packets that arrived, Device the MTU of the way's first device; both are in bytes.
	Way    int `json:"way"`
	Device int `json:"device"`
}

type startArgs struct {
	Pod     int             `json:"pod"`
	Command testbed.Command `json:"command"`
}

// sampled is the answer to opPackets.
type sampled struct {
	Packets []testbed.Packet `json:"packets"`
	Missed  int              `json:"missed"`
}

// entry is an entry of a map whose keys JSON can't have.
type entry[K comparable, V any] struct {
	Key   K `json:"key"`
	Value V `json:"value"`
}

func entries[K comparable, V any](m map[K]V) []entry[K, V] {
	var all []entry[K, V]
	for k, v := range m {
		all = append(all, entry[K, V]{k, v})
	}
	return all
}

func merged[K comparable, V any](parts [][]entry[K, V]) map[K]V {
	all := map[K]V{}
	for _, p := range parts {
		for _, e := range p {
			all[e.Key] = e.Value
		}
	}
	return all
}

const kindTyped = "typed"

// typed are the types that an error keeps on its way: at most one is given.
type typed struct {
	error

	Unsupported *testbed.UnsupportedError `json:"unsupported,omitempty"`
	TooLarge    *testbed.TooLargeError    `json:"too_large,omitempty"`
	NotPossible *network.NotPossibleError `json:"not_possible,omitempty"`
	Denied      *testbed.PermissionError  `json:"denied,omitempty"` // without the error that it wraps
	Why         string                    `json:"why,omitempty"`    // the text of that error
}

// Kind implements rpc.Kinder.
func (t typed) Kind() (string, any) {
	var denied *testbed.PermissionError
	switch {
	case errors.As(t.error, &t.Unsupported), errors.As(t.error, &t.TooLarge), errors.As(t.error, &t.NotPossible):
	case errors.As(t.error, &denied):
		t.Why = denied.Err.Error()
		t.Denied = &testbed.PermissionError{Doing: denied.Doing, Need: denied.Need, Fix: denied.Fix}
	default:
		return "", nil
	}
	return kindTyped, t
}

// fromMachine gives an error that came from a machine its type again.
func fromMachine(err error) error {
	there, ok := errors.AsType[*rpc.Error](err)
	if !ok {
		return err
	}
	far := &machineError{text: there.Text}
	var t typed
	if there.Kind == kindTyped {
		_ = json.Unmarshal(there.Detail, &t) // both ends have the same types, as the greeting has shown
	}
	switch {
	case t.Unsupported != nil:
		far.cause = t.Unsupported
	case t.TooLarge != nil:
		far.cause = t.TooLarge
	case t.NotPossible != nil:
		far.cause = t.NotPossible
	case t.Denied != nil:
		t.Denied.Err = errors.New(t.Why)
		far.cause = t.Denied
	}
	return far
}

// machineError is what went wrong on another machine.
type machineError struct {
	text  string
	cause error // of a type of package testbed or network, else nil
}

// Error implements error.
func (e *machineError) Error() string { return e.text }

// Unwrap makes errors.As find what the error was on its machine.
func (e *machineError) Unwrap() error { return e.cause }
