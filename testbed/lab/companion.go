package lab

import (
	"context"
	"errors"
	"io"
	"slices"
)

// companions are the parts of a network that the kernel does not remove with its namespaces: processes, borrowed network cards, state
// of plugins. They are in the order in which they were made. Their Close is called before the network is torn down; it is idempotent,
// and also works where the companion was never started.
type companions []io.Closer

// starter is a companion that is to be started once all devices of the network are there.
type starter interface {
	start(ctx context.Context, l *Testbed) error
}

// start starts all.
func (all companions) start(ctx context.Context, l *Testbed) error {
	for _, c := range all {
		if s, ok := c.(starter); ok {
			if err := s.start(ctx, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// close ends all, the last one first.
func (all companions) close() error {
	var err error
	for _, c := range slices.Backward(all) {
		err = errors.Join(err, c.Close())
	}
	return err
}
