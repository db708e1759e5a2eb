package hops

import (
	"cmp"
	"maps"
	"slices"
)

// flow is one direction of a connection.
type flow struct{ source, destination uint16 }

// FollowSegments finds the way of the TCP segments of all connections among the events, several in flight or not, in one
// direction: to the servers' ports first to last, or from them. A segment is what the first place on its way has as one; a
// place further on, where it may have been cut up or joined with others, is passed when its last byte has. Each row of Times
// is one segment's, a time for each place. Segments that took another way than most are counted in otherwise: those that were
// sent again, too.
func FollowSegments(events []Event, toServer bool, first, last uint16) (passed Passed, otherwise int) {
	flows := map[flow][]Event{}
	for _, e := range events {
		if (e.Destination >= first && e.Destination <= last) == toServer && e.Length > 0 {
			key := flow{e.Source, e.Destination}
			flows[key] = append(flows[key], e)
		}
	}
	inOrder := func(a, b flow) int {
		return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.destination, b.destination))
	}
	var segments []message
	for _, key := range slices.SortedFunc(maps.Keys(flows), inOrder) {
		found, twice := segmentsOf(flows[key])
		segments = append(segments, found...)
		otherwise += twice
	}
	way := usual(segments)
	passed.Places = way
	for i := range segments {
		if !slices.Equal(segments[i].places(), way) {
			otherwise++
			continue
		}
		times := segments[i].times()
		passed.Times = append(passed.Times, times[1:len(times)-1])
	}
	return passed, otherwise
}

// segmentsOf parts the events of a flow, in the order of time, into segments. twice counts those that were sent again.
func segmentsOf(events []Event) (segments []message, twice int) {
	if len(events) == 0 {
		return nil, 0
	}
	origin := events[0].place()
	byPlace := map[Point][]Event{}
	var order []Point
	for _, e := range events {
		p := e.place()
		if byPlace[p] == nil {
			order = append(order, p)
		}
		byPlace[p] = append(byPlace[p], e)
	}
	sent := map[uint32]bool{}
	next := map[Point]int{}
	for _, e := range byPlace[origin] {
		end := e.Sequence + e.Length
		if sent[end] {
			twice++
			continue
		}
		sent[end] = true
		m := message{passed: []passage{{origin, e.At}}}
		for _, p := range order {
			if p == origin {
				continue
			}
			at := next[p]
			for at < len(byPlace[p]) && !covers(byPlace[p][at], end-1, e.At) {
				at++
			}
			if at == len(byPlace[p]) {
				continue // it did not come this far, or not this way
			}
			next[p] = at // what is joined with others passes once for all
			m.passed = append(m.passed, passage{p, byPlace[p][at].At})
		}
		slices.SortStableFunc(m.passed, func(a, b passage) int { return cmp.Compare(a.at, b.at) })
		segments = append(segments, m)
	}
	return segments, twice
}

// covers tells whether a segment that passes after the given time holds the byte of this number. Numbers wrap around (RFC
// 9293, section 3.4).
func covers(e Event, number uint32, after int64) bool {
	return e.At >= after && int32(number-e.Sequence) >= 0 && int32(e.Sequence+e.Length-1-number) >= 0
}

// Between are how long each message took from one place to the next, where all that is known of it are places: a list for each
// stretch, of which there is one less than places. cost is as in Durations.
func (p Passed) Between(cost float64) [][]float64 {
	if len(p.Places) < 2 {
		return nil
	}
	return p.stretches(len(p.Places)-1, func(int) float64 { return cost })
}
