package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"netdelta/result"
)

// Run measures. Networks stand side by side in each build and fire in turn, in an order drawn afresh for each round. The outcome
// holds what was measured also where the error is that of ctx; a network that could not be set up in a build is among its
// failures. The error says so when nothing was measured at all.
func Run(ctx context.Context, c Config) (Outcome, error) {
	o := Outcome{
		Workload: c.Workload.Name, Params: c.Params, Clients: c.Clients, Servers: c.Servers, Volley: c.Volley, Seed: c.Seed, Started: time.Now(),
	}
	if err := c.Check(); err != nil {
		return o, err
	}
	sums := newSums(c.Networks)
	var failed error
	for build := range c.Builds {
		if failed = errors.Join(runBuild(ctx, c, sums, build), ctx.Err()); failed != nil {
			break
		}
	}
	o.Finished = time.Now()
	measured := false
	for _, s := range sums {
		n, err := s.closed()
		if err != nil {
			return o, err
		}
		measured = measured || len(n.Volleys) > 0
		o.Networks = append(o.Networks, n)
	}
	if failed == nil && !measured {
		failed = fmt.Errorf("%w: %w", ErrNothing, sums[0].firstWhy())
	}
	return o, failed
}

// ErrNothing says that no fleet of a run measured anything.
var ErrNothing = errors.New("no client of any fleet measured anything")

// newSums are those of the networks: the first is the baseline, and has a twin where there are others.
func newSums(networks []string) []*sum {
	sums := []*sum{newSum(networks[0], result.RoleBaseline)}
	if len(networks) > 1 {
		sums = append(sums, newSum(networks[0], result.RoleTwin))
	}
	for _, n := range networks[1:] {
		sums = append(sums, newSum(n, result.RoleCell))
	}
	return sums
}

// runBuild sets all networks up, has them fire and removes them. A network that fails is left out of the build.
func runBuild(ctx context.Context, c Config, sums []*sum, build int) (err error) {
	var fleets []*fleet
	defer func() {
		for _, f := range fleets {
			f.sum.settle(f.build, f.clients)
			err = errors.Join(err, f.close())
		}
	}()
	rng := rand.New(rand.NewPCG(c.Seed, uint64(build)))
	for _, i := range rng.Perm(len(sums)) {
		s := sums[i]
		f, err := muster(ctx, c, s, s.network.Network, build)
		if ctx.Err() != nil {
			if f != nil {
				fleets = append(fleets, f)
			}
			return ctx.Err()
		}
		if err != nil {
			s.fail(Failure{Build: build, Why: err.Error()})
			c.log("build %d: %v", build+1, err)
			continue
		}
		fleets = append(fleets, f)
		c.log("build %d of %d, %s: %d of %d clients armed after %v, pods after %v", build+1, c.Builds, s.network.Network,
			f.ready(), c.Clients, f.build.Armed.Round(time.Millisecond), f.build.Pods.Round(time.Millisecond))
	}
	for round := range c.Volleys {
		for _, i := range rng.Perm(len(fleets)) {
			fleets[i].fire(ctx, round)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
