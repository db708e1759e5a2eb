package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netdelta/experiment/record"
	"netdelta/result"
	"netdelta/testbed"
)

// MaxClients is how many clients a fleet may have.
const MaxClients = 10_000

// Config is what to measure, and where.
type Config struct {
	// Open makes the ground of a network.
	Open func(ctx context.Context, network string, clients, servers int) (testbed.Fleet, error)
	// Load is what each client runs. The first of its networks is what the others are held against; where there are others it stands twice.
	record.Load
	// Clients fire together, at Servers; each server has its share of them.
	Clients, Servers int
	// Bursts is how often each network's fleet fires in each build.
	Bursts int
	// AtOnce is how many agents are started or armed at the same time; 0 is 16.
	AtOnce int
}

// Check says what is wrong with a configuration.
func (c Config) Check() error {
	if err := c.CheckLoad(); err != nil {
		return err
	}
	switch {
	case c.Clients < 1 || c.Clients > MaxClients:
		return fmt.Errorf("%d clients: need 1 to %d", c.Clients, MaxClients)
	case c.Servers < 1 || c.Servers > c.Clients:
		return fmt.Errorf("%d servers: need 1 to %d, the number of clients", c.Servers, c.Clients)
	case c.Bursts < 1:
		return fmt.Errorf("%d bursts: need at least 1", c.Bursts)
	case c.Burst < minBurst:
		return fmt.Errorf("a burst of %v: need at least %v", c.Burst, minBurst)
	case c.Params.Conditions.Policy == result.PolicyKubernetes:
		return errors.New("--factor policy=kubernetes: a fleet makes no NetworkPolicy objects; what they cost is measured by netdelta run or pairs")
	}
	return nil
}

// minBurst is the shortest burst: clients begin within milliseconds of each other, which must be little against it.
const minBurst = 50 * time.Millisecond
