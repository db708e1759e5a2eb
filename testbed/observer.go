package testbed

import (
	"context"

	"netdelta/network"
)

// Observer is a testbed that lets one look at the devices of its nodes and pods, so that a trial can prove which way its
// packets went.
type Observer interface {
	Testbed
	// Plan is what the testbed was built from.
	Plan() network.Plan
	// Path lists the devices that a packet crosses from one pod to another, nil for a pod of another testbed.
	Path(from, to Pod) []network.Hop
	// Counters reads those of all devices.
	Counters(ctx context.Context) (map[network.Device]Counters, error)
}

// Counters are what a device has counted since it was made.
type Counters struct {
	SentPackets, SentBytes         uint64
	ReceivedPackets, ReceivedBytes uint64
	Dropped, Errors                uint64 // in both directions
}
