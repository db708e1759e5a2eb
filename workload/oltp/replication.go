package oltp

import (
	"context"
	"time"

	"netdelta/result"
)

// Galera sums up what replication took since its figures were last cleared, which it does by a timer alone, of a second at
// least: keptFigures keeps them for longer than a trial, clearedFigures has them cleared in a second.
const (
	keptFigures    = "evs.stats_report_period=PT1H"
	clearedFigures = "evs.stats_report_period=PT1S"
)

// clearTime is how long clearing may take. Figures that were not cleared by then hold more than the trial's.
const clearTime = 3 * time.Second

// clear has the figures of the first node cleared, which is waited for by cleared.
func (c *client) clear(ctx context.Context) error {
	now, err := c.status(ctx)
	if err != nil {
		return err
	}
	if r := now.replication(); r != nil {
		c.stale = r.Samples
		return c.set(ctx, clearedFigures)
	}
	return nil
}

// cleared returns when the figures are cleared, and has them kept from then on.
func (c *client) cleared(ctx context.Context) error {
	if c.stale == 0 {
		return nil
	}
	for begin := time.Now(); time.Since(begin) < clearTime; time.Sleep(poll) {
		now, err := c.status(ctx)
		if err != nil {
			return err
		}
		if r := now.replication(); r == nil || r.Samples < c.stale {
			break
		}
	}
	c.stale = 0
	return c.set(ctx, keptFigures)
}

func (c *client) set(ctx context.Context, option string) error {
	_, err := askAt(ctx, c.home, c.node, "set global wsrep_provider_options='"+option+"'")
	return err
}

// statusTime is how long the first node may be out of reach around a burst: a network that was just swapped takes a moment.
const statusTime = 5 * time.Second

// status asks the first node how it is.
func (c *client) status(ctx context.Context) (status, error) {
	if c.foreign {
		return status{}, nil // it need not be one of a group, nor let the user ask
	}
	for begin := time.Now(); ; time.Sleep(poll) {
		rows, err := askAt(ctx, c.home, c.node, statusStatement)
		if err == nil || ctx.Err() != nil || time.Since(begin) > statusTime {
			return readStatus(rows), err
		}
	}
}

// between is what replication took between two readings of figures; nil where nothing was replicated. Its least and its
// greatest are those since the figures were cleared.
func between(before, after *result.Replication) *result.Replication {
	if before == nil || after == nil || after.Samples < before.Samples {
		return after
	}
	if after.Samples == before.Samples {
		return nil
	}
	sum := after.Mean.Seconds()*float64(after.Samples) - before.Mean.Seconds()*float64(before.Samples)
	r := *after
	r.Samples -= before.Samples
	r.Mean = min(max(time.Duration(sum/float64(r.Samples)*float64(time.Second)), r.Min), r.Max)
	return &r
}

// merge is what two spans of replication were together; either may be nil.
func merge(a, b *result.Replication) *result.Replication {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	all := a.Samples + b.Samples
	mean := (a.Mean.Seconds()*float64(a.Samples) + b.Mean.Seconds()*float64(b.Samples)) / float64(all)
	return &result.Replication{
		Min: min(a.Min, b.Min), Mean: time.Duration(mean * float64(time.Second)), Max: max(a.Max, b.Max), Samples: all,
	}
}
