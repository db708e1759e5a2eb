package engine

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Connect opens the connections of a client without the client: another process may take them over (Borrow), which then
// uses connections of this process's network namespace and control group. The caller closes the files.
func Connect(ctx context.Context, cfg Config) ([]int, error) {
	fds, err := connections(ctx, &cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %v to %v: %w", cfg.Workload, cfg.Local, cfg.Remote, err)
	}
	return fds, nil
}

// connections are the client's, connected, or those that ctx brings.
func connections(ctx context.Context, cfg *Config) ([]int, error) {
	if brought, ok := ctx.Value(socketsKey{}).([]int); ok {
		if len(brought) != cfg.connections() {
			return nil, fmt.Errorf("take over %d connections: %d are needed", len(brought), cfg.connections())
		}
		return brought, nil
	}
	var fds []int
	for i := range cfg.connections() {
		fd, err := dial(ctx, cfg, i)
		if err != nil {
			return nil, errors.Join(err, CloseAll(fds))
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

type sharedKey struct{}

// Shared has Serve answer datagrams of all clients. Otherwise a server answers its own alone, the first that sends it something.
func Shared(ctx context.Context) context.Context { return context.WithValue(ctx, sharedKey{}, true) }

func isShared(ctx context.Context) bool {
	shared, _ := ctx.Value(sharedKey{}).(bool)
	return shared
}

type socketsKey struct{}

// WithSockets has Dial and Reconnect take these connections for the client's, which closes them, in place of its own.
func WithSockets(ctx context.Context, fds []int) context.Context {
	return context.WithValue(ctx, socketsKey{}, fds)
}

// Borrow gets handles on another process's files, by pidfd_getfd(2). It needs the right to trace that process.
func Borrow(pid int, files []int) (own []int, err error) {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("find process %d to take its connections over: %w", pid, err)
	}
	for _, f := range files {
		fd, err := unix.PidfdGetfd(process, f, 0)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("take a connection over from process %d: %w", pid, err), CloseAll(own), unix.Close(process))
		}
		own = append(own, fd)
	}
	return own, unix.Close(process)
}

// CloseAll closes files.
func CloseAll(fds []int) error {
	var errs []error
	for _, fd := range fds {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}

// Renewable is a client whose connections can be replaced. Its figures go on: totals, histogram, and what the kernel counted at its
// sockets.
type Renewable interface {
	// Disconnect closes the connections. dropLast is as in BurstSpec.
	Disconnect(dropLast bool) error
	// Reconnect opens others between the same addresses, or takes the ones that WithSockets brings, and warms them. After an error the
	// client is of no more use.
	Reconnect(ctx context.Context) error
}

// Disconnect implements Renewable.
func (c *client) Disconnect(dropLast bool) error {
	c.burst.Lock()
	defer c.burst.Unlock()
	c.life.Lock()
	defer c.life.Unlock()
	if c.failed != nil {
		return c.failed
	}
	c.tally.Settle(dropLast)
	if len(c.sockets) > 0 {
		sockets, tcp, err := c.last.read(c.sockets, c.cfg.Kind.datagrams())
		if err != nil {
			return err
		}
		c.earlier.dropped += sockets.Dropped
		if tcp != nil {
			c.earlier.retransmits += tcp.Retransmits
		}
	}
	err := c.release()
	c.failed = fmt.Errorf("%s: it has no connection now", c.cfg.Workload)
	return err
}

// Reconnect implements Renewable.
func (c *client) Reconnect(ctx context.Context) error {
	c.burst.Lock()
	defer c.burst.Unlock()
	c.life.Lock()
	defer c.life.Unlock()
	if c.closed || c.ctl != nil {
		return fmt.Errorf("%s: %v: only a client that was disconnected connects again", c.cfg.Workload, c.cfg.Remote)
	}
	fresh, err := dialWarm(ctx, c.cfg)
	if err != nil {
		c.failed = err
		return err
	}
	c.sockets, c.files, c.signal, c.done, c.arena, c.ctl, c.last = fresh.sockets, fresh.files, fresh.signal, fresh.done, fresh.arena, fresh.ctl, fresh.last
	c.failed = nil
	return nil
}
