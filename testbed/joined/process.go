package joined

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"netdelta/testbed"
	"netdelta/testbed/rpc"
)

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
