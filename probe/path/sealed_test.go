package path_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
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

// Ways are proved where packets are encrypted on them, whatever they are wrapped in before.
func TestEncryptionProves(t *testing.T) {
	require.Namespaces(t)
	for _, n := range network.Catalogue() {
		for _, family := range []result.Family{result.IPv4, result.IPv6} {
			for _, encryption := range []string{result.WireGuard, result.IPsec} {
				spec := testbed.Spec{Nodes: 2, PodsPerNode: 2, Network: n.Name, Family: family, Conditions: result.Conditions{Encryption: encryption}}
				err := lab.NewDriver(network.Catalogue()).Supports(t.Context(), spec)
				if errors.As(err, new(*network.NotPossibleError)) {
					continue
				}
				t.Run(n.Name+"-"+string(family)+"/"+encryption, func(t *testing.T) { proves(t, open(t, n, spec), 2) })
			}
		}
	}
}

// A route that leads past the encryption is found out.
func TestRouteAroundEncryption(t *testing.T) {
	o := open(t, misrouted(t, "wireguard", func(top network.Topology, p *network.Plan) {
		for i := range 2 {
			pods := top.Nodes[1-i].PodPrefix
			p.Ops = append(p.Ops, network.Route{
				Device: node(i, "eth0"), To: netip.PrefixFrom(pods.Masked().Addr(), pods.Bits()+1), Via: netip.AddrFrom4([4]byte{198, 18, 0, byte(2 - i)}),
			})
		}
	}), testbed.Spec{})
	p := newEnds(t, o, 0, 2).proof(t, "udp", 100, 20)
	told(t, p, "node0/eth0:", "of the pods' packets could be read", "the plan has wireguard encrypt them")
	told(t, p, "node0/eth0:", "had the encapsulation none", "the plan says wireguard")
	told(t, p, "node0/wg0 sent 0 bytes")
}

// What is encrypted in another way than the plan says, or without need, is found.
func TestOtherwiseEncrypted(t *testing.T) {
	o := one(t, "ipsec")
	o.Sample = one(t, "wireguard").Sample
	p := path.Judge(o)
	if said := strings.Join(p.Findings, "\n"); !strings.Contains(said, "encapsulation wireguard") || !strings.Contains(said, "plan says esp") {
		t.Errorf("findings %q", said)
	}
	o = one(t, "routed")
	o.Sample = one(t, "ipsec").Sample
	p = path.Judge(o)
	if said := strings.Join(p.Findings, "\n"); !strings.Contains(said, "encapsulation esp") || !strings.Contains(said, "plan says none") {
		t.Errorf("findings %q", said)
	}
}
