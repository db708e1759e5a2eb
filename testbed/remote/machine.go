package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"netdelta/network"
	"netdelta/result"
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

// ask makes a request and waits for the answer. When ctx ends first, the request is given up.
func (m *Machine) ask(ctx context.Context, op string, r request) (answer, error) {
	a, err := rpc.Ask[answer](ctx, m.conn, op, r)
	return a, far(err)
}

// Supports asks what testbed.Provider's Supports answers, of the machine.
func (m *Machine) Supports(ctx context.Context, spec testbed.Spec) error {
	_, err := m.ask(ctx, opSupports, request{Spec: spec})
	return err
}

// Open builds the part of a testbed that concerns one node. The part's card is named by its address.
func (m *Machine) Open(ctx context.Context, spec testbed.Spec, part lab.NodePart) (*Part, error) {
	// Not canceled with ctx: then the part would never be closed.
	a, err := m.ask(context.WithoutCancel(ctx), opOpen, request{Spec: spec, Part: part})
	if err != nil {
		return nil, err
	}
	return &Part{machine: m, lab: a.Lab}, nil
}

// Part is what a machine has built of a testbed. Its methods are lab.Testbed's, for the namespaces on that machine.
type Part struct {
	machine *Machine
	lab     int
}

func (p *Part) ask(ctx context.Context, op string, r request) (answer, error) {
	r.Lab = p.lab
	return p.machine.ask(ctx, op, r)
}

// Links lists the devices.
func (p *Part) Links(ctx context.Context) ([]result.Link, error) {
	a, err := p.ask(ctx, opLinks, request{})
	return a.Links, err
}

// Sysctls are the kernel settings that matter.
func (p *Part) Sysctls(ctx context.Context) (map[string]string, error) {
	a, err := p.ask(ctx, opSysctls, request{})
	return a.Sysctls, err
}

// Counters reads the counters of all devices.
func (p *Part) Counters(ctx context.Context) (map[network.Device]testbed.Counters, error) {
	a, err := p.ask(ctx, opCounters, request{})
	all := map[network.Device]testbed.Counters{}
	for _, c := range a.Counters {
		all[c.Device] = c.Counters
	}
	return all, err
}

// Stacks reads what the IP stacks have counted.
func (p *Part) Stacks(ctx context.Context) (map[network.Space]testbed.Stack, error) {
	a, err := p.ask(ctx, opStacks, request{})
	all := map[network.Space]testbed.Stack{}
	for _, s := range a.Stacks {
		all[s.Space] = s.Stack
	}
	return all, err
}

// Swap replaces the network.
func (p *Part) Swap(ctx context.Context, name string) error {
	_, err := p.ask(context.WithoutCancel(ctx), opSwap, request{Network: name})
	return err
}

// Fit sends a datagram from one pod, which is here, to another.
func (p *Part) Fit(ctx context.Context, from, to int, size unit.Bytes) error {
	_, err := p.ask(ctx, opFit, request{From: from, To: to, Size: size})
	return err
}

// Tap samples packets.
func (p *Part) Tap(ctx context.Context, spaces []network.Space) (testbed.Tap, error) {
	a, err := p.ask(ctx, opTap, request{Spaces: spaces})
	if err != nil {
		return nil, err
	}
	return &tap{part: p, number: a.Tap}, nil
}

// Close removes the part. It is idempotent.
func (p *Part) Close() error {
	_, err := p.ask(context.Background(), opClose, request{})
	var there *Error
	if errors.As(err, &there) && there.Text == lab.ErrClosed.Error() {
		return nil
	}
	return err
}

// tap is a sample of packets on another machine.
type tap struct {
	part   *Part
	number int
	closed bool
}

// Packets implements testbed.Tap.
func (t *tap) Packets() (seen []testbed.Packet, missed int, err error) {
	a, err := t.part.ask(context.Background(), opPackets, request{Tap: t.number})
	return a.Packets, a.Missed, err
}

// Close implements testbed.Tap.
func (t *tap) Close() error {
	if t.closed {
		return nil
	}
	t.closed = true
	_, err := t.part.ask(context.Background(), opUntap, request{Tap: t.number})
	return err
}
