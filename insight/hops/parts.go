package hops

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"netdelta/experiment/tracing"
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

// Outliers are the slowest transactions of a network, and what was different about them.
type Outliers struct {
	// Quantile is beyond which transactions are outliers, Threshold its round trip in nanoseconds.
	Quantile  float64 `json:"quantile"`
	Threshold float64 `json:"threshold_ns"`
	// Transactions are all that were looked at, Count those beyond the threshold.
	Transactions int `json:"transactions"`
	Count        int `json:"count"`
	// Reasons are sorted, the commonest among outliers first.
	Reasons []OutlierReason `json:"reasons"`
}

// OutlierReason is something that was different about transactions.
type OutlierReason struct {
	Says string `json:"says"`
	// Outliers and Others are the shares of the outliers and of all other transactions that it holds for: what holds for both
	// alike explains nothing.
	Outliers float64 `json:"outliers"`
	Others   float64 `json:"others"`
	Count    int     `json:"count"`
}

// outlierQuantile is asked for; with fewer than a thousand transactions for each outlier, what there is of the tail is taken.
const (
	outlierQuantile = 0.999
	coarseQuantile  = 0.99
	outliersLeast   = 10
)

// explain sums up what was different about the slowest transactions of all builds; nil where none were looked at.
func explain(c tracing.Cell) *Outliers {
	type seen struct {
		roundTrip int64
		says      string
	}
	var all []seen
	for _, b := range c.Builds {
		for _, e := range b.Explained {
			all = append(all, seen{e.RoundTrip, sayReason(e, b)})
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b seen) int { return cmp.Compare(a.roundTrip, b.roundTrip) })
	o := &Outliers{Quantile: outlierQuantile, Transactions: len(all)}
	if float64(len(all))*(1-outlierQuantile) < outliersLeast {
		o.Quantile = coarseQuantile
	}
	first := min(len(all)-1, int(o.Quantile*float64(len(all))))
	o.Threshold, o.Count = float64(all[first].roundTrip), len(all)-first
	counts := map[string][2]int{}
	for i, s := range all {
		n := counts[s.says]
		if i >= first {
			n[1]++
		} else {
			n[0]++
		}
		counts[s.says] = n
	}
	for says, n := range counts {
		if n[1] > 0 {
			o.Reasons = append(o.Reasons, OutlierReason{says, float64(n[1]) / float64(o.Count), float64(n[0]) / float64(max(first, 1)), n[1]})
		}
	}
	slices.SortFunc(o.Reasons, func(a, b OutlierReason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Says, b.Says))
	})
	return o
}

// sayReason puts in words what was different, with the hop where it was one.
func sayReason(e hops.Explained, b tracing.Traced) string {
	if e.Reason != hops.ReasonHop {
		return string(e.Reason)
	}
	way := b.Request
	if e.Direction == 1 {
		way = b.Response
	}
	if e.Stretch >= len(way) {
		return string(hops.ReasonOtherwise)
	}
	return fmt.Sprintf("%s %s", e.Reason, way[e.Stretch].Hop)
}
