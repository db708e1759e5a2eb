package path

import (
	"fmt"
	"net/netip"
	"slices"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/unit"
)

// Background says that daemons in these pods talk to each other, and to any client among them, whenever they like. It replaces what
// was said before, and holds until the network is swapped.
func (p *PlannedProver) Background(pods []testbed.Pod) {
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
func (p *PlannedProver) meet(w *watched) {
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
func (p *PlannedProver) shared(from testbed.Pod, to []testbed.Pod, protocol network.Protocol) []network.Device {
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

// sealed tells whether packets are encrypted where they cross a device.
func (j *judgement) sealed(d network.Device) bool {
	return slices.ContainsFunc(j.Request, func(h network.Hop) bool { return h.Device == d && h.Encrypted })
}

// wrap names what packets are wrapped in where they cross a device.
func (j *judgement) wrap(h network.Hop) string {
	switch {
	case h.Encrypted:
		return j.Encryption.Wrap
	case h.Encapsulated:
		return j.Encapsulation
	}
	return none
}

// adds is how much longer packets are there, at least and at most.
func (j *judgement) adds(h network.Hop) (least, most unit.Bytes) {
	return j.Encryption.Adds(j.Overhead, h)
}

// again tells whether a packet was seen before, encrypted: IPsec hands what it has decrypted to the device once more.
func (j *judgement) again(p testbed.Packet, f frame) bool {
	return f.sealed == "" && !p.Outgoing && j.Encryption.Wrap == "esp" && j.sealed(p.Device)
}

// readable tells whether a packet of the pods can be read where the plan has it encrypted.
func (j *judgement) readable(p testbed.Packet, f frame) bool {
	if f.sealed != "" || f.control(p.Head) || !j.sealed(p.Device) {
		return false
	}
	own := func(a netip.AddrPort) bool { return slices.Contains(j.Private, a.Addr()) }
	return slices.ContainsFunc(f.layer[:f.depth], func(l layer) bool { return own(l.source) || own(l.destination) })
}

// secrets finds packets that could be read. One is enough.
func (j *judgement) secrets() {
	for _, h := range j.crossed() {
		if n := j.on(h.Device).readable; n > 0 {
			j.find("%s: %d of the pods' packets could be read; the plan has %s encrypt them", h.Device, n, j.Encryption.Kind)
		}
	}
}

// detour is a direction in which the plan has nothing pass a device that it otherwise has on the way: an end of a pair that a
// program leads packets past. What passes there after all went another way than planned.
type detour struct {
	crossing
	traffic traffic
}

// detours are those directions of planned devices that carried more than a limit.
func detours(changed map[network.Device]change, need map[crossing]unit.Bytes, limit func(network.Device) float64) []detour {
	var all []detour
	for _, d := range inOrder(changed) {
		out, in := crossing{d, true}, crossing{d, false}
		_, sends := need[out]
		_, receives := need[in]
		if sends == receives {
			continue
		}
		x := out
		if sends {
			x = in
		}
		if t := changed[d].of(x.sends); float64(t.bytes) > limit(d) {
			all = append(all, detour{x, t})
		}
	}
	return all
}

// String is a finding.
func (d detour) String() string {
	return fmt.Sprintf("%s %s %d bytes in %d packets; the plan has nothing pass it in that direction",
		d.Device, d.verb(), d.traffic.bytes, d.traffic.packets)
}
