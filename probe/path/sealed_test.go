package path_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/testbed"
	"netdelta/unit"
)

// plaintext is a packet of the load as a device of a node sees it.
func plaintext(o path.Observation, device network.Device, outgoing bool) testbed.Packet {
	client, server := o.Private[0], o.Load.Server
	frame := ethernet(ipPacket(17, client, server.Addr(), udp(3000, server.Port(), make([]byte, 100))))
	return testbed.Packet{Device: device, Outgoing: outgoing, Length: unit.Bytes(len(frame)), Head: frame}
}

// One packet that can be read where all should be encrypted is one too many, whatever it carries, unless it is the second
// sight of one that IPsec has decrypted.
func TestWhatCanBeRead(t *testing.T) {
	leaving, entering := node(0, "eth0"), node(1, "eth0")
	inside := func(o path.Observation) testbed.Packet {
		p := plaintext(o, leaving, true)
		p.Head = ethernet(ipPacket(4, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), p.Head[14:]))
		p.Length = unit.Bytes(len(p.Head))
		return p
	}
	otherPort := func(o path.Observation) testbed.Packet {
		o.Load.Server = netip.AddrPortFrom(o.Load.Server.Addr(), 9)
		return plaintext(o, leaving, true)
	}
	echo := func(o path.Observation) testbed.Packet {
		p := plaintext(o, leaving, true)
		p.Head = slices.Clone(p.Head)
		p.Head[14+9] = 1 // ICMP, as errors are
		return p
	}
	for _, name := range []string{"wireguard", "ipsec"} {
		for what, c := range map[string]struct {
			packet func(path.Observation) testbed.Packet
			finds  string
		}{
			"a packet that leaves": {func(o path.Observation) testbed.Packet { return plaintext(o, leaving, true) }, "node0/eth0: 1 of the pods' packets could be read"},
			"one in a tunnel":      {inside, "node0/eth0: 1 of the pods' packets could be read"},
			"one of another load":  {otherPort, "node0/eth0: 1 of the pods' packets could be read"},
			"an error message":     {echo, ""},
			"one in the pod":       {func(o path.Observation) testbed.Packet { return plaintext(o, o.Request[0].Device, true) }, ""},
			"a packet that enters": {func(o path.Observation) testbed.Packet { return plaintext(o, entering, false) },
				map[string]string{"wireguard": "node1/eth0: 1 of the pods' packets could be read"}[name]},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				o := one(t, name)
				if p := path.Judge(o); !p.OK || p.Encapsulation != o.Encryption.Wrap {
					t.Fatalf("before: %q, encapsulation %q", p.Findings, p.Encapsulation)
				}
				o.Sample.Packets = append(o.Sample.Packets, c.packet(o))
				p := path.Judge(o)
				if said := strings.Join(p.Findings, "\n"); p.OK != (c.finds == "") || !strings.Contains(said, c.finds) {
					t.Errorf("findings %q, want %q", said, c.finds)
				}
			})
		}
	}
}

// What is encrypted in another way than the plan says, or without need, is found.
func TestOtherwiseEncrypted(t *testing.T) {
	o := one(t, "ipsec")
	o.Sample = one(t, "wireguard").Sample
	p := path.Judge(o)
	if said := strings.Join(p.Findings, "\n"); !strings.Contains(said, "had the encapsulation wireguard; the plan says esp") {
		t.Errorf("findings %q", said)
	}
	o = one(t, "routed")
	o.Sample = one(t, "ipsec").Sample
	p = path.Judge(o)
	if said := strings.Join(p.Findings, "\n"); !strings.Contains(said, "had the encapsulation esp; the plan says none") {
		t.Errorf("findings %q", said)
	}
}
