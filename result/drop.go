package result

// Drop is how many packets were dropped in one place of a testbed.
type Drop struct {
	// Device is where: "node0/eth0". Queue is the queueing discipline that did it: "netem"; "" is the device itself.
	Device  string `json:"device"`
	Queue   string `json:"queue,omitempty"`
	Packets uint64 `json:"packets"`
}
