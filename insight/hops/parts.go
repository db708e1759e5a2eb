package hops

import (
	"slices"

	"netdelta/probe/hops"
)

// Part is one of the parts that a total latency splits into: those that the network changes and those that it can't.
type Part struct {
	Name string `json:"name"`
	// Network says that it is the network's: another network may make it smaller.
	Network bool `json:"network"`
	// Time is nanoseconds of a round trip, Share the part of the sum of all parts.
	Time  float64 `json:"time_ns"`
	Share float64 `json:"share"`
}

// The parts of a round trip.
const (
	partTransport = "transport: devices, forwarding and tunnels between the pods"
	partStack     = "kernel stack: sockets and TCP/IP of both ends"
	partWake      = "wake-up of the programs, and reading"
	partBoth      = "kernel stack of the receiver, wake-up of the program, and reading"
)

// Parts splits the round trip as it was traced: total = transport + kernel stack + programs. The programs themselves only
// answer, so that what is theirs is their wake-up. Without the events of sockets the receiver's stack and the wake-up are
// one part.
func (w Way) Parts() []Part {
	parts := []Part{{Name: partTransport, Network: true}, {Name: partStack}, {Name: partBoth}, {Name: partWake}}
	for _, h := range slices.Concat(w.Request, w.Response) {
		at := 0
		switch hops.Step(h.Step) {
		case hops.StepCall, hops.StepOut, hops.StepIn, hops.StepJoined:
			at = 1
		case hops.StepDelivery:
			at = 2
		case hops.StepWake:
			at = 3
		}
		parts[at].Time += h.P50
	}
	if w.Sum > 0 {
		for i := range parts {
			parts[i].Share = parts[i].Time / w.Sum
		}
	}
	return slices.DeleteFunc(parts, func(p Part) bool { return p.Time == 0 && !p.Network })
}
