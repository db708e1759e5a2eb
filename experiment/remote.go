package experiment

import (
	"context"
	"fmt"
	"time"

	"netdelta/testbed"
)

// refuseLocal takes out cells that ask for processors or links that the provider can't give.
func (p *Plan) refuseLocal(driver testbed.Provider) {
	able := driver.Capabilities()
	for i, c := range p.Cells {
		switch {
		case c.Unsupported != "":
		case !able.PinsCPUs && c.Params.CPU != "" && c.Params.CPU != "any":
			p.Cells[i].Unsupported = fmt.Sprintf("cpu=%s is unsupported on testbed %s: needs processors that nobody else is given; say cpu: any, or run it with --testbed %s", c.Params.CPU, driver.Kind(), here)
		case !able.BuildsLinks && c.Params.MTU != 0:
			p.Cells[i].Unsupported = fmt.Sprintf("mtu=%d is unsupported on testbed %s: needs links that netdelta builds itself; set it in the cluster's network, or run it with --testbed %s", int64(c.Params.MTU), driver.Kind(), here)
		}
	}
}

// guessElsewhere takes over the provider's guesses of what a run costs, and plans with no more builds than an interval takes: what
// time is left goes into more of them.
func (p *Plan) guessElsewhere(costs testbed.Costs) {
	if !p.Blocks {
		p.Rules.Builds = min(p.Rules.Builds, p.Rules.MinBuilds)
	}
	p.Rules.Ground = costs.Ground
	p.Costs.Start, p.Costs.Build, p.Costs.Cell = costs.Start, costs.Build, costs.Cell
	p.Costs.Burst += costs.Exchange
	for id := range p.Costs.Cells {
		p.Costs.Cells[id] += costs.Exchange
	}
}

// How long it may take until the network reaches a server that has just been started, how long one try may take, and how long it is
// until the next one: a service's addresses are told to every node in their own time.
const (
	reachWithin = 20 * time.Second
	reachEach   = 4 * time.Second
	reachAgain  = 250 * time.Millisecond
)

// await repeats what reaches for a seat's server until it succeeds, the time is over, or one of the ends is gone.
func (s *seat) await(ctx context.Context, reach func() error) error {
	for {
		err := reach()
		if err == nil || ctx.Err() != nil || !s.client.Alive() || !s.server.Alive() || time.Now().After(s.reachBy) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(reachAgain):
		}
	}
}

// proofs is how often the first bursts of a seat far away are run until something comes back.
const proofs = 3

// proveFirst is prove, with fresh connections where nothing comes back from far away: what was sent to a service before its node
// knew where that is keeps going astray, for the kernel remembers where the first packet went.
func (s *seat) proveFirst(ctx context.Context) error {
	err := s.prove(ctx)
	for n := 1; n < proofs && s.far && err == nil && s.silent && s.cluster == nil; n++ {
		if err = s.reopen(ctx); err == nil {
			err = s.prove(ctx)
		}
	}
	if err == nil && s.far && s.silent {
		return fmt.Errorf("nothing comes back from %s", s.whom())
	}
	return err
}
