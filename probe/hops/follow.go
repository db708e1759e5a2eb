package hops

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"netdelta/internal/gather"
)

// Transaction is when one request and its response began and ended at the programs, in nanoseconds of the kernel's
// monotonic clock: before the client sends, when the server has the whole request (and answers), when the client has the
// whole response.
type Transaction struct{ Begun, There, Ended int64 }

// Point is where packets pass.
type Point struct {
	Kind          Kind
	Space, Device uint32
	Wraps         uint8
}

func (e Event) place() Point { return Point{e.Kind, e.Space, e.Device, e.Wraps} }

// Passed is the way of all messages of one direction.
type Passed struct {
	// Places are passed in this order.
	Places []Point
	// Times are the ones of each message, in nanoseconds of the monotonic clock: when it began, when its last packet passed each
	// place, and when it was there. They never fall.
	Times [][]int64
}

// Followed is what became of transactions.
type Followed struct {
	Request, Response Passed
	// Otherwise is how many transactions took another way than most, in either direction, and are left out: a retransmission,
	// a packet cut in two, an event that was lost.
	Otherwise int
}

// Follow finds the way of each transaction of a connection in a closed loop: one is over before the next begins, so that
// time alone tells whose a packet is. A message may be many packets: a place is passed when the last of them has. Events and
// transactions are in the order of time; first and last are the servers' ports.
func Follow(events []Event, transactions []Transaction, first, last uint16) Followed {
	requests, responses := directions(events, transactions, first, last)
	there, back := usual(requests), usual(responses)
	f := Followed{Request: Passed{Places: there}, Response: Passed{Places: back}}
	for i := range transactions {
		if !slices.Equal(requests[i].places(), there) || !slices.Equal(responses[i].places(), back) {
			f.Otherwise++
			continue
		}
		f.Request.Times = append(f.Request.Times, requests[i].times())
		f.Response.Times = append(f.Response.Times, responses[i].times())
	}
	return f
}

// directions gives the events of packets to the messages of transactions, requests and responses.
func directions(events []Event, transactions []Transaction, first, last uint16) (requests, responses []message) {
	requests, responses = make([]message, len(transactions)), make([]message, len(transactions))
	for i, t := range transactions {
		requests[i] = message{begun: t.Begun, ended: t.There}
		responses[i] = message{begun: t.There, ended: t.Ended}
	}
	toServer := func(e Event) bool { return e.Destination >= first && e.Destination <= last }
	distribute(events, requests, toServer)
	distribute(events, responses, func(e Event) bool { return !toServer(e) })
	return requests, responses
}

// message is one direction of a transaction, and what it passed.
type message struct {
	begun, ended int64
	passed       []passage
}

type passage struct {
	place Point
	at    int64
}

// distribute gives each event to the message in whose time it is.
func distribute(events []Event, messages []message, ours func(Event) bool) {
	next := 0
	for i := range messages {
		m := &messages[i]
		for next < len(events) && events[next].At < m.begun {
			next++
		}
		for ; next < len(events) && events[next].At <= m.ended; next++ {
			if e := events[next]; ours(e) {
				m.pass(e)
			}
		}
	}
}

// pass notes that a packet of the message passes a place: the last one counts.
func (m *message) pass(e Event) {
	m.passed = slices.DeleteFunc(m.passed, func(p passage) bool { return p.place == e.place() })
	m.passed = append(m.passed, passage{e.place(), e.At})
}

func (m *message) places() []Point {
	return gather.Each(m.passed, func(p passage) Point { return p.place })
}

func (m *message) times() []int64 {
	times := []int64{m.begun}
	for _, p := range m.passed {
		times = append(times, p.at)
	}
	return append(times, m.ended)
}

// usual is the way that most messages took; of two that are as common the one that was seen first.
func usual(messages []message) []Point {
	counts := map[string]int{}
	var best []Point
	var key []byte // the places, as text would take most of the time
	most := 0
	for i := range messages {
		places := messages[i].places()
		key = key[:0]
		for _, p := range places {
			key = append(key, byte(p.Kind), p.Wraps)
			key = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(key, p.Space), p.Device)
		}
		if counts[string(key)]++; counts[string(key)] > most {
			most, best = counts[string(key)], places
		}
	}
	return best
}

// Durations are how long each message took between one place and the next: a list for each stretch of the way, of which
// there is one more than places. cost is what noting an event takes, in nanoseconds: half of it lies before the time that is
// noted and half after it, and both are taken off.
func (p Passed) Durations(cost float64) [][]float64 {
	return p.stretches(len(p.Places)+1, func(k int) float64 {
		events := 1.0
		if k == 0 {
			events -= 0.5 // the program's own time is no event
		}
		if k == len(p.Places) {
			events -= 0.5
		}
		return events * cost
	})
}

// stretches are how long each message took from one of its times to the next, less a cost.
func (p Passed) stretches(count int, cost func(k int) float64) [][]float64 {
	all := make([][]float64, count)
	for k := range all {
		all[k] = make([]float64, len(p.Times))
		for i, t := range p.Times {
			all[k][i] = float64(t[k+1]-t[k]) - cost(k)
		}
	}
	return all
}

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
