package result

import "time"

// Reconfigured is why a burst is left out that was measured with another configuration than its network's.
const Reconfigured = "configuration changed"

// ConfigChange is something that changed in the configuration of a testbed while a trial was measured.
type ConfigChange struct {
	// Device is what it belongs to: "pod0/eth0", or "node0" for the namespace as a whole.
	Device string `json:"device"`
	// Setting names it: "tx-tcp-segmentation", "mtu", "qdisc root", "firewall", "route default", "net.ipv4.tcp_sack".
	Setting string `json:"setting"`
	Was     string `json:"was"`
	Is      string `json:"is"`
	// At is when the kernel told of it; zero where it was only found in the end.
	At time.Time `json:"at,omitzero"`
	// After is the last round that was over before, Before the first that was not; -1 is none, or not known.
	After  int `json:"after_round"`
	Before int `json:"before_round"`
}
