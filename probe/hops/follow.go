package hops

import (
	"fmt"
	"slices"
	"strings"
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
	places := make([]Point, len(m.passed))
	for i, p := range m.passed {
		places[i] = p.place
	}
	return places
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
	most := 0
	for i := range messages {
		places := messages[i].places()
		var key strings.Builder
		for _, p := range places {
			fmt.Fprintf(&key, "%v ", p)
		}
		if counts[key.String()]++; counts[key.String()] > most {
			most, best = counts[key.String()], places
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
