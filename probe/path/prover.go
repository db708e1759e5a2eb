package path

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// Prover proves the paths of one testbed, one after another, and audits what passed in a whole phase. It is safe for concurrent
// use.
type Prover interface {
	// Prove watches a load of the protocol from one pod to the other, and judges which way it went.
	Prove(ctx context.Context, from, to testbed.Pod, protocol network.Protocol, load func(context.Context) (Load, error)) (result.Path, error)
	// Background says that daemons in these pods talk to each other whenever they like.
	Background(pods []testbed.Pod)
	// Begin reads the counters at the start of the measured phase: after the last Prove. End holds them against what moved.
	Begin(ctx context.Context) error
	End(ctx context.Context, moved []Moved) (Audit, error)
}

var (
	_ Prover = (*PlannedProver)(nil)
	_ Prover = (*UnplannedProver)(nil)
)

// NewProver is what can prove the paths of a testbed: against its plan, or, on machines that somebody else has joined, by what can
// be seen. It is nil for a testbed that shows neither.
func NewProver(tb testbed.Testbed) Prover {
	switch shows := tb.Instruments(); {
	case shows.Observer != nil:
		return NewPlannedProver(shows.Observer)
	case shows.PathObserver != nil:
		return NewUnplannedProver(shows.PathObserver)
	}
	return nil
}

// failure says that a path could not be proved.
func failure(from, to testbed.Pod) func(error) (result.Path, error) {
	return func(err error) (result.Path, error) {
		return result.Path{}, fmt.Errorf("prove the path from %s to %s: %w", from.Name(), to.Name(), err)
	}
}

// run runs a load, which has to move something.
func run(ctx context.Context, load func(context.Context) (Load, error)) (Load, error) {
	moved, err := load(ctx)
	switch {
	case err != nil:
		return moved, fmt.Errorf("run the load: %w", err)
	case moved.payload() <= 0 && !moved.Opaque:
		return moved, errors.New("the load moved nothing, which proves nothing")
	}
	return moved, nil
}

// Load is what a workload moved while it was watched.
type Load struct {
	// Protocol is TCP or UDP.
	Protocol network.Protocol
	// Server is where the client reached the server; its port is 0 where the client finds its own way to several of them, and not
	// valid where a plan says how they are reached.
	Server netip.AddrPort
	// Requests and Responses are the bytes of payload that arrived from client to server, and back. A stream has no
	// responses.
	Requests, Responses unit.Bytes
	// Opaque says that it is not known to the byte what went over the wire, nor which way: Both is then the least that it was, both
	// ways together, and 0 if not even that is known.
	Opaque bool
	Both   unit.Bytes
	// Peers are the other pods that the client talks to, where several serve it; then no port stands for the server.
	Peers []testbed.Pod
	// Message is the largest datagram's payload, zero for TCP: datagrams larger than the MTU are fragmented by right.
	Message unit.Bytes
	// Connections are the ones of TCP that were opened, and closed, meanwhile; 0 where they were there before.
	Connections int64
}

// payload is what the load moved in all.
func (l Load) payload() unit.Bytes { return l.Requests + l.Responses + l.Both }

// Sizes of headers.
const (
	ethernetHeader unit.Bytes = 14
	ipv4Header     unit.Bytes = 20
	ipv6Header     unit.Bytes = 40
	udpHeader      unit.Bytes = 8
)

// datagram is the size of the IP packet that carries a payload to the address in a datagram.
func datagram(payload unit.Bytes, to netip.Addr) unit.Bytes {
	if to.Is6() {
		return payload + udpHeader + ipv6Header
	}
	return payload + udpHeader + ipv4Header
}

// fragments tells whether the load's own datagrams are larger than the path's MTU.
func (l Load) fragments(mtu unit.Bytes) bool {
	return l.Protocol == network.UDP && datagram(l.Message, l.Server.Addr()) > mtu
}

// RoleObserved is the role of a device that a plan could not name, of which is only known that it carried the load.
const RoleObserved network.Role = "as observed"

// unforeseen are the devices that the plan can't name.
func unforeseen(p network.Plan, counters map[network.Device]testbed.Counters) map[network.Device]bool {
	if !p.Observed {
		return nil
	}
	all := map[network.Device]bool{}
	for d := range counters {
		if p.Unforeseen(d) {
			all[d] = true
		}
	}
	return all
}

// foreseen are the counters of the devices that the plan can name.
func foreseen(p network.Plan, counters map[network.Device]testbed.Counters) map[network.Device]testbed.Counters {
	if !p.Observed {
		return counters
	}
	named := maps.Clone(counters)
	maps.DeleteFunc(named, func(d network.Device, _ testbed.Counters) bool { return p.Unforeseen(d) })
	return named
}

// onWay are the counters of the devices on some ways, without those that others' packets pass.
func onWay(counters map[network.Device]testbed.Counters, ways ...[]network.Hop) map[network.Device]testbed.Counters {
	all := map[network.Device]testbed.Counters{}
	for _, h := range slices.Concat(ways...) {
		if c, there := counters[h.Device]; there {
			all[h.Device] = c
		}
	}
	return all
}

// amongOthers finds devices off the way that more of the load's packets were sampled on than on the way, where counters there say nothing. As
// many pass what is beneath a node's device: the links of its bond, the port of its bridge.
func (j *judgement) amongOthers() {
	if !j.Crowded {
		return
	}
	if j.Sample.Lacks != "" {
		j.weak("what of the load passed other devices of the nodes is not known: needs %s", j.Sample.Lacks)
	}
	onWay := map[network.Space]int{}
	for _, h := range j.crossed() {
		onWay[h.In] = max(onWay[h.In], j.on(h.Device).total)
	}
	for _, d := range slices.SortedFunc(maps.Keys(j.seen), byPlace) {
		if n := j.seen[d].total; float64(n) > (1+mixedShare)*float64(onWay[d.In]) && !j.planned(d) {
			j.find("%s carried %d sampled packets of the load, and the device on the way that the plan says %d", d, n, onWay[d.In])
		}
	}
}

// noted adds what devices that the plan can't name carried: their way is known by nothing else.
func (j *judgement) noted() {
	least := strayShare * j.reference()
	for _, d := range inOrder(j.changed) {
		if !j.Unforeseen[d] {
			continue
		}
		for _, sends := range []bool{true, false} {
			if t := j.changed[d].of(sends); float64(t.bytes) > least {
				j.path.Hops = append(j.path.Hops, result.PathHop{
					Device: d.String(), Role: string(RoleObserved), Sends: sends, Packets: t.packets, Bytes: t.bytes,
				})
			}
		}
	}
}
