package pairs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// ErrNothing says that no pair could be measured.
var ErrNothing = errors.New("no pair of nodes could be measured")

// Run measures. The outcome holds what was measured also where the error is that of ctx; the error matches ErrNothing where
// nothing was measured at all.
func Run(ctx context.Context, c Config) (Outcome, error) {
	o := Outcome{
		Testbed: c.Driver.Kind(), Workload: c.Workload.Name, Params: c.Params, Metric: "p50", Unit: "ns", Better: "lower",
		Burst: c.Burst, Seed: c.Seed, Started: time.Now(),
	}
	if !latencies(c.Workload) {
		o.Metric, o.Unit, o.Better = "throughput", "bit/s", "higher"
	}
	if err := c.Check(); err != nil {
		return o, err
	}
	for _, name := range c.Networks {
		o.Networks = append(o.Networks, Network{Network: name})
	}
	var failed error
	for build := range c.Builds {
		if failed = errors.Join(runBuild(ctx, c, &o, build), ctx.Err()); failed != nil {
			break
		}
	}
	o.Finished = time.Now()
	measured := false
	for i := range o.Networks {
		n := &o.Networks[i]
		slices.SortFunc(n.Pairs, func(a, b Pair) int {
			return 2*o.compare(a.Client, b.Client) + o.compare(a.Server, b.Server)
		})
		measured = measured || len(n.Pairs) > 0
	}
	if failed == nil && !measured {
		failed = ErrNothing
		if all := o.Networks[0].Failures; len(all) > 0 {
			failed = fmt.Errorf("%w: %s", ErrNothing, all[0].Why)
		}
	}
	return o, failed
}

// compare orders nodes as the outcome does: -1, 0 or 1.
func (o *Outcome) compare(a, b string) int {
	switch i, j := slices.Index(o.Nodes, a), slices.Index(o.Nodes, b); {
	case i < j:
		return -1
	case i > j:
		return 1
	}
	return strings.Compare(a, b)
}

// runBuild sets all networks up, measures all their pairs in rounds of random order, and removes them.
func runBuild(ctx context.Context, c Config, o *Outcome, build int) (err error) {
	var stands []*stand
	defer func() {
		for _, s := range stands {
			s.settle()
			err = errors.Join(err, s.close())
		}
	}()
	type turn struct {
		*stand
		*seat
	}
	var turns []turn
	rng := rand.New(rand.NewPCG(c.Seed, uint64(build)))
	for _, i := range rng.Perm(len(o.Networks)) {
		n := &o.Networks[i]
		began := time.Now()
		s, err := open(ctx, c, n, build)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			n.Failures = append(n.Failures, Failure{Build: build, Why: err.Error()})
			c.log("build %d: %v", build+1, err)
			continue
		}
		stands = append(stands, s)
		o.know(s)
		for _, at := range s.seats {
			turns = append(turns, turn{s, at})
		}
		c.log("build %d of %d, %s: %d pairs connected after %v", build+1, c.Builds, n.Network, len(s.seats), time.Since(began).Round(time.Millisecond))
	}
	for range c.Rounds {
		rng.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
		for _, t := range turns {
			if t.lost {
				continue
			}
			t.burst(ctx, t.seat)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// know takes the nodes of a testbed into the outcome's list.
func (o *Outcome) know(s *stand) {
	for _, p := range s.tb.Pods() {
		if !slices.Contains(o.Nodes, p.Node()) {
			o.Nodes = append(o.Nodes, p.Node())
		}
	}
}
