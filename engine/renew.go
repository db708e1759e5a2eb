package engine

import (
	"context"
	"fmt"
)

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
