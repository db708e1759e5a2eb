package testbedtest

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"netdelta/testbed"
)

// Local is a program of this machine as the process of a pod that a test makes up.
type Local struct {
	io.Reader
	io.WriteCloser
	cmd    *exec.Cmd
	stderr bytes.Buffer
	wait   sync.Once
	err    error
}

var _ testbed.Process = (*Local)(nil)

// StartLocal starts one. within calls what starts it, from a namespace say; nil is from here.
func StartLocal(c testbed.Command, within func(start func() error) error) (*Local, error) {
	p := &Local{cmd: exec.Command(c.Path, c.Args...)}
	p.cmd.Env, p.cmd.Stderr = c.Env, &p.stderr
	var err error
	if p.WriteCloser, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.Reader, err = p.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if within == nil {
		return p, p.cmd.Start()
	}
	return p, within(p.cmd.Start)
}

// PID implements testbed.Process.
func (p *Local) PID() int { return p.cmd.Process.Pid }

// Kill implements testbed.Process.
func (p *Local) Kill() error { return p.cmd.Process.Kill() }

// Wait implements testbed.Process.
func (p *Local) Wait() error {
	p.wait.Do(func() { p.err = p.cmd.Wait() })
	return p.err
}

// Close implements testbed.Process.
func (p *Local) Close() error {
	const grace = 5 * time.Second
	defer time.AfterFunc(grace, func() { _ = p.Kill() }).Stop()
	return errors.Join(p.WriteCloser.Close(), p.Wait())
}

// Stderr implements testbed.Process: all of it, once the program has ended.
func (p *Local) Stderr() string {
	_ = p.Wait() // how it ended is told elsewhere
	return strings.TrimSpace(p.stderr.String())
}

// FailureReason implements testbed.Process.
func (p *Local) FailureReason() string { return "" }
