// Package pairs measures every ordered pair of a testbed's nodes against each other, one pair at a time, in rounds of random
// order: what is slow about one node, or between two, stands out from the others.
package pairs

import (
	"fmt"

	"netdelta/experiment/record"
	"netdelta/testbed"
)

// MaxNodes is how many nodes may be paired: the pairs are their square.
const MaxNodes = 100

// Config is what to measure, and where.
type Config struct {
	Driver testbed.Provider
	// Spec is the testbed of each network, with one pod on each node. The network is filled in.
	Spec testbed.Spec
	record.Load
	// Rounds is how often each pair is measured in each build.
	Rounds int
	// Margin is the share by which a node must differ from the others to be called odd.
	Margin float64
}

// Check says what is wrong with a configuration.
func (c Config) Check() error {
	switch {
	case c.Spec.Nodes < 2 || c.Spec.Nodes > MaxNodes:
		return fmt.Errorf("%d nodes: pairs need 2 to %d", c.Spec.Nodes, MaxNodes)
	case c.Rounds < 1:
		return fmt.Errorf("%d rounds: need at least 1", c.Rounds)
	case c.Margin <= 0 || c.Margin >= 1:
		return fmt.Errorf("--margin %v: need a share between 0 and 1", c.Margin)
	}
	return c.CheckLoad()
}
