package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netdelta/agent"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// MaxClients is how many clients a fleet may have.
const MaxClients = 10_000

// Config is what to measure, and where.
type Config struct {
	// Open makes the ground of a network.
	Open func(ctx context.Context, network string, clients, servers int) (testbed.Fleet, error)
	// Program is how to start the agent in pods.
	Program  agent.Program
	Workload workload.Workload
	Params   result.Params
	// Networks are what is measured. The first is what the others are held against; where there are others it stands twice.
	Networks []string
	// Clients fire together, at Servers; each server has its share of them.
	Clients, Servers int
	// Builds is how often everything is set up anew, Bursts how often each network's fleet fires in each build.
	Builds, Bursts int
	// Burst is how long the clients fire each time, after Warmup.
	Burst, Warmup time.Duration
	Seed          uint64
	// AtOnce is how many agents are started or armed at the same time; 0 is 16.
	AtOnce int
	// Log is told what happens, in lines without an end; it may be nil.
	Log func(line string)
}

// Check says what is wrong with a configuration.
func (c Config) Check() error {
	switch {
	case len(c.Networks) == 0:
		return errors.New("a fleet needs a network")
	case c.Clients < 1 || c.Clients > MaxClients:
		return fmt.Errorf("%d clients: need 1 to %d", c.Clients, MaxClients)
	case c.Servers < 1 || c.Servers > c.Clients:
		return fmt.Errorf("%d servers: need 1 to %d, the number of clients", c.Servers, c.Clients)
	case c.Builds < 1 || c.Bursts < 1:
		return fmt.Errorf("%d builds of %d bursts: need at least 1 of each", c.Builds, c.Bursts)
	case c.Burst < minBurst:
		return fmt.Errorf("a burst of %v: need at least %v", c.Burst, minBurst)
	case c.Warmup < 0:
		return fmt.Errorf("a warm-up of %v: need 0 or more", c.Warmup)
	case c.Workload.Serve == nil || c.Workload.Dial == nil:
		return fmt.Errorf("workload %s is served by a cluster of its own, which a fleet has no room for: take tcp-rr, udp-rr, tcp-stream or udp-stream", c.Workload.Name)
	case c.Params.Conditions.Policy == result.PolicyKubernetes:
		return errors.New("--factor policy=kubernetes: a fleet makes no NetworkPolicy objects; what they cost is measured by netdelta run or pairs")
	case len(c.Workload.Demands(c.Params).Programs) > 0:
		return fmt.Errorf("workload %s starts programs of others, which are not in each pod: take tcp-rr, udp-rr, tcp-stream or udp-stream", c.Workload.Name)
	}
	if c.Workload.Check != nil {
		return c.Workload.Check(c.Params)
	}
	return nil
}

// minBurst is the shortest burst: clients begin within milliseconds of each other, which must be little against it.
const minBurst = 50 * time.Millisecond
