package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netdelta/internal/netns"
	"netdelta/internal/owner"
	"netdelta/testbed"
)

// Processes are programs that run in network namespaces which others have made. They are safe for concurrent use.
type Processes struct {
	mark    string // what their environment carries
	running processes
}

// NewProcesses are none yet.
func NewProcesses() (*Processes, error) {
	self, err := owner.Self()
	if err != nil {
		return nil, err
	}
	return &Processes{mark: fmt.Sprintf("%s-%d-0", self, time.Now().UnixNano())}, nil
}

// Start runs a command in a namespace, which errors call by the pod's name.
func (ps *Processes) Start(ctx context.Context, ns *netns.Namespace, cmd testbed.Command, pod string) (testbed.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %s in %s: %w", cmd.Path, pod, err)
	}
	p, err := start(ns, cmd, ps.mark, pod)
	if err != nil {
		return nil, fmt.Errorf("start %s in %s: %w", cmd.Path, pod, err)
	}
	ps.running.add(p)
	return p, nil
}

// Close kills what still runs, and waits until it has ended. It is idempotent.
func (ps *Processes) Close() error { return errors.Join(ps.running.killAll(), killStrays(ps.mark)) }
