package policies

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"netdelta/testbed/kube/inside"
)

// visits has fresh pods come to a gate that lets in guests alone: each time a guest and a stranger at once. The policy is in effect before the
// first of them: the pod that probes, which is no guest, is refused.
func visits(ctx context.Context, g Gate, c Config, k *keeper, count int, done *progress) error {
	if err := g.Guard(ctx); err != nil {
		return err
	}
	t, err := await(ctx, g, c.Within)
	if err != nil {
		return err
	}
	if t.Open {
		return errAlone
	}
	for ; done.visits < c.Repeat; done.visits++ {
		guest, stranger, err := both(ctx, g, c, count)
		if err != nil {
			return fmt.Errorf("fresh pods, repetition %d: %w", done.visits+1, err)
		}
		if err := still(g); err != nil {
			return err
		}
		if err := k.add(guest, stranger); err != nil {
			return err
		}
		c.tell("%d policies, %d of %d: a fresh pod that is let in passes after %v; of one that is not %d packets passed", count, done.visits+1, c.Repeat,
			guest.After.Round(time.Millisecond), stranger.Slipped)
	}
	return nil
}

// both has a guest and a stranger come.
func both(ctx context.Context, g Gate, c Config, count int) (guest, stranger Sample, err error) {
	var errs [2]error
	var all sync.WaitGroup
	for i, s := range []*Sample{&guest, &stranger} {
		*s = Sample{Policies: count, Change: []Change{Admitted, Barred}[i]}
		all.Go(func() {
			var v inside.Visited
			if v, errs[i] = g.Visit(ctx, s.Change == Admitted, c.Every, c.Within); errs[i] != nil {
				return
			}
			s.Before, s.After = v.Before, v.After
			if s.Change == Barred {
				s.Slipped = v.Passed
			}
			if !v.Settled {
				errs[i] = unsettled(s.Change, v, c.Within)
			}
		})
	}
	all.Wait()
	return guest, stranger, errors.Join(errs[:]...)
}

// unsettled is the error of a fresh pod for which a policy has no effect in time.
func unsettled(change Change, v inside.Visited, within time.Duration) error {
	if change == Admitted {
		return fmt.Errorf("none of %d packets of a fresh pod passed within %v, although the policy lets it in", v.Sent, within)
	}
	return fmt.Errorf("%d of %d packets of a fresh pod passed within %v, although no policy lets it in", v.Passed, v.Sent, within)
}
