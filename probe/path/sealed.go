package path

import (
	"net/netip"
	"slices"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/unit"
)

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
