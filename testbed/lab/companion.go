package lab

import (
	"context"
	"errors"
	"io"
	"slices"
)

// companions are what a network has in addition to its devices and does not go with its namespaces by itself: processes, and what
// other programs have been told, in the order in which they were made. Their Close is called before the network is torn down; it is
// idempotent, and also ends what was never started.
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
