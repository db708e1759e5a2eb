package network_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netdelta/internal/property"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
)

// encrypted plans a network of two nodes with two pods each.
func encrypted(t *testing.T, name, encryption string, family result.Family, mtu unit.Bytes) (network.Plan, error) {
	t.Helper()
	n, err := network.Find(network.Catalogue(), name)
	if err != nil {
		t.Fatal(err)
	}
	return n.Plan(topology(t, network.Layout{Family: family, MTU: mtu, Conditions: result.Conditions{Encryption: encryption}}))
}

// The MTU that encryption leaves to pods, over an underlay of 1500 bytes.
func TestEncryptionsReserve(t *testing.T) {
	for _, c := range []struct {
		network, encryption string
		four, six           unit.Bytes
	}{
		{"routed", "", 1500, 1500},
		{"routed", result.WireGuard, 1440, 1420}, // what Calico gives to pods
		{"routed", result.IPsec, 1446, 1426},
		{"wireguard", "", 1440, 1420},
		{"ipsec", "", 1446, 1426},
		{"netkit", result.WireGuard, 1440, 1420},
		{"vxlan", result.WireGuard, 1390, 1350},
		{"vxlan", result.IPsec, 1416, 1396},
		{"ipip", result.IPsec, 1446, 1426},
		{"bridge-nat", result.WireGuard, 1440, 1420},
		{"bridge-nat", result.IPsec, 1466, 1466},
		{"host", result.WireGuard, 1440, 1420},
	} {
		for family, want := range map[result.Family]unit.Bytes{result.IPv4: c.four, result.IPv6: c.six} {
			p, err := encrypted(t, c.network, c.encryption, family, 1500)
			if err != nil {
				t.Fatal(err)
			}
			if p.MTU != want || p.MTU+p.Overhead != 1500 {
				t.Errorf("%s with %q, %s: an MTU of %d and an overhead of %d, want %d", c.network, c.encryption, family, int64(p.MTU), int64(p.Overhead), int64(want))
			}
		}
	}
}

// ESP fits whatever the underlay's MTU is, and not a byte more would (RFC 4303, section 2.4; the figures are the kernel's, in
// xfrm_state_mtu).
func TestESPFits(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		underlay := unit.Bytes(rapid.IntRange(1500, 9000).Draw(t, "mtu"))
		top, err := network.NewTopology(network.Layout{Nodes: 2, PodsPerNode: 1, MTU: underlay})
		if err != nil {
			t.Fatal(err)
		}
		n, err := network.Find(network.Catalogue(), "ipsec")
		if err != nil {
			t.Fatal(err)
		}
		p, err := n.Plan(top)
		if err != nil {
			t.Fatal(err)
		}
		onWire := func(packet unit.Bytes) unit.Bytes { return 20 + 8 + 8 + (packet+2+3)/4*4 + 16 }
		if onWire(p.MTU) > underlay || onWire(p.MTU+1) <= underlay {
			t.Errorf("an MTU of %d makes %d bytes of %d, one more %d", int64(p.MTU), int64(onWire(p.MTU)), int64(underlay), int64(onWire(p.MTU+1)))
		}
		least, most := p.Adds(network.Hop{Encapsulated: true, Encrypted: true})
		for size := p.MTU - 8; size <= p.MTU; size++ {
			if adds := onWire(size) - size; adds < least || adds > most {
				t.Errorf("a packet of %d bytes gets %d more, the plan says %d to %d", int64(size), int64(adds), int64(least), int64(most))
			}
		}
	})
}

// A network that can't be encrypted says why.
func TestEncryptionIsRefused(t *testing.T) {
	for name, why := range map[string]string{
		"bridge": "on the link between the nodes", "macvlan": "on the link between the nodes", "ipvlan-l3": "on the link between the nodes",
		"wireguard": "itself", "ipsec": "itself", "ebpf-routed": "past the node's IP stack", "xdp": "past the node's IP stack",
	} {
		_, err := encrypted(t, name, result.WireGuard, result.IPv4, 0)
		var excluded *network.NotPossibleError
		if !errors.As(err, &excluded) || excluded.Network != name || excluded.Condition != "encryption=wireguard" || !strings.Contains(excluded.Why, why) {
			t.Errorf("%s: got error %v, want one about %q", name, err, why)
		}
	}
	n, err := network.Find(network.Catalogue(), "host")
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.Plan(topology(t, network.Layout{PodsOutlive: true, Conditions: result.Conditions{Encryption: result.IPsec}}))
	if excluded := new(network.NotPossibleError); !errors.As(err, &excluded) {
		t.Errorf("host with pods that outlive it: got error %v", err)
	}
	if _, err := encrypted(t, "routed", "rot13", result.IPv4, 0); err == nil || errors.As(err, new(*network.NotPossibleError)) {
		t.Errorf("an unknown encryption: got error %v", err)
	}
	if _, err := encrypted(t, "routed", result.WireGuard, result.IPv6, 1359); err == nil || !strings.Contains(err.Error(), "1360 or more") {
		t.Errorf("an MTU that leaves too little: got error %v", err)
	}
}

// All that crosses the underlay's ports is encrypted, there and back, and nothing on one node is.
func TestEncryptedPaths(t *testing.T) {
	for _, n := range network.Catalogue() {
		for _, encryption := range []string{result.WireGuard, result.IPsec} {
			if n.Encryption != "" {
				continue
			}
			p, err := encrypted(t, n.Name, encryption, result.IPv4, 0)
			if errors.As(err, new(*network.NotPossibleError)) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range p.Path(0, 1, network.UDP) {
				if h.Encrypted {
					t.Errorf("%s with %s: %s on one node", n.Name, encryption, h)
				}
			}
			for _, way := range [][]network.Hop{p.Path(0, 2, network.UDP), p.Path(2, 0, network.UDP)} {
				ports := 0
				for _, h := range way {
					if h.Encrypted != (h.Role == network.RolePort) || h.Encrypted && (!h.Encapsulated || h.Name != "eth0") {
						t.Errorf("%s with %s: %s", n.Name, encryption, h)
					}
					if h.Encrypted {
						ports++
					}
				}
				if ports != 2 {
					t.Errorf("%s with %s: encrypted on %d ports: %v", n.Name, encryption, ports, way)
				}
			}
		}
	}
}

// Keys belong to nodes and directions: no two have the same, and the same topology has the same.
func TestKeys(t *testing.T) {
	top := topology(t, network.Layout{})
	for range 2 {
		wg, err := encrypted(t, "wireguard", "", result.IPv4, 0)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[[32]byte]bool{}
		for _, op := range wg.Ops {
			if w, ok := op.(network.WireGuard); ok {
				if seen[w.Private] || len(w.Peers) != len(top.Nodes)-1 {
					t.Errorf("%s: its key is another's, or it has %d peers", w.Device, len(w.Peers))
				}
				seen[w.Private] = true
				for _, p := range w.Peers {
					if seen[p.Public] {
						t.Errorf("%s: a peer's public key was seen before", w.Device)
					}
					seen[p.Public] = true
				}
			}
		}
		if len(seen) != 2*len(top.Nodes) {
			t.Errorf("%d keys", len(seen))
		}
	}
	esp, err := encrypted(t, "ipsec", "", result.IPv4, 0)
	if err != nil {
		t.Fatal(err)
	}
	out, in := map[network.Association]bool{}, map[network.Association]bool{}
	for _, op := range esp.Ops {
		if p, ok := op.(network.Protect); ok {
			out[p.Out], in[p.Incoming] = true, true
			if p.Out.SPI == p.Incoming.SPI || p.Out.Key == p.Incoming.Key {
				t.Errorf("%s: both directions have one association", p)
			}
		}
	}
	for a := range out {
		if !in[a] {
			t.Errorf("no end expects %#x", a.SPI)
		}
	}
	if len(out) != 2 || len(in) != 2 {
		t.Errorf("%d associations out, %d in", len(out), len(in))
	}
}
