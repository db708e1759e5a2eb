// Package path proves that a load went the way that its network says: over the devices that the plan names, wrapped as the
// plan says and in no other way, whole, and in packets as large as promised. It reads the counters of all devices and of the
// IP stacks before and after a short load, and looks at a sample of the packets (AF_PACKET). No eBPF is used: programs in the
// path would change what is measured, and the counters see every packet in any case.
//
// There are two provers, for two questions. A PlannedProver has a plan: Judge holds each device's counters against what the plan
// has pass it in each direction, and the devices off the way have to stay silent. An UnplannedProver is for machines that
// somebody else has joined, such as a cluster's: which devices packets cross there is not known beforehand and others use them too, so
// JudgeUnplanned follows the load's own packets and says which way they went. They share the load, the decoder of packets, the counts of
// a sample and the changes of counters. Both judges are pure functions over what was observed. An Audit holds the counters of a whole
// phase against what the cells moved in it.
package path

import (
	"encoding/binary"
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
		w.Servers = append(w.Servers, pod.Address(), plan.Backend(w.from, slices.Index(p.o.Pods(), pod)))
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

// none is the name of no encapsulation.
const none = "none"

// encapsulation is a way of wrapping packets in IP packets.
type encapsulation struct {
	name string
	// protocol is the protocol of the outer IP packet. For UDP, ports are the destination's.
	protocol network.Protocol
	ports    []uint16
	// unwrap returns what is inside, given what comes after the outer transport header, and false where the header shows
	// that it is something else.
	unwrap func(b []byte) ([]byte, bool)
	// ethernet says that a frame is inside; otherwise it is an IP packet. What is sealed can't be read.
	ethernet, sealed bool
}

// encapsulations lists those that a decoder recognises, by the further ports, too, that tunnels have chosen, by their names.
func encapsulations(ports map[string][]uint16) []encapsulation {
	all := []encapsulation{
		// RFC 7348; 8472 is the port that Linux took before there was a number.
		{name: "vxlan", protocol: network.UDP, ports: []uint16{4789, 8472}, unwrap: vxlan, ethernet: true},
		{name: "geneve", protocol: network.UDP, ports: []uint16{network.GenevePort}, unwrap: geneve, ethernet: true},
		{name: "udp-tun", protocol: network.UDP, ports: []uint16{network.UDPTunnelPort}, unwrap: bare},
		{name: "wireguard", protocol: network.UDP, ports: []uint16{network.WireGuardPort}, unwrap: wireguard, sealed: true},
		{name: "esp", protocol: network.ProtocolESP, unwrap: esp, sealed: true},
		{name: "ipip", protocol: network.ProtocolIPIP, unwrap: version(4)},
		{name: "ipip", protocol: network.ProtocolIPIP6, unwrap: version(6)},
		{name: "gre", protocol: network.ProtocolGRE, unwrap: gre(typeIPv4, typeIPv6)},
		{name: "gretap", protocol: network.ProtocolGRE, unwrap: gre(typeEthernet), ethernet: true},
	}
	for i, e := range all {
		all[i].ports = slices.Concat(e.ports, ports[e.name])
	}
	return all
}

// vxlan takes the VXLAN header off (RFC 7348, section 5): the flag of a valid identifier, and all else that is reserved
// zero.
func vxlan(b []byte) ([]byte, bool) {
	const header = 8
	if len(b) < header || b[0] != 0x08 || b[1]|b[2]|b[3]|b[7] != 0 {
		return nil, false
	}
	return b[header:], true
}

// networkNumber is the number of the network that a header names. VXLAN and Geneve have one, both at the same place.
func networkNumber(name string, b []byte) uint32 {
	const at, size = 4, 8
	if name != "vxlan" && name != "geneve" || len(b) < size {
		return 0
	}
	return binary.BigEndian.Uint32(b[at:]) >> 8
}

// typeEthernet is the number of a whole frame (transparent Ethernet bridging).
const typeEthernet = 0x6558

// geneve takes the Geneve header and its options off (RFC 8926, section 3.4): of version 0, around a frame.
func geneve(b []byte) ([]byte, bool) {
	const header, protocol, word = 8, 2, 4
	if len(b) < header || b[0]>>6 != 0 || b[7] != 0 || binary.BigEndian.Uint16(b[protocol:]) != typeEthernet {
		return nil, false
	}
	size := header + int(b[0]&0x3f)*word
	if len(b) < size {
		return nil, false
	}
	return b[size:], true
}

// gre takes off a GRE header of version 0 before the given types of packets, with the checksum, key and number that its flags
// name (RFC 2784, RFC 2890).
func gre(types ...uint16) func([]byte) ([]byte, bool) {
	return func(b []byte) ([]byte, bool) {
		const header, protocol, word = 4, 2, 4
		const checksum, key, number, reserved = 0x8000, 0x2000, 0x1000, 0x4fff
		if len(b) < header {
			return nil, false
		}
		flags, size, known := binary.BigEndian.Uint16(b), header, slices.Contains(types, binary.BigEndian.Uint16(b[protocol:]))
		for _, f := range []uint16{checksum, key, number} {
			if flags&f != 0 {
				size += word
			}
		}
		if !known || flags&reserved != 0 || len(b) < size {
			return nil, false
		}
		return b[size:], true
	}
}

// version has nothing to take off a packet of a version of IP.
func version(of byte) func([]byte) ([]byte, bool) {
	return func(b []byte) ([]byte, bool) { return b, len(b) > 0 && b[0]>>4 == of }
}

// bare has nothing to take off: the packet is all that a datagram carries.
func bare(b []byte) ([]byte, bool) { return b, len(b) > 0 }

// wireguard recognises the data messages of WireGuard (section 5.4.6 of its white paper).
func wireguard(b []byte) ([]byte, bool) {
	const header, data = 16, 4
	return nil, len(b) >= header && b[0] == data && b[1]|b[2]|b[3] == 0
}

// esp recognises the beginning of ESP (RFC 4303, section 2.1): its association has a number that is not reserved.
func esp(b []byte) ([]byte, bool) {
	const header, reserved = 8, 256
	return nil, len(b) >= header && binary.BigEndian.Uint32(b) >= reserved
}

// wrapping names the encapsulation that a plan makes, none if it makes none. Encryption is not one.
func wrapping(p network.Plan) string {
	for _, op := range p.Ops {
		switch op := op.(type) {
		case network.Vxlan:
			return "vxlan"
		case network.UDPTunnel:
			return "udp-tun"
		case network.Geneve:
			return "geneve"
		case network.Tunnel:
			return string(op.Kind)
		}
	}
	return none
}
