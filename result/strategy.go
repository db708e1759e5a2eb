package result

import "time"

// Strategies that have loops of their own.
const (
	StrategyPairs    = "pairs"
	StrategyFleet    = "fleet"
	StrategyPolicies = "policies"
)

// Strategy is how a run measured that did not measure cells in rounds or blocks.
type Strategy struct {
	Name string `json:"name"`
	// Burst is how long each burst, or each synchronised burst of a fleet, lasted.
	Burst time.Duration `json:"burst_ns,omitempty"`
	// Clients and Servers are how many a fleet was to have in each network.
	Clients int `json:"clients,omitempty"`
	Servers int `json:"servers,omitempty"`
	// Every is the time between two probes of policies, and Repeat how often each change was to be measured.
	Every  time.Duration `json:"every_ns,omitempty"`
	Repeat int           `json:"repeat,omitempty"`
}

// NodePair is one direction between two nodes, with the reason if it could not be measured. Client and Server are the same where
// the node itself failed.
type NodePair struct {
	Client string `json:"client"`
	Server string `json:"server"`
	Failed string `json:"failed,omitempty"`
}
