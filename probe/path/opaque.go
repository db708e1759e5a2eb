package path

import (
	"slices"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/unit"
)

// Background says that daemons in these pods talk to each other, and to any client among them, whenever they like. It replaces what
// was said before, and holds until the network is swapped.
func (p *Prober) Background(pods []testbed.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.background = nil
	for _, from := range pods {
		for _, to := range pods {
			if from != to {
				p.background = append(p.background, p.o.Path(from, to, network.TCP)...)
			}
		}
	}
}

// allow adds ways of which nothing is known to what passes each device.
func allow(need map[crossing]unit.Bytes, aside []network.Hop) {
	for _, h := range aside {
		need[crossing{h.Device, h.Sends}] += 0
	}
}

// meet adds what only the load knows: the other pods that it talked to.
func (p *Prober) meet(w *watched) {
	plan := p.o.Plan()
	for _, pod := range w.Load.Peers {
		w.Servers = append(w.Servers, pod.Address(), plan.Backend(slices.Index(p.o.Pods(), pod)))
		w.Private = append(w.Private, pod.Address())
	}
	w.Background = p.background
	if w.Load.Opaque {
		w.Shared = p.shared(w.client, append([]testbed.Pod{w.server}, w.Load.Peers...), w.Load.Protocol)
	}
}

// shared are the devices that are on all ways from a pod to the others, and on all ways back.
func (p *Prober) shared(from testbed.Pod, to []testbed.Pod, protocol network.Protocol) []network.Device {
	var ways [][]network.Hop
	for _, pod := range to {
		ways = append(ways, p.o.Path(from, pod, protocol), p.o.Path(pod, from, protocol))
	}
	var all []network.Device
	for _, h := range ways[0] {
		everywhere := !slices.ContainsFunc(ways, func(way []network.Hop) bool {
			return !slices.ContainsFunc(way, func(o network.Hop) bool { return o.Device == h.Device })
		})
		if everywhere && !slices.Contains(all, h.Device) {
			all = append(all, h.Device)
		}
	}
	return all
}

// opaque holds what the devices on the way carried against the least that an opaque load was.
func (j *judgement) opaque() {
	if !j.Load.Opaque {
		return
	}
	for _, d := range j.Shared {
		c, there := j.changed[d]
		switch {
		case !there || c.lost != "": // said elsewhere
		case c.both().packets == 0:
			j.find("%s carried nothing; the plan has all packets pass it", d)
		case float64(c.both().bytes) < leastShare*float64(j.Load.Both):
			j.find("%s carried %d bytes in %d packets; the plan has at least %d bytes of payload pass it", d, c.both().bytes, c.both().packets, int64(j.Load.Both))
		}
	}
}

// carried is the most that a device on the way of opaque flows carried.
func carried(flows []Flow, changed map[network.Device]change) unit.Bytes {
	most := unit.Bytes(0)
	for _, f := range flows {
		for _, d := range f.Shared {
			if c := changed[d]; c.lost == "" {
				most = max(most, unit.Bytes(c.both().bytes))
			}
		}
	}
	return most
}

// opaque finds devices that carried less than the opaque flows that passed them.
func (b *balance) opaque(flows []Flow) {
	least := map[network.Device]unit.Bytes{}
	for _, f := range flows {
		for _, d := range f.Shared {
			least[d] += f.Both
		}
	}
	for _, d := range inOrder(b.changed) {
		c := b.changed[d]
		if t := c.both(); c.lost == "" && float64(t.bytes) < auditLeast*float64(least[d]) {
			b.find("%s carried %d bytes in %d packets; the plan had at least %d bytes of payload pass it", d, t.bytes, t.packets, int64(least[d]))
		}
	}
}
