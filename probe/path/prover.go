package path

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

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

// UnplannedProver proves the paths of a testbed of which no plan is known.
type UnplannedProver struct {
	w testbed.PathObserver

	mu    sync.Mutex
	ways  map[podNames]watchedWay
	start map[podNames]map[network.Device]testbed.Counters // of the phase that is audited
	lost  error                                            // why they could not be read then
}

// podNames are the names of a client's and a server's pod.
type podNames struct{ from, to string }

// watchedWay is what is known of the way between two pods since a load was watched there.
type watchedWay struct {
	from, to testbed.Pod
	// own are the devices that must carry all that is moved between the two, and whether the client's requests are sent there.
	own map[network.Device]bool
	// name is what a device is called.
	name func(network.Device) string
}

// NewUnplannedProver is a prover for a testbed.
func NewUnplannedProver(w testbed.PathObserver) *UnplannedProver {
	return &UnplannedProver{w: w, ways: map[podNames]watchedWay{}}
}

// Background implements Prover. What daemons say to each other is not on the way that is looked at.
func (p *UnplannedProver) Background([]testbed.Pod) {}

// Prove implements Prover. The error is the load's, or a failure to look; what the network does wrong is in the answer.
func (p *UnplannedProver) Prove(ctx context.Context, from, to testbed.Pod, _ network.Protocol, load func(context.Context) (Load, error)) (result.Path, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fail := failure(from, to)
	watch, err := p.w.Watch(ctx, from, to)
	if err != nil {
		return fail(err)
	}
	moved, err := run(ctx, load)
	if err != nil {
		return fail(errors.Join(err, watch.Close()))
	}
	seen, err := watch.End(ctx, moved.Server)
	if err != nil {
		return fail(errors.Join(err, watch.Close()))
	}
	s := unplanned{Observation: seen, load: moved}
	p.ways[podNames{from.Name(), to.Name()}] = watchedWay{from: from, to: to, own: s.carriers(), name: s.name}
	return JudgeUnplanned(seen, moved), nil
}

// carriers are the devices that must carry all of a load: those by which pods reach each other, and the nodes' cards.
func (s *unplanned) carriers() map[network.Device]bool {
	all := map[network.Device]bool{}
	for _, e := range []testbed.PathEnd{s.Client, s.Server} {
		if own, found := s.own(e); found {
			all[own] = e == s.Client
		}
		if s.secondary() {
			continue
		}
		wire := s.wire(e.On)
		if i, there := interfaceOf(s.Spaces[e.On], first(wire)); there && !bridges(i) {
			all[network.Device{In: e.On, Name: i.Name}] = e == s.Client
		}
	}
	return all
}

// first is the first of some names, "" of none.
func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// Begin implements Prover. Who looked may have been lost since, and with it a pod that is measured, or none: the bursts tell. End then
// says that there was no audit.
func (p *UnplannedProver) Begin(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.start, p.lost = p.count(ctx)
	if ctx.Err() != nil {
		return fmt.Errorf("begin to audit the devices: %w", p.lost)
	}
	return nil
}

// count reads the counters on all ways that were watched.
func (p *UnplannedProver) count(ctx context.Context) (map[podNames]map[network.Device]testbed.Counters, error) {
	all := map[podNames]map[network.Device]testbed.Counters{}
	for e, w := range p.ways {
		counted, err := p.w.Count(ctx, w.from, w.to)
		if err != nil {
			return nil, err
		}
		all[e] = counted
	}
	return all, nil
}

// End implements Prover. Devices of nodes carry what others move as well: that too much passed can't be told, that too little did
// can.
func (p *UnplannedProver) End(ctx context.Context, moved []Moved) (Audit, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost != nil {
		return Audit{}, fmt.Errorf("begin to audit the devices: %w", p.lost)
	}
	if p.start == nil {
		return Audit{}, errors.New("audit the devices: the audit was not begun")
	}
	counted, err := p.count(ctx)
	if err != nil {
		return Audit{}, fmt.Errorf("audit the devices: %w", err)
	}
	var b balance
	for _, e := range slices.SortedFunc(maps.Keys(p.ways), func(a, b podNames) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) }) {
		w := p.ways[e]
		requests, responses, both, spread := unit.Bytes(0), unit.Bytes(0), unit.Bytes(0), unit.Bytes(0)
		for _, m := range moved {
			if m.From.Name() == e.from && m.To.Name() == e.to {
				requests, responses, both = requests+m.Requests, responses+m.Responses, both+m.Both
				if len(m.Peers) > 0 {
					spread += m.Both // over all of them: only the client's devices carried all
				}
			}
		}
		before, after := b.seen(p.start[e], counted[e])
		changed := changes(before, after)
		for _, d := range inOrder(changed) {
			client, own := w.own[d]
			if c := changed[d]; own {
				if c.lost != "" {
					b.find("%s %s while it was watched", w.name(d), c.lost)
					continue
				}
				least := both
				if !client {
					least -= spread
				}
				short := c.shortages(w.name(d), auditLeast, least, passing{true, client, requests}, passing{false, !client, responses})
				b.Findings = append(b.Findings, short...)
			}
		}
	}
	return b.Audit, nil
}

// seen leaves out the places that could not be looked at both times: nothing is known of their devices.
func (b *balance) seen(start, end map[network.Device]testbed.Counters) (before, after map[network.Device]testbed.Counters) {
	in := func(all map[network.Device]testbed.Counters) map[network.Space]bool {
		spaces := map[network.Space]bool{}
		for d := range all {
			spaces[d.In] = true
		}
		return spaces
	}
	first, last := in(start), in(end)
	both := func(all map[network.Device]testbed.Counters) map[network.Device]testbed.Counters {
		known := map[network.Device]testbed.Counters{}
		for d, c := range all {
			if first[d.In] && last[d.In] {
				known[d] = c
			}
		}
		return known
	}
	before, after = both(start), both(end)
	if len(before) < len(start) || len(after) < len(end) {
		b.Weak = append(b.Weak, "no audit of the whole trial where its beginning or end could not be watched")
	}
	return before, after
}
