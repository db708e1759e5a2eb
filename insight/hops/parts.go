package hops

import (
	"cmp"
	"math"
	"slices"

	"netdelta/probe/hops"
	"netdelta/stats"
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

// Watched is where the time of segments goes on the connections of a running program.
type Watched struct {
	Port uint16 `json:"port"`
	// ToServer and FromServer are the hops of each direction, in order, and how many segments they are known of.
	ToServer     []HopTime `json:"to_server"`
	FromServer   []HopTime `json:"from_server"`
	SegmentsTo   int       `json:"segments_to_server"`
	SegmentsFrom int       `json:"segments_from_server"`
	// Otherwise is how many segments took another way or were sent again; Lost is how many events there was no room for.
	Otherwise int `json:"otherwise"`
	Lost      int `json:"lost"`
}

// Watch sums up the events of connections to and from a server's port. The cost of tracing is in the times.
func Watch(events []hops.Event, names hops.Names, port uint16) Watched {
	w := Watched{Port: port}
	to, otherwise := hops.FollowSegments(events, true, port, port)
	from, more := hops.FollowSegments(events, false, port, port)
	w.Otherwise = otherwise + more
	w.ToServer, w.SegmentsTo = stretchTimes(to, names), len(to.Times)
	w.FromServer, w.SegmentsFrom = stretchTimes(from, names), len(from.Times)
	return w
}

func stretchTimes(p hops.Passed, names hops.Names) []HopTime {
	const costIncluded = 0
	hopsBetween, stretches := names.HopsBetween(p.Places), p.Between(costIncluded)
	whole := 0.0
	for _, s := range stretches {
		whole += stats.Mean(s)
	}
	var list []HopTime
	for k, h := range hopsBetween {
		list = append(list, HopTime{
			Name: h.String(), Step: string(h.Step), Where: h.Where, From: h.From, To: h.To,
			P50: quantile(stretches[k], 0.5), P90: quantile(stretches[k], 0.9), P99: quantile(stretches[k], 0.99),
			Share: stats.Mean(stretches[k]) / whole,
		})
	}
	return list
}

// Difference is where two networks' round trips differ.
type Difference struct {
	// Total is the other's round trip less the base's, as their hops add up, in nanoseconds.
	Total float64
	// Steps are what differs, the largest first: each a step of the way, of both directions together.
	Steps []StepDifference
	// Rest is what all other steps differ by together, in nanoseconds.
	Rest float64
}

// StepDifference is what a step, such as encapsulation, takes longer in the other network, in nanoseconds.
type StepDifference struct {
	Step       string
	Difference float64
}

// Steps that are named make up at least this share of all differences, whichever way they go.
const namedShare = 0.05

// Conclude sums the hops of both directions by what happens in them. A step is named if one of its hops is known to differ and it makes up
// a twentieth of all that differs.
func Conclude(base, other Way) Difference {
	var d Difference
	sums, known := map[string]float64{}, map[string]bool{}
	for _, line := range slices.Concat(Compare(base.Request, other.Request), Compare(base.Response, other.Response)) {
		step := cmp.Or(line.Other, line.Base).Step
		sums[step] += line.Difference
		d.Total += line.Difference
		known[step] = known[step] || line.Low != nil && line.High != nil && (*line.Low > 0 || *line.High < 0)
	}
	all := 0.0
	for _, x := range sums {
		all += math.Abs(x)
	}
	for step, x := range sums {
		if known[step] && math.Abs(x) >= namedShare*all {
			d.Steps = append(d.Steps, StepDifference{step, x})
		} else {
			d.Rest += x
		}
	}
	slices.SortFunc(d.Steps, func(a, b StepDifference) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Difference), math.Abs(a.Difference)), cmp.Compare(a.Step, b.Step))
	})
	return d
}
