package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/vm/mux"
	"netdelta/unit"
)

// Machine is another machine, on which Serve runs. It is safe for concurrent use.
type Machine struct{ conn *mux.Conn }

// Connect talks to the machine at the other end of rwc, which it owns from now on.
func Connect(rwc io.ReadWriteCloser) *Machine { return &Machine{conn: mux.New(rwc, true)} }

// Close ends the conversation, and with it all that was opened on the machine. It is idempotent.
func (m *Machine) Close() error { return m.conn.Close() }

// ask makes a request and waits for the answer. When ctx ends first, the request is given up.
func (m *Machine) ask(ctx context.Context, r request) (a answer, err error) {
	stream, err := m.open(r)
	if err != nil {
		return a, err
	}
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
	a, err = readAnswer(stream)
	stop()
	closed := stream.Close()
	switch broken := m.conn.Err(); {
	case ctx.Err() != nil:
		return a, ctx.Err()
	case broken != nil:
		return a, broken
	}
	return a, errors.Join(err, closed)
}

func (m *Machine) open(r request) (*mux.Stream, error) {
	header, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("ask a machine: %w", err)
	}
	return m.conn.Open(header)
}

// Supports asks what testbed.Provider's Supports answers, of the machine.
func (m *Machine) Supports(ctx context.Context, spec testbed.Spec) error {
	_, err := m.ask(ctx, request{Operation: opSupports, Spec: spec})
	return err
}

// Open builds the part of a testbed that concerns one node. The part's card is named by its address.
func (m *Machine) Open(ctx context.Context, spec testbed.Spec, part lab.Part) (*Part, error) {
	// Not given up when ctx ends: then nobody would close it.
	a, err := m.ask(context.WithoutCancel(ctx), request{Operation: opOpen, Spec: spec, Part: part})
	if err != nil {
		return nil, err
	}
	return &Part{machine: m, lab: a.Lab}, nil
}

// Part is what a machine has built of a testbed. Its methods do what those of lab.Testbed do, for the namespaces that are there.
type Part struct {
	machine *Machine
	lab     int
}

func (p *Part) ask(ctx context.Context, r request) (answer, error) {
	r.Lab = p.lab
	return p.machine.ask(ctx, r)
}

// Links lists the devices.
func (p *Part) Links(ctx context.Context) ([]result.Link, error) {
	a, err := p.ask(ctx, request{Operation: opLinks})
	return a.Links, err
}

// Sysctls are the kernel settings that matter.
func (p *Part) Sysctls(ctx context.Context) (map[string]string, error) {
	a, err := p.ask(ctx, request{Operation: opSysctls})
	return a.Sysctls, err
}

// Counters reads those of all devices.
func (p *Part) Counters(ctx context.Context) (map[network.Device]testbed.Counters, error) {
	a, err := p.ask(ctx, request{Operation: opCounters})
	all := map[network.Device]testbed.Counters{}
	for _, c := range a.Counters {
		all[c.Device] = c.Counters
	}
	return all, err
}

// Stacks reads what the IP stacks have counted.
func (p *Part) Stacks(ctx context.Context) (map[network.Space]testbed.Stack, error) {
	a, err := p.ask(ctx, request{Operation: opStacks})
	all := map[network.Space]testbed.Stack{}
	for _, s := range a.Stacks {
		all[s.Space] = s.Stack
	}
	return all, err
}

// Swap replaces the network.
func (p *Part) Swap(ctx context.Context, name string) error {
	_, err := p.ask(context.WithoutCancel(ctx), request{Operation: opSwap, Network: name})
	return err
}

// Fit sends a datagram from one pod, which is here, to another.
func (p *Part) Fit(ctx context.Context, from, to int, size unit.Bytes) error {
	_, err := p.ask(ctx, request{Operation: opFit, From: from, To: to, Size: size})
	return err
}

// Tap samples packets.
func (p *Part) Tap(ctx context.Context, spaces []network.Space) (testbed.Tap, error) {
	a, err := p.ask(ctx, request{Operation: opTap, Spaces: spaces})
	if err != nil {
		return nil, err
	}
	return &tap{part: p, number: a.Tap}, nil
}

// Close removes the part. It is idempotent.
func (p *Part) Close() error {
	_, err := p.ask(context.Background(), request{Operation: opClose})
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
	a, err := t.part.ask(context.Background(), request{Operation: opPackets, Tap: t.number})
	return a.Packets, a.Missed, err
}

// Close implements testbed.Tap.
func (t *tap) Close() error {
	if t.closed {
		return nil
	}
	t.closed = true
	_, err := t.part.ask(context.Background(), request{Operation: opUntap, Tap: t.number})
	return err
}
