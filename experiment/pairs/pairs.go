// Package pairs measures every ordered pair of a testbed's nodes against each other, one pair at a time, in rounds of random
// order: what is slow about one node, or between two, stands out from the others.
package pairs

import (
	"errors"
	"fmt"
	"time"

	"netdelta/agent"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// MaxNodes is how many nodes may be paired: the pairs are their square.
const MaxNodes = 100

// Config is what to measure, and where.
type Config struct {
	Driver testbed.Provider
	// Spec is the testbed of each network, with one pod on each node. The network is filled in.
	Spec testbed.Spec
	// Program is how to start the agent in pods.
	Program  agent.Program
	Workload workload.Workload
	Params   result.Params
	Networks []string
	// Builds is how often everything is set up anew, Rounds how often each pair is measured in each build.
	Builds, Rounds int
	Burst, Warmup  time.Duration
	Seed           uint64
	// Margin is the share by which a node must differ from the others to be called odd.
	Margin float64
	// Log is told what happens, in lines without an end; it may be nil.
	Log func(line string)
}

// Check says what is wrong with a configuration.
func (c Config) Check() error {
	switch {
	case len(c.Networks) == 0:
		return errors.New("pairs need a network")
	case c.Spec.Nodes < 2 || c.Spec.Nodes > MaxNodes:
		return fmt.Errorf("%d nodes: pairs need 2 to %d", c.Spec.Nodes, MaxNodes)
	case c.Builds < 1 || c.Rounds < 1:
		return fmt.Errorf("%d builds of %d rounds: need at least 1 of each", c.Builds, c.Rounds)
	case c.Margin <= 0 || c.Margin >= 1:
		return fmt.Errorf("--margin %v: need a share between 0 and 1", c.Margin)
	case c.Burst <= 0 || c.Warmup < 0:
		return fmt.Errorf("bursts of %v after %v: need a burst that lasts", c.Burst, c.Warmup)
	case c.Workload.Serve == nil || c.Workload.Dial == nil || len(c.Workload.Demands(c.Params).Programs) > 0:
		return fmt.Errorf("workload %s needs programs of others, which are not on each node: take tcp-rr, udp-rr or tcp-stream", c.Workload.Name)
	}
	if c.Workload.Check != nil {
		return c.Workload.Check(c.Params)
	}
	return nil
}
