package hops

import (
	"cmp"
	"slices"
)

// Reason is what was different about a transaction.
type Reason string

// The reasons, in the order in which they are looked for: the first that holds is taken.
const (
	// ReasonRepeated is a segment that TCP sent again.
	ReasonRepeated Reason = "a segment was sent again"
	// ReasonPreempted is another task that took the processor from an end.
	ReasonPreempted Reason = "another task took the processor"
	// ReasonElsewhere is a packet that the kernel dealt with on another processor than usual.
	ReasonElsewhere Reason = "dealt with on another processor"
	// ReasonOtherwise is another way than the usual one.
	ReasonOtherwise Reason = "took another way"
	// ReasonHop is no other reason: the time was lost at a hop.
	ReasonHop Reason = "slow at"
)

// Explained is a transaction with what was different about it.
type Explained struct {
	RoundTrip int64 // nanoseconds
	Reason    Reason
	// Direction and Stretch tell the stretch of the way that took the most time more than usual: of the request (0) or of the
	// response (1), counted from 0. Stretch is -1 where the way was another.
	Direction, Stretch int
}

// Explain tells of each transaction what was different about it. Events are all that were traced, also those that belong to no
// packet; relevant are the events of packets. The usual way and the usual time of each stretch are taken over all transactions.
func Explain(all, relevant []Event, transactions []Transaction, first, last uint16) []Explained {
	requests, responses := directions(relevant, transactions, first, last)
	whole := make([]message, len(transactions))
	for i, t := range transactions {
		whole[i] = message{begun: t.Begun, ended: t.Ended}
	}
	disturbed := disturbances(all, whole)
	there, back := usual(requests), usual(responses)
	typical := [2][]int64{typicalTimes(requests, there), typicalTimes(responses, back)}
	explained := make([]Explained, len(transactions))
	for i, t := range transactions {
		e := Explained{RoundTrip: t.Ended - t.Begun, Reason: disturbed[i], Stretch: -1}
		if slices.Equal(requests[i].places(), there) && slices.Equal(responses[i].places(), back) {
			e.Direction, e.Stretch = slowest([2][]int64{requests[i].times(), responses[i].times()}, typical)
			e.Reason = cmp.Or(e.Reason, ReasonHop)
		}
		e.Reason = cmp.Or(e.Reason, ReasonOtherwise)
		explained[i] = e
	}
	return explained
}

// disturbances finds what came between in the time of each transaction, "" where nothing did.
func disturbances(events []Event, whole []message) []Reason {
	reasons := make([]Reason, len(whole))
	home := usualProcessor(events)
	next := 0
	for i := range whole {
		for next < len(events) && events[next].At < whole[i].begun {
			next++
		}
		for ; next < len(events) && events[next].At <= whole[i].ended; next++ {
			if r := disturbance(events[next], home); r != "" && (reasons[i] == "" || rank(r) < rank(reasons[i])) {
				reasons[i] = r
			}
		}
	}
	return reasons
}

func disturbance(e Event, home uint16) Reason {
	switch {
	case e.Kind == Repeated:
		return ReasonRepeated
	case e.Kind == Preempted:
		return ReasonPreempted
	case e.Processor != home:
		return ReasonElsewhere
	}
	return ""
}

func rank(r Reason) int {
	return slices.Index([]Reason{ReasonRepeated, ReasonPreempted, ReasonElsewhere}, r)
}

// usualProcessor is where most events happened.
func usualProcessor(events []Event) uint16 {
	counts := map[uint16]int{}
	best, most := uint16(0), 0
	for _, e := range events {
		if counts[e.Processor]++; counts[e.Processor] > most {
			best, most = e.Processor, counts[e.Processor]
		}
	}
	return best
}

// typicalTimes are the medians of the stretches of the messages that took the usual way.
func typicalTimes(messages []message, way []Point) []int64 {
	stretches := make([][]int64, len(way)+1)
	for i := range messages {
		if !slices.Equal(messages[i].places(), way) {
			continue
		}
		times := messages[i].times()
		for k := range stretches {
			stretches[k] = append(stretches[k], times[k+1]-times[k])
		}
	}
	typical := make([]int64, len(stretches))
	for k, s := range stretches {
		if len(s) > 0 {
			slices.Sort(s)
			typical[k] = s[len(s)/2]
		}
	}
	return typical
}

// slowest finds the stretch that took the most time more than usual.
func slowest(times, typical [2][]int64) (direction, stretch int) {
	worst := int64(-1)
	for d := range times {
		for k := range typical[d] {
			if more := times[d][k+1] - times[d][k] - typical[d][k]; more > worst {
				worst, direction, stretch = more, d, k
			}
		}
	}
	return direction, stretch
}
