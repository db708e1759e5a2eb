package experiment

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"netdelta/agent"
	"netdelta/experiment/study"
	"netdelta/internal/machine"
	"netdelta/probe/cpu"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// AssembleRemote is Assemble for pods that run on other machines: no processors are given to workloads, and nothing that is recorded
// is this machine's. The agents are this same program, which the driver brings there.
func AssembleRemote(ctx context.Context, s *study.Study, p Plan, driver testbed.Remote, workloads []workload.Workload) (Config, error) {
	self, err := os.Executable()
	if err != nil {
		return Config{}, fmt.Errorf("finding this program, which the agents are: %w", err)
	}
	about, notes, err := driver.Cluster(ctx)
	if err != nil {
		return Config{}, err
	}
	c := assembled(s, p, driver, workloads)
	c.Run.Notes = append(c.Run.Notes, notes...)
	c.Run.Environment = summed(result.Environment{
		Netdelta: machine.Version(), GoVersion: runtime.Version(), Measuring: []int{}, Controlling: []int{}, Cluster: &about,
	})
	c.Program = agent.Program{Path: self}
	c.Kernel = cpu.Elsewhere()
	return c, nil
}

// refuseLocal takes out cells that ask for what can only be had of this machine.
func (p *Plan) refuseLocal(driver testbed.Driver) {
	for i, c := range p.Cells {
		switch {
		case c.Unsupported != "":
		case c.Params.CPU != "" && c.Params.CPU != "any":
			p.Cells[i].Unsupported = fmt.Sprintf("cpu=%s is unsupported on testbed %s: needs processors that nobody else is given; say cpu: any, or run it with --testbed %s", c.Params.CPU, driver.Name(), here)
		case c.Params.MTU != 0:
			p.Cells[i].Unsupported = fmt.Sprintf("mtu=%d is unsupported on testbed %s: needs links that netdelta builds itself; set it in the cluster's network, or run it with --testbed %s", int64(c.Params.MTU), driver.Name(), here)
		}
	}
}

// What the parts of a run cost on machines elsewhere, as guessed: pods are scheduled and started, and each exchange with an agent goes
// through the cluster's own server.
const (
	remoteStart    = 3 * time.Second
	remoteBuild    = 6 * time.Second
	remoteCell     = 30 * time.Millisecond
	remoteExchange = 4 * time.Millisecond
)

// guessRemote makes the guesses of what a run costs those for machines elsewhere, and plans with no more builds than an interval takes:
// what time is left goes into more of them.
func (p *Plan) guessRemote() {
	if !p.Blocks {
		p.Rules.Builds = min(p.Rules.Builds, p.Rules.MinBuilds)
	}
	p.Rules.Ground = "the cluster"
	p.Costs.Start, p.Costs.Build, p.Costs.Cell = remoteStart, remoteBuild, remoteCell
	p.Costs.Burst += remoteExchange
	for id := range p.Costs.Cells {
		p.Costs.Cells[id] += remoteExchange
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
