package measure

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
)

// linkMeter adds up what the links of the bonds on a path send while bursts run.
type linkMeter struct {
	o      testbed.Observer
	bundle []bundle
	before map[network.Device]testbed.Counters
	sent   map[network.Device]uint64
}

// bundle is one side of the links of a bond.
type bundle struct {
	name  string
	links []network.Device
}

// linksOf is the meter for the bonds on the path between two pods, nil where there are none or they can't be observed.
func linksOf(tb testbed.Testbed, from, to testbed.Pod, protocol network.Protocol) *linkMeter {
	o := tb.Instruments().Observer
	if o == nil {
		return nil
	}
	m := &linkMeter{o: o, sent: map[network.Device]uint64{}}
	plan := o.Plan()
	way := o.Path(from, to, protocol)
	for _, b := range plan.Bonds() {
		if slices.ContainsFunc(way, func(h network.Hop) bool { return h.Device == b.Device }) {
			m.bundle = append(m.bundle, bundle{b.Device.String(), b.Members()}, farSide(plan, b))
		}
	}
	if len(m.bundle) == 0 {
		return nil
	}
	return m
}

// farSide is the other ends of a bond's links.
func farSide(p network.Plan, b network.Bond) bundle {
	far := bundle{}
	for _, op := range p.Underlay {
		v, ok := op.(network.Veth)
		if !ok {
			continue
		}
		if k := slices.Index(b.Members(), v.A.Device); k >= 0 {
			far.links = append(far.links, v.B.Device)
			far.name = strings.TrimSuffix(v.B.Device.String(), fmt.Sprintf("p%d", k))
		}
	}
	return far
}

// begin reads the counters before a burst.
func (m *linkMeter) begin(ctx context.Context) (err error) {
	if m == nil {
		return nil
	}
	m.before, err = m.o.Counters(ctx)
	return err
}

// end adds what was sent since begin.
func (m *linkMeter) end(ctx context.Context) error {
	if m == nil {
		return nil
	}
	after, err := m.o.Counters(ctx)
	if err != nil {
		return err
	}
	for _, b := range m.bundle {
		for _, l := range b.links {
			if a, was := after[l], m.before[l]; a.SentBytes >= was.SentBytes {
				m.sent[l] += a.SentBytes - was.SentBytes
			}
		}
	}
	return nil
}

// use is how the load was spread over the links.
func (m *linkMeter) use() []result.LinkUse {
	if m == nil {
		return nil
	}
	var all []result.LinkUse
	for _, b := range m.bundle {
		total := uint64(0)
		for _, l := range b.links {
			total += m.sent[l]
		}
		for _, l := range b.links {
			u := result.LinkUse{Device: l.String(), Bond: b.name, Sent: int64(m.sent[l])}
			if total > 0 {
				u.Share = float64(m.sent[l]) / float64(total)
			}
			all = append(all, u)
		}
	}
	return all
}
