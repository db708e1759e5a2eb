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
	// Log is told what happens, in lines without an end; nil for nobody.
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

func (c Config) log(format string, args ...any) {
	if c.Log != nil {
		c.Log(fmt.Sprintf(format, args...))
	}
}

// Outcome is what was measured of all pairs.
type Outcome struct {
	Testbed  string        `json:"testbed"`
	Workload string        `json:"workload"`
	Params   result.Params `json:"params"`
	// Metric is what the values of pairs are of, in Unit: p50, or throughput for workloads without latencies.
	Metric   string        `json:"metric"`
	Unit     string        `json:"unit"`
	Better   string        `json:"better"`
	Burst    time.Duration `json:"burst_ns"`
	Seed     uint64        `json:"seed"`
	Started  time.Time     `json:"started"`
	Finished time.Time     `json:"finished"`
	// Nodes are those that were paired, in the testbed's order.
	Nodes    []string  `json:"nodes"`
	Networks []Network `json:"networks"`
}

// Network is what was measured in one network.
type Network struct {
	Network string `json:"network"`
	// Pairs are all ordered pairs of nodes, by client and then by server.
	Pairs []Pair `json:"pairs"`
	// Failures are nodes, pairs and builds of which nothing could be measured.
	Failures []Failure `json:"failures,omitempty"`
}

// Pair is what was measured from a client's node to a server's.
type Pair struct {
	Client string  `json:"client"`
	Server string  `json:"server"`
	Builds []Value `json:"builds"`
}

// Value is what one build measured of a pair: the median of its bursts.
type Value struct {
	Build  int     `json:"build"`
	Bursts int     `json:"bursts"`
	Value  float64 `json:"value"`
}

// Failure is what could not be measured.
type Failure struct {
	Build  int    `json:"build"`
	Client string `json:"client,omitempty"`
	Server string `json:"server,omitempty"`
	Why    string `json:"why"`
}

// pair is that of two nodes; it is added where there is none.
func (n *Network) pair(client, server string) *Pair {
	for i := range n.Pairs {
		if n.Pairs[i].Client == client && n.Pairs[i].Server == server {
			return &n.Pairs[i]
		}
	}
	n.Pairs = append(n.Pairs, Pair{Client: client, Server: server})
	return &n.Pairs[len(n.Pairs)-1]
}
