package joined

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"netdelta/testbed"
	"netdelta/testbed/rpc"
)

// process is a program that runs in a pod of another machine.
type process struct {
	machine *Machine
	what    string
	stream  *rpc.Stream
	pid     int
	out     *io.PipeReader

	done   chan struct{} // closed when it has ended
	err    error         // set before done is closed
	stderr string        // likewise: it comes when the process has ended

	close    sync.Once
	closeErr error
}

var _ testbed.Process = (*process)(nil)

// start starts a program in a pod that is on the part's machine. The context covers the start, not the life of the process.
func (p part) start(ctx context.Context, pod int, cmd testbed.Command) (testbed.Process, error) {
	fail := func(err error) (testbed.Process, error) {
		return nil, fmt.Errorf("start %s in pod%d: %w", cmd.Path, pod, err)
	}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	stream, err := p.machine.conn.Begin(opStart, toLab[startArgs]{p.lab, startArgs{pod, cmd}})
	if err != nil {
		return fail(err)
	}
	kind, content, err := rpc.ReadMessage(stream)
	var s rpc.Start
	switch {
	case err != nil:
	case kind == rpc.Started:
		err = json.Unmarshal(content, &s)
	default:
		var e rpc.Exit
		if err = json.Unmarshal(content, &e); err == nil {
			err = errors.New(e.Error)
		}
	}
	if err != nil {
		return fail(errors.Join(err, stream.Close()))
	}
	reader, into := io.Pipe()
	started := &process{
		machine: p.machine, what: fmt.Sprintf("%s in pod%d", cmd.Path, pod), stream: stream, pid: s.PID, out: reader, done: make(chan struct{}),
	}
	go started.follow(into)
	return started, nil
}

// follow takes messages to the end.
func (p *process) follow(into *io.PipeWriter) {
	exit, err := rpc.Follow(p.stream, func(kind rpc.MessageKind, content []byte) error {
		switch kind {
		case rpc.Stdout:
			_, _ = into.Write(content) // who reads no more does not want to know
		case rpc.Stderr:
			p.stderr += string(content)
		default:
		}
		return nil
	})
	switch {
	case err != nil:
		err = fmt.Errorf("%s: its machine is gone: %w", p.what, err)
	case exit.Error != "":
		err = errors.New(exit.Error)
	}
	_ = into.Close() // it never fails
	p.err = errors.Join(err, p.stream.Close())
	close(p.done)
}

// Read implements testbed.Process.
func (p *process) Read(b []byte) (int, error) { return p.out.Read(b) }

// Write implements testbed.Process.
func (p *process) Write(b []byte) (int, error) { return p.stream.Write(b) }

// PID implements testbed.Process: it is the process's ID on the other machine.
func (p *process) PID() int { return p.pid }

// Wait implements testbed.Process.
func (p *process) Wait() error {
	<-p.done
	return p.err
}

// Kill implements testbed.Process.
func (p *process) Kill() error {
	_ = p.out.Close() // it never fails; what is still to come is thrown away
	select {
	case <-p.done:
		return nil
	default:
	}
	_, err := ask[any](context.Background(), p.machine, opKill, p.pid)
	return err
}

// Close implements testbed.Process. The grace period is given, and the process killed, on its own machine: then its error says so.
func (p *process) Close() error {
	p.close.Do(func() {
		p.closeErr = p.stream.CloseWrite()
		_ = p.out.Close() // as in Kill
		<-p.done
		p.closeErr = errors.Join(p.closeErr, p.err)
	})
	return p.closeErr
}

// FailureReason implements testbed.Process: the error of Wait has it.
func (p *process) FailureReason() string { return "" }

// Stderr implements testbed.Process: it is known when the process has ended.
func (p *process) Stderr() string {
	select {
	case <-p.done:
		return p.stderr
	default:
		return ""
	}
}
