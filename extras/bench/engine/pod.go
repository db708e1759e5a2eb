package main

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"os/exec"

	"netdelta/internal/netns"
	"netdelta/testbed"
)

// pod lets an agent run in a namespace.
type pod struct {
	name    string
	in      *netns.Namespace
	address netip.Addr
}

func (p pod) Name() string                { return p.name }
func (p pod) Node() string                { return p.name }
func (p pod) Address() netip.Addr         { return p.address }
func (p pod) Ports() (first, last uint16) { return serverPort, serverPort + 100 }

func (p pod) Start(_ context.Context, cmd testbed.Command) (testbed.Process, error) {
	c := exec.Command(cmd.Path, cmd.Args...)
	c.Env, c.Stderr = cmd.Env, os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := start(p.in, c); err != nil {
		return nil, err
	}
	return &process{Reader: out, WriteCloser: in, cmd: c}, nil
}

// process is an agent's process.
type process struct {
	io.Reader
	io.WriteCloser
	cmd *exec.Cmd
}

func (p *process) PID() int       { return p.cmd.Process.Pid }
func (p *process) Kill() error    { return p.cmd.Process.Kill() }
func (p *process) Stderr() string { return "" } // it goes where this program's goes
func (p *process) Wait() error    { return p.cmd.Wait() }

// FailureReason implements testbed.Process.
func (p *process) FailureReason() string { return "" }

// Close ends the agent: it leaves when its standard input does.
func (p *process) Close() error {
	err := p.WriteCloser.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return errors.Join(err, p.cmd.Wait())
}
