// Package hops tells when each request and each response passes each device and socket on its way, and so where on the way
// the time goes. It reads the kernel's tracepoints with eBPF programs and changes nothing.
package hops

import (
	"cmp"
	"fmt"
	"slices"

	"netdelta/internal/gather"
	"netdelta/network"
)

// Address is a device as the kernel numbers it.
type Address struct{ Space, Device uint32 }

// Map says what is what on a testbed: from its plan, never from how something is called.
type Map struct {
	Spaces  map[uint32]network.Space // by the inode of the namespace
	Devices map[Address]network.Device
	Roles   map[network.Device]network.Role
}

// Step is what happens between two places.
type Step string

// The steps of a way.
const (
	StepCall          Step = "system call"
	StepOut           Step = "socket, TCP/IP out"
	StepLink          Step = "link"
	StepForward       Step = "forwarding"
	StepEncapsulation Step = "encapsulation"
	StepUnderlay      Step = "underlay"
	StepDecapsulation Step = "decapsulation"
	StepIn            Step = "TCP/IP in"
	StepWake          Step = "wake-up and read"
	StepDelivery      Step = "TCP/IP in, wake-up and read"
	StepJoined        Step = "joined sockets"
)

// Hop is a stretch of the way.
type Hop struct {
	Step Step
	// Where is the namespace in which it lies, "" between two.
	Where string
	// From and To are the places at its ends: "pod0 eth0", or the program.
	From, To string
	// key says what it is without the names of devices, which plugins choose at random in each build.
	key string
}

// Same says of two builds' hops that they are the same stretch: what happens there, and between which namespaces and roles of devices.
func (h Hop) Same(o Hop) bool { return h.Step == o.Step && h.Where == o.Where && h.key == o.key }

// String names the hop for people.
func (h Hop) String() string {
	where := h.Where
	if where == "" {
		return fmt.Sprintf("%s, %s to %s", h.Step, h.From, h.To)
	}
	return fmt.Sprintf("%s: %s", where, h.Step)
}

// Hops names the stretches of a way. The programs at its ends are in the given
// namespaces.
func (m Map) Hops(places []Point, from, to string) []Hop {
	ends := make([]stop, 0, len(places)+2)
	ends = append(ends, stop{space: from, name: from + " program", program: true})
	for _, p := range places {
		ends = append(ends, m.stop(p))
	}
	ends = append(ends, stop{space: to, name: to + " program", program: true})
	hops := make([]Hop, len(ends)-1)
	for i := range hops {
		hops[i] = between(ends[i], ends[i+1])
	}
	return hops
}

func (m Map) inSwitch(space uint32) bool {
	s, known := m.Spaces[space]
	return known && s.Kind == network.SwitchSpace
}

// Relevant drops the events of the switch between the nodes, which belongs to the underlay as a whole, and of what is no part
// of the testbed.
func (m Map) Relevant(events []Event) []Event {
	var kept []Event
	for _, e := range events {
		if _, known := m.Spaces[e.Space]; known && !m.inSwitch(e.Space) {
			kept = append(kept, e)
		}
	}
	return kept
}

// stop is a place with what is known of it.
type stop struct {
	space, name string
	program     bool
	kind        Kind
	role        network.Role
	device      Address
	wraps       uint8
}

// key is the stop by its namespace and role. Where no plan gives its device a role, that it is a device.
func (s stop) key() string {
	switch {
	case s.program:
		return s.space + "/program"
	case s.device.Device == 0:
		return s.space + "/socket"
	}
	return s.space + "/" + string(s.role)
}

func (m Map) stop(p Point) stop {
	at := Address{p.Space, p.Device}
	s := stopOf(p, m.Spaces[p.Space].String(), m.Devices[at].Name)
	if device, known := m.Devices[at]; known && p.Device != 0 {
		s.role = m.Roles[device]
	}
	return s
}

// stopOf is a point in a namespace, with the name of its device, "" where that is not known.
func stopOf(p Point, space, device string) stop {
	s := stop{space: space, kind: p.Kind, device: Address{p.Space, p.Device}, wraps: p.Wraps}
	switch {
	case p.Device == 0:
		s.name = space + " socket"
	case device != "":
		s.name = space + " " + device
	default:
		s.name = fmt.Sprintf("%s device %d", space, p.Device)
	}
	return s
}

// between says what happens from one stop to the next.
func between(a, b stop) Hop {
	h := Hop{From: a.name, To: b.name, Step: stepOf(a, b), key: a.key() + " " + b.key()}
	if a.space == b.space {
		h.Where = a.space
	}
	return h
}

func stepOf(a, b stop) Step {
	switch {
	case a.program && b.program:
		return StepJoined // nothing was seen between the two
	case b.program:
		if a.kind == Ready {
			return StepWake
		}
		return StepDelivery
	case b.kind == Arrived || b.kind == Ready:
		if a.program || a.kind == Written {
			return StepJoined // no device between the two sockets
		}
		return StepIn
	case b.kind == Written:
		return StepCall
	case a.program || a.kind == Written:
		return StepOut
	}
	return stepAcross(a, b)
}

// stepAcross says what happens from one device to the next.
func stepAcross(a, b stop) Step {
	switch {
	case a.space != b.space:
		if a.role == network.RolePort && b.role == network.RolePort {
			return StepUnderlay
		}
		return StepLink
	case b.wraps > a.wraps || a.role == network.RoleEncapsulation && a.kind == Sent:
		return StepEncapsulation
	case b.wraps < a.wraps:
		return StepDecapsulation
	case a.kind == Sent && b.kind == Received:
		return StepLink // loopback
	}
	return StepForward
}

// Names say what is called what where there is no plan: on a machine as it is found.
type Names struct {
	Spaces  map[uint32]string
	Devices map[Address]string
}

// HopsBetween names the stretches between places as well as can be without a plan: where they begin and end.
func (n Names) HopsBetween(places []Point) []Hop {
	var hops []Hop
	for i := 1; i < len(places); i++ {
		a, b := n.stop(places[i-1]), n.stop(places[i])
		hops = append(hops, between(a, b))
	}
	return hops
}

func (n Names) stop(p Point) stop {
	space := cmp.Or(n.Spaces[p.Space], fmt.Sprintf("namespace %d", p.Space))
	return stopOf(p, space, n.Devices[Address{p.Space, p.Device}])
}

// OfSpace keeps the events of connections that have an end in the namespace, wherever they pass.
func OfSpace(events []Event, space uint32) []Event {
	ours := map[[2]uint16]bool{}
	ports := func(e Event) [2]uint16 { return [2]uint16{min(e.Source, e.Destination), max(e.Source, e.Destination)} }
	for _, e := range events {
		if e.Space == space {
			ours[ports(e)] = true
		}
	}
	return gather.Where(events, func(e Event) bool { return ours[ports(e)] })
}

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

//go:generate go tool -modfile=../../tools/go.mod bpf2go -target bpfel -cc clang-14 -strip llvm-strip-14 -type event tracer bpf/hops.bpf.c -- -O2 -Wall -Wextra -Wno-unused-parameter -Werror -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu
