package path_test

import (
	"net/netip"
	"slices"
	"testing"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/unit"
)

// misrouted is a network of the catalogue that is built otherwise than it says.
func misrouted(t *testing.T, name string, alter func(network.Topology, *network.Plan)) network.Network {
	t.Helper()
	n := named(t, name)
	base := n.Build
	n.Build = func(top network.Topology) network.Plan {
		p := base(top)
		alter(top, &p)
		return p
	}
	return n
}

func node(i int, device string) network.Device {
	return network.Device{In: network.InNode(i), Name: device}
}

// secondLink joins the two nodes by a cable between eth1 and eth1, past the switch.
func secondLink(mtu unit.Bytes) []network.Op {
	end := func(i int) network.End {
		return network.End{Device: node(i, "eth1"), Role: network.RolePort, MAC: network.MAC{2, 0x6e, 0x64, 99, 0, byte(i)}}
	}
	address := func(i int) network.Op {
		return network.Address{Device: node(i, "eth1"), Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, 1, byte(i + 1)}), 24)}
	}
	return []network.Op{network.Veth{A: end(0), B: end(1), MTU: mtu}, address(0), address(1)}
}

// A second underlay link has the better route, to the pods or to the other node.
func TestBetterRoute(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]func(network.Topology, int) netip.Prefix{
		"routed": func(top network.Topology, i int) netip.Prefix {
			return netip.PrefixFrom(top.Nodes[i].PodPrefix.Masked().Addr(), top.Nodes[i].PodPrefix.Bits()+1)
		},
		"host": func(top network.Topology, i int) netip.Prefix {
			a := top.Nodes[i].Address.Addr()
			return netip.PrefixFrom(a, a.BitLen())
		},
		"bridge-nat": func(top network.Topology, i int) netip.Prefix {
			a := top.Nodes[i].Address.Addr()
			return netip.PrefixFrom(a, a.BitLen())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := open(t, misrouted(t, name, func(top network.Topology, p *network.Plan) {
				p.Ops = append(p.Ops, secondLink(top.MTU)...)
				for i := range 2 {
					p.Ops = append(p.Ops, network.Route{
						Device: node(i, "eth1"), To: to(top, 1-i), Via: netip.AddrFrom4([4]byte{198, 18, 1, byte(2 - i)}),
					})
				}
			}), testbed.Spec{})
			p := newEnds(t, o, 0, 2).proof(t, "tcp", 10_000, 20)
			told(t, p, "node0/eth1 carried 100% of the bytes", "the plan says node0/eth0, which carried 0%")
			told(t, p, "node1/eth1 carried 100% of the bytes", "the plan says node1/eth0, which carried 0%")
			told(t, p, "node0/eth0 sent 0 bytes in 0 packets", "200000 bytes of payload")
			if len(p.Stray) != 4 || p.Stray[0].Device != "node0/eth1" || p.Stray[0].Bytes < 200_000 {
				t.Errorf("stray %+v", p.Stray)
			}
		})
	}
}

// The tunnel stands on the second link.
func TestTunnelOnTheWrongDevice(t *testing.T) {
	t.Parallel()
	other := func(a netip.Addr) netip.Addr {
		if b := a.As4(); b[1] == 18 {
			return netip.AddrFrom4([4]byte{198, 18, 1, b[3]})
		}
		return a
	}
	for _, name := range []string{"vxlan", "vxlan-routed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := open(t, misrouted(t, name, func(top network.Topology, p *network.Plan) {
				ops := secondLink(top.MTU)
				for _, op := range p.Ops {
					switch o := op.(type) {
					case network.Vxlan:
						o.Under.Name, o.Local = "eth1", other(o.Local)
						op = o
					case network.Forward:
						o.To = other(o.To)
						op = o
					}
					ops = append(ops, op)
				}
				p.Ops = ops
			}), testbed.Spec{})
			p := newEnds(t, o, 0, 2).proof(t, "udp", 1000, 50)
			told(t, p, "node0/eth1 carried 100% of the bytes", "the plan says node0/eth0, which carried 0%")
			told(t, p, "node1/eth1 carried 100% of the bytes", "the plan says node1/eth0, which carried 0%")
			if len(p.Findings) < 4 {
				t.Errorf("findings %q", p.Findings)
			}
		})
	}
}

// lowered makes the underlay's links smaller than the plan says.
func lowered(p *network.Plan, mtu unit.Bytes) {
	for i, op := range p.Underlay {
		switch o := op.(type) {
		case network.Veth:
			o.MTU = mtu
			p.Underlay[i] = o
		case network.Bridge:
			o.MTU = mtu
			p.Underlay[i] = o
		}
	}
}

// The underlay is too small for the tunnel's packets, which are cut up. The kernel knows the tunnel's own MTU from the device
// that it is told to stand on, though the packets leave by the one that routes say.
func TestTunnelIsFragmented(t *testing.T) {
	t.Parallel()
	const truly = 1400
	o := open(t, misrouted(t, "vxlan", func(top network.Topology, p *network.Plan) {
		lowered(p, truly)
		ops := secondLink(top.MTU)
		for _, op := range p.Ops {
			if v, is := op.(network.Vxlan); is {
				v.Under.Name = "eth1"
				op = v
			}
			ops = append(ops, op)
		}
		p.Ops = ops
	}), testbed.Spec{})
	p := newFragmenter(t, o).proof(t, 1390, 50)
	told(t, p, "node0 cut packets into", "IP fragments")
	told(t, p, "node1 put", "packets together from IP fragments")
	told(t, p, "IP fragments among the sampled packets", "200 on node0/eth0", "200 on node1/eth0")
	told(t, p, "the path's MTU to be 1350", "the plan says 1450")
	if p.Fragments == 0 || p.MTU != truly-50 {
		t.Errorf("%d fragments, an MTU of %d", p.Fragments, p.MTU)
	}
}

// The path lets through less than the plan says, though what the load sends just fits.
func TestSmallerPathMTU(t *testing.T) {
	t.Parallel()
	const truly = 1400
	for _, family := range families() {
		t.Run(string(family), func(t *testing.T) {
			t.Parallel()
			o := open(t, misrouted(t, "routed", func(_ network.Topology, p *network.Plan) { lowered(p, truly) }), testbed.Spec{Family: family})
			p := newEnds(t, o, 0, 2).proof(t, "udp", 1000, 20)
			told(t, p, "a packet of 1500 bytes from pod0 did not reach pod2 whole")
			told(t, p, "takes the path's MTU to be 1400", "the plan says 1500")
			if p.MTU != truly {
				t.Errorf("the MTU is %d, want %d", p.MTU, truly)
			}
		})
	}
}

// The path lets through more than the plan says.
func TestLargerPathMTU(t *testing.T) {
	t.Parallel()
	o := open(t, misrouted(t, "routed", func(_ network.Topology, p *network.Plan) {
		lowered(p, 2000)
		for i, op := range p.Ops {
			if v, is := op.(network.Veth); is {
				v.MTU = 2000
				p.Ops[i] = v
			}
		}
	}), testbed.Spec{})
	p := newEnds(t, o, 0, 2).proof(t, "tcp", 10_000, 20)
	told(t, p, "a packet of 1501 bytes from pod0 to pod2 was not refused")
	told(t, p, "node0/eth0 carried a packet of 2000 bytes", "MTU there is 1500")
}

// The plan says VXLAN, but the bridges are joined by the underlay itself; the tunnel is there and carries nothing.
func TestNotEncapsulated(t *testing.T) {
	t.Parallel()
	o := open(t, misrouted(t, "vxlan", func(_ network.Topology, p *network.Plan) {
		var ops, addresses []network.Op
		for _, op := range p.Ops {
			switch o := op.(type) {
			case network.Enslave:
				if o.Name == "vxlan0" {
					o.Name = "eth0"
				}
				op = o
			case network.Address:
				if o.Name == "eth0" && o.In.Kind == network.NodeSpace {
					o.Name = "br0"
					addresses = append(addresses, o)
					continue
				}
			}
			ops = append(ops, op)
		}
		p.Ops = slices.Concat(ops, addresses)
	}), testbed.Spec{})
	p := newEnds(t, o, 0, 2).proof(t, "tcp", 1000, 50)
	told(t, p, "node0/eth0:", "sampled packets had the encapsulation none", "the plan says vxlan")
	told(t, p, "node0/vxlan0 sent 0 bytes")
	told(t, p, "+0.0 bytes larger", "adds 50")
	if p.Encapsulation != "none" || p.Overhead != 0 {
		t.Errorf("encapsulation %q of %d bytes", p.Encapsulation, p.Overhead)
	}
}

// The plan says nothing of VXLAN, but a tunnel carries the load.
func TestEncapsulated(t *testing.T) {
	t.Parallel()
	o := open(t, misrouted(t, "bridge", func(top network.Topology, p *network.Plan) {
		vxlan, err := named(t, "vxlan").Plan(top)
		if err != nil {
			t.Fatal(err)
		}
		p.Ops = vxlan.Ops
	}), testbed.Spec{})
	p := newEnds(t, o, 0, 2).proof(t, "udp", 500, 50)
	told(t, p, "node1/eth0:", "sampled packets had the encapsulation vxlan", "the plan says none")
	told(t, p, "node0/vxlan0 carried", "not on the way")
	told(t, p, "+50.0 bytes larger", "adds 0")
}

// Datagrams larger than the MTU are fragmented by right, also inside a tunnel and behind a firewall that puts them together.
func TestLargeDatagrams(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"host", "bridge-nat", "vxlan", "vxlan-routed"} {
		for _, family := range families() {
			t.Run(name+"-"+string(family), func(t *testing.T) {
				t.Parallel()
				e := newFragmenter(t, open(t, named(t, name), testbed.Spec{Family: family}))
				p := e.proof(t, 2048, 30)
				if !p.OK || p.Fragments == 0 {
					t.Errorf("%d fragments sampled, findings %q", p.Fragments, p.Findings)
				}
			})
		}
	}
}
