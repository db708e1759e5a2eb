package path

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

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
