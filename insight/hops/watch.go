package hops

import (
	"netdelta/probe/hops"
	"netdelta/stats"
)

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
