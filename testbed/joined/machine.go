package joined

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"netdelta/testbed"
	"netdelta/testbed/rpc"
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
