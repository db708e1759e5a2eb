package lab

import (
	"context"
	"errors"
	"slices"

	"netdelta/network"
)

// companion is something that a network has besides its devices, which doesn't go with its namespaces by itself: a process, or
// what another program has been told.
type companion interface {
	// start is called once all devices of the network are there.
	start(ctx context.Context, l *Testbed) error
	// close ends it, before the network is torn down. It is idempotent, and ends also what was never started.
	close() error
}

// processed is a companion that does part of the network's work in a process.
type processed interface {
	// where is the node and the number of the process.
	where() (network.Space, int)
}

// companions are a network's, in the order in which they were made.
type companions []companion

// start starts all.
func (all companions) start(ctx context.Context, l *Testbed) error {
	for _, c := range all {
		if err := c.start(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// close ends all, the last one first.
func (all companions) close() error {
	var err error
	for _, c := range slices.Backward(all) {
		err = errors.Join(err, c.close())
	}
	return err
}
