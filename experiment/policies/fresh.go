package policies

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"netdelta/testbed"
	"netdelta/unit"
)

// fresh measures fresh pods under a policy that admits pods by a label: each time one with the label and one without, at once. The policy
// is in effect before the first of them: the pod that probes has no such label and is refused.
func fresh(ctx context.Context, g testbed.PolicyTarget, c Config, k *keeper, count int, done *progress) error {
	if err := g.Restrict(ctx); err != nil {
		return err
	}
	t, err := await(ctx, g, c.Within)
	if err != nil {
		return err
	}
	if t.Open {
		return errAlone
	}
	for ; done.fresh < c.Repeat; done.fresh++ {
		admitted, barred, err := both(ctx, g, c, count)
		if err != nil {
			return fmt.Errorf("fresh pods, repetition %d: %w", done.fresh+1, err)
		}
		if err := still(g); err != nil {
			return err
		}
		if err := k.add(admitted, barred); err != nil {
			return err
		}
		c.tell("%s, %d of %d: a fresh pod that is let in passes after %v; of one that is not %d packets passed", unit.Counted(count, "policy"), done.fresh+1, c.Repeat,
			admitted.After.Round(time.Millisecond), barred.Slipped)
	}
	return nil
}

// both measures a fresh pod that is admitted and one that is barred.
func both(ctx context.Context, g testbed.PolicyTarget, c Config, count int) (admitted, barred Sample, err error) {
	var errs [2]error
	var all sync.WaitGroup
	for i, s := range []*Sample{&admitted, &barred} {
		*s = Sample{Policies: count, Change: []Change{Admitted, Barred}[i]}
		all.Go(func() {
			var v testbed.FreshResult
			if v, errs[i] = g.TryFresh(ctx, s.Change == Admitted, c.Every, c.Within); errs[i] != nil {
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
	return admitted, barred, errors.Join(errs[:]...)
}

// unsettled is the error of a fresh pod for which a policy has no effect in time.
func unsettled(change Change, v testbed.FreshResult, within time.Duration) error {
	if change == Admitted {
		return fmt.Errorf("none of %d packets of a fresh pod passed within %v, although the policy lets it in", v.Sent, within)
	}
	return fmt.Errorf("%d of %d packets of a fresh pod passed within %v, although no policy lets it in", v.Passed, v.Sent, within)
}
