// Package joined opens testbeds whose nodes are separate machines, such as guests. Each machine builds the part of a testbed that
// concerns its node: it runs Serve over standard input and output, and the controller asks it through a Machine.
package joined

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/rpc"
	"netdelta/unit"
)

// Machine is another machine, on which Serve runs. It is safe for concurrent use.
type Machine struct{ conn *rpc.Conn }

// Connect talks to the machine at the other end of rwc, which it owns from now on, and waits for its greeting.
func Connect(ctx context.Context, rwc io.ReadWriteCloser) (*Machine, error) {
	m := &Machine{conn: rpc.NewConn(rwc, true)}
	ctx, cancel := context.WithTimeout(ctx, greetWithin)
	defer cancel()
	hello, err := rpc.Ask[rpc.Greeting](ctx, m.conn, rpc.OpHello, nil)
	if err == nil {
		err = hello.Check()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("greet a machine: %w", err), m.Close())
	}
	return m, nil
}

// greetWithin is how long a machine may take to start its end. It takes milliseconds, and seconds in an emulated guest.
const greetWithin = time.Minute

// Close ends the conversation, and with it all that was opened on the machine. It is idempotent.
func (m *Machine) Close() error { return m.conn.Close() }

// Ping returns when the machine has answered that it is there.
func (m *Machine) Ping(ctx context.Context) error {
	_, err := ask[any](ctx, m, rpc.OpHello, nil)
	return err
}

// Silent is for how long this end or the machine has said nothing.
func (m *Machine) Silent() time.Duration { return m.conn.Silent() }

// Done is closed when the conversation has ended.
func (m *Machine) Done() <-chan struct{} { return m.conn.Done() }

// unlessLost drops an error about what is to end on a machine that is gone, since all of it has ended with the conversation.
func (m *Machine) unlessLost(err error) error {
	select {
	case <-m.Done():
		return nil
	default:
		return err
	}
}

// ask makes a request and waits for the answer. When ctx ends first, the request is given up.
func ask[R any](ctx context.Context, m *Machine, op string, args any) (R, error) {
	value, err := rpc.Ask[R](ctx, m.conn, op, args)
	return value, fromMachine(err)
}

// part is what a machine has built of a testbed: a lab of that number there.
type part struct {
	machine *Machine
	lab     int
}

// askLab asks about the lab of a part.
func askLab[R any](ctx context.Context, p part, op string, args any) (R, error) {
	return ask[R](ctx, p.machine, op, toLab[any]{p.lab, args})
}

// tap is a sample of packets on several machines.
type tap struct {
	parts  []partTap
	closed bool
}

// partTap is a tap of that number on a machine.
type partTap struct {
	machine *Machine
	number  int
}

// Packets implements testbed.Tap.
func (t *tap) Packets() (seen []testbed.Packet, missed int, err error) {
	for _, p := range t.parts {
		got, failed := ask[sampled](context.Background(), p.machine, opPackets, p.number)
		seen, missed, err = append(seen, got.Packets...), missed+got.Missed, errors.Join(err, failed)
	}
	return seen, missed, err
}

// Close implements testbed.Tap.
func (t *tap) Close() error {
	if t.closed {
		return nil
	}
	t.closed = true
	var err error
	for _, p := range t.parts {
		_, failed := ask[any](context.Background(), p.machine, opUntap, p.number)
		err = errors.Join(err, p.machine.unlessLost(failed))
	}
	return err
}

// process is a program that runs in a pod of another machine.
type process struct {
	*rpc.Process
	close    sync.Once
	closeErr error
}

var _ testbed.Process = (*process)(nil)

// start starts a program in a pod that is on the part's machine. The context covers the start, not the life of the process.
func (p part) start(ctx context.Context, pod int, cmd testbed.Command) (testbed.Process, error) {
	what := fmt.Sprintf("%s in pod%d", cmd.Path, pod)
	fail := func(err error) (testbed.Process, error) { return nil, fmt.Errorf("start %s: %w", what, err) }
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	stream, err := p.machine.conn.Begin(opStart, toLab[startArgs]{p.lab, startArgs{pod, cmd}})
	if err != nil {
		return fail(err)
	}
	kill := func(pid int) error {
		_, err := ask[any](context.Background(), p.machine, opKill, pid)
		return err
	}
	started, err := rpc.NewProcess(stream, what, nil, nil, kill, func(err error) error { return fmt.Errorf("%s: its machine is gone: %w", what, err) })
	if err != nil {
		return fail(err)
	}
	return &process{Process: started}, nil
}

// Wait implements testbed.Process. The error of a program that failed reads as it did on its machine.
func (p *process) Wait() error {
	err := p.Process.Wait()
	if failed, ok := errors.AsType[*rpc.ExitError](err); ok {
		return errors.New(failed.Exit.Error)
	}
	return err
}

// Close implements testbed.Process. The grace period is given, and the process killed, on its own machine: then its error says so.
func (p *process) Close() error {
	p.close.Do(func() {
		err := p.CloseWrite()
		p.CloseRead()
		p.closeErr = errors.Join(err, p.Wait())
	})
	return p.closeErr
}

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
