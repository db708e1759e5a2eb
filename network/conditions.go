package network

import "fmt"

// NotPossibleError says that a network can't be had under a condition, on any machine: what the condition asks for and how
// the network works exclude each other. The rest of a study goes on without that combination.
type NotPossibleError struct {
	// Network is the name of the network, Condition the level that it can't meet: "encryption=wireguard".
	Network, Condition string
	// Why says what keeps it from it: "its pods sit directly on the underlay's link".
	Why string
}

// Error implements error.
func (e *NotPossibleError) Error() string {
	return fmt.Sprintf("network %s is not possible with %s: %s", e.Network, e.Condition, e.Why)
}

// conditioned adds to a plan what the topology's conditions ask for on top of the network itself. What concerns the underlay
// is in the draft's ports already.
func conditioned(p Plan, t Topology) (Plan, error) {
	if err := onCards(p, t); err != nil {
		return p, err
	}
	if err := pastQueues(p, t); err != nil {
		return p, err
	}
	p, err := policed(p.tuned(t.Conditions, t.Family), t)
	if err != nil {
		return p, err
	}
	return served(p, t)
}
