package network_test

import (
	"errors"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netdelta/internal/golden"
	"netdelta/internal/property"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
)

// topology is one of two nodes with two pods each.
func topology(t *testing.T, l network.Layout) network.Topology {
	t.Helper()
	l.Nodes, l.PodsPerNode = 2, 2
	top, err := network.NewTopology(l)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func TestPlans(t *testing.T) {
	host := network.Catalogue()[0]
	for family, suffix := range map[result.Family]string{result.IPv4: "", result.IPv6: "-ipv6"} {
		for _, n := range network.Catalogue() {
			goldenPlan(t, n, n.Name+suffix, topology(t, network.Layout{Family: family}))
		}
		goldenPlan(t, host, "host-outliving"+suffix, topology(t, network.Layout{Family: family, MTU: 9000, Rate: 10e9, PodsOutlive: true}))
	}
}

// A topology that names no family is one of IPv4.
func TestPlansDefaultToIPv4(t *testing.T) {
	for _, n := range network.Catalogue() {
		want, err := n.Plan(topology(t, network.Layout{Family: result.IPv4}))
		if err != nil {
			t.Fatal(err)
		}
		got, err := n.Plan(topology(t, network.Layout{}))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Errorf("network %s: %s", n.Name, diff)
		}
	}
}

// goldenPlan compares a plan, and the paths from the first pod, with a file.
func goldenPlan(t *testing.T, n network.Network, name string, top network.Topology) {
	t.Run(name, func(t *testing.T) {
		p, err := n.Plan(top)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		b.WriteString(p.String())
		for to := 1; to < len(top.Pods); to++ {
			hops := make([]string, 0, 8)
			for _, h := range p.Path(0, to, network.UDP) {
				hops = append(hops, h.String())
			}
			b.WriteString("pod0 to pod" + string(rune('0'+to)) + ": " + p.Endpoint(0, to, 20000).String() + " by " + strings.Join(hops, " ") + "\n")
		}
		golden.Check(t, filepath.Join("testdata", name+".txt"), b.String())
	})
}

func TestMTU(t *testing.T) {
	for _, c := range []struct {
		network string
		family  result.Family
		mtu     unit.Bytes
		pod     unit.Bytes // 0 where the plan must fail
		says    string
	}{
		{"bridge", result.IPv4, 576, 576, ""},
		{"vxlan", result.IPv4, 1500, 1450, ""},
		{"vxlan-routed", result.IPv4, 9000, 8950, ""},
		{"vxlan", result.IPv4, 626, 576, ""},
		{"vxlan", result.IPv4, 625, 0, "set the link's MTU to 626 or more"},
		{"host", result.IPv4, 65535, 65535, ""},
		{"bridge", result.IPv6, 1280, 1280, ""},
		{"vxlan", result.IPv6, 1500, 1430, ""},
		{"vxlan-routed", result.IPv6, 1350, 1280, ""},
		{"vxlan-routed", result.IPv6, 1349, 0, "set the link's MTU to 1350 or more"},
		{"host", result.IPv6, 65535, 65535, ""},
	} {
		n, err := network.Find(network.Catalogue(), c.network)
		if err != nil {
			t.Fatal(err)
		}
		p, err := n.Plan(topology(t, network.Layout{Family: c.family, MTU: c.mtu}))
		if c.pod == 0 {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %s over an MTU of %d: got error %v, want one that says %q", c.network, c.family, int64(c.mtu), err, c.says)
			}
			continue
		}
		if err != nil || p.MTU != c.pod || p.Overhead != c.mtu-c.pod {
			t.Errorf("%s, %s over an MTU of %d: got %d, %d bytes of encapsulation and error %v, want %d",
				c.network, c.family, int64(c.mtu), int64(p.MTU), int64(p.Overhead), err, int64(c.pod))
		}
	}
}

func TestBadTopologies(t *testing.T) {
	for says, l := range map[string]network.Layout{
		"0 nodes: need 1 to 250":                              {PodsPerNode: 2},
		"251 nodes: need 1 to 250":                            {Nodes: 251, PodsPerNode: 2},
		"0 pods on each node: need 1 to 45":                   {Nodes: 2},
		"46 pods on each node: need 1 to 45":                  {Nodes: 2, PodsPerNode: 46},
		"an MTU of -1: need 576 to 65535 for IPv4":            {Nodes: 2, PodsPerNode: 2, MTU: -1},
		"an MTU of 575: need 576 to 65535 for IPv4":           {Nodes: 2, PodsPerNode: 2, MTU: 575},
		"an MTU of 65536: need 576 to 65535 for IPv4":         {Nodes: 2, PodsPerNode: 2, MTU: 65536},
		"an MTU of 1279: need 1280 to 65535 for IPv6":         {Nodes: 2, PodsPerNode: 2, MTU: 1279, Family: result.IPv6},
		"a link rate of -5 bit/s: need 0 (unlimited) or more": {Nodes: 2, PodsPerNode: 2, Rate: -5},
		`address family "ipv5": need ipv4 or ipv6`:            {Nodes: 2, PodsPerNode: 2, Family: "ipv5"},
	} {
		_, err := network.NewTopology(l)
		if err == nil || err.Error() != says {
			t.Errorf("%+v: got error %v, want %q", l, err, says)
		}
	}
}

// A plan needs IPv6 of the kernel where it gives out such addresses, and only there.
func TestNeeds(t *testing.T) {
	for _, n := range network.Catalogue() {
		for family, not := range map[result.Family][]network.Need{
			result.IPv4: {network.NeedIPv6, network.NeedIPTables6}, result.IPv6: {network.NeedIPTables},
		} {
			p, err := n.Plan(topology(t, network.Layout{Family: family}))
			if err != nil {
				t.Fatal(err)
			}
			needs := p.Needs()
			for _, need := range not {
				if slices.Contains(needs, need) {
					t.Errorf("network %s, %s needs %s", n.Name, family, need)
				}
			}
			if six := slices.Contains(needs, network.NeedIPv6); six != (family == result.IPv6) {
				t.Errorf("network %s, %s: needs %v", n.Name, family, needs)
			}
			if n.Name == "bridge-nat" && !slices.Contains(needs, network.NeedIPTables) && !slices.Contains(needs, network.NeedIPTables6) {
				t.Errorf("network %s, %s needs no address translation: %v", n.Name, family, needs)
			}
		}
	}
}

// A topology is of one family: neither its nodes nor its pods may have addresses of the other.
func TestMixedFamilies(t *testing.T) {
	six := topology(t, network.Layout{Family: result.IPv6})
	for what, change := range map[string]func(*network.Topology){
		"family":     func(x *network.Topology) { x.Family = result.IPv6 },
		"node":       func(x *network.Topology) { x.Nodes[1].Address = six.Nodes[1].Address },
		"pod-prefix": func(x *network.Topology) { x.Nodes[1].PodPrefix = six.Nodes[1].PodPrefix },
		"pod":        func(x *network.Topology) { x.Pods[3].Address = six.Pods[3].Address },
	} {
		mixed := topology(t, network.Layout{})
		change(&mixed)
		if _, err := network.Catalogue()[0].Plan(mixed); err == nil {
			t.Errorf("%s: planned", what)
		}
	}
}

func TestFindSuggests(t *testing.T) {
	for name, nearest := range map[string]string{
		"brigde": "bridge", "BRIDGE": "bridge", "vxlan-route": "vxlan-routed", "mcvlan": "macvlan", "hosts": "host", "ipvlan-l4": "ipvlan-l2",
		"token-ring": "", "": "",
	} {
		_, err := network.Find(network.Catalogue(), name)
		var unknown *network.UnknownError
		if !errors.As(err, &unknown) {
			t.Errorf("%q: got error %v, want an UnknownError", name, err)
			continue
		}
		if unknown.Nearest != nearest {
			t.Errorf("%q: got the suggestion %q, want %q", name, unknown.Nearest, nearest)
		}
		if !slices.Equal(unknown.Known, network.Names(network.Catalogue())) {
			t.Errorf("%q: known are %v", name, unknown.Known)
		}
	}
	if n, err := network.Find(network.Catalogue(), "routed"); err != nil || n.Name != "routed" {
		t.Errorf("got %q and error %v", n.Name, err)
	}
}

func TestCatalogueIsDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range network.Catalogue() {
		if n.Name == "" || n.Summary == "" || len(n.UsedBy) == 0 || n.Build == nil {
			t.Errorf("network %q lacks a part of its description", n.Name)
		}
		if seen[n.Name] {
			t.Errorf("two networks are called %q", n.Name)
		}
		seen[n.Name] = true
	}
}

// Whatever the topology, a plan uses only what it has made, gives each device and MAC once, and its paths join the pods.
func TestPlansHoldTogether(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom(network.Catalogue()).Draw(t, "network")
		l := network.Layout{
			Nodes: rapid.IntRange(1, 12).Draw(t, "nodes"), PodsPerNode: rapid.IntRange(1, 12).Draw(t, "pods"),
			Family:      rapid.SampledFrom([]result.Family{"", result.IPv4, result.IPv6}).Draw(t, "family"),
			MTU:         unit.Bytes(rapid.IntRange(1400, 9000).Draw(t, "mtu")),
			Rate:        unit.BitsPerSecond(rapid.IntRange(0, 1).Draw(t, "rate") * 1e9),
			PodsOutlive: rapid.Bool().Draw(t, "pods outlive"),
			Conditions:  drawLinks(t),
		}
		top, err := network.NewTopology(l)
		if err != nil {
			t.Fatal(err)
		}
		p, err := n.Plan(top)
		var not *network.NotPossibleError
		if errors.As(err, &not) && n.Name == "sriov" && (top.Rate > 0 || l.Conditions.LinkDelay > 0 || l.Conditions.LinkLoss > 0 || l.Conditions.LinkCount > 1 || l.Conditions.NodeLinks != "") {
			return // real cards can't be given what links of the lab can
		}
		if errors.As(err, &not) && n.Name == "xdp" && (l.Conditions.LinkDelay > 0 || l.Conditions.LinkLoss > 0 || l.Conditions.LinkCount > 1 || l.Conditions.NodeLinks != "") {
			return // it goes past the queues
		}
		if err != nil {
			t.Fatal(err)
		}
		made := devicesOf(t, p)
		oneFamily(t, p, l.Family == result.IPv6)
		for from := range top.Pods {
			for to := range top.Pods {
				if from != to {
					checkPath(t, p, made, from, to)
				}
			}
		}
	})
}

// oneFamily checks each address in the plan's operations, and that no two devices have the same one.
func oneFamily(t *rapid.T, p network.Plan, six bool) {
	held := map[netip.Addr]network.Device{}
	check := func(op network.Op, addresses ...netip.Addr) {
		for _, a := range addresses {
			if a.IsValid() && a.Is6() != six {
				t.Fatalf("%s: %s is of the other family", op, a)
			}
		}
	}
	for _, op := range append(p.Underlay, p.Ops...) {
		switch op := op.(type) {
		case network.Address:
			a := op.Prefix.Addr()
			check(op, a)
			gateway := netip.MustParseAddr("fe80::ecee:eeff:feee:eeee") // each is alone with its pod
			if other, ok := held[a]; ok && a != gateway {
				t.Fatalf("%s: %s has it too", op, other)
			}
			held[a] = op.Device
		case network.Vxlan:
			check(op, op.Local)
		case network.Tunnel:
			check(op, op.Local, op.Remote)
		case network.Geneve:
			check(op, op.Remote)
		case network.WireGuard:
			for _, p := range op.Peers {
				check(op, p.Endpoint.Addr())
				for _, a := range p.Allowed {
					check(op, a.Addr())
				}
			}
		case network.Protect:
			check(op, op.Local, op.Remote)
			for _, p := range op.Traffic {
				check(op, p.From.Addr(), p.To.Addr())
			}
		case network.Datapath:
			for _, f := range op.Flows {
				if f.Through != nil {
					check(op, f.Through.Local, f.Through.Remote)
				}
			}
		case network.UDPTunnel:
			check(op, op.Local)
			for _, p := range op.Peers {
				check(op, p.Pods.Addr(), p.Node)
			}
		case network.Redirection:
			for _, p := range op.Pods {
				check(op, p.Address)
			}
			for _, f := range op.Far {
				check(op, f.Pods.Addr(), f.Node)
			}
		case network.XDPRedirection:
			for _, p := range op.Pods {
				check(op, p.Address)
			}
			for _, f := range op.Far {
				check(op, f.Address)
			}
		case network.JoinSockets:
			for _, p := range op.Pods {
				check(op, p.Address)
			}
		case network.Route:
			check(op, op.To.Addr(), op.Via)
		case network.Neighbour:
			check(op, op.Address)
		case network.Forward:
			check(op, op.To)
		case network.Rules:
			for _, c := range op.Chains {
				for _, r := range c.Rules {
					check(op, r.From.Addr(), r.To.Addr(), r.Destination)
				}
			}
		}
	}
	for _, e := range p.Pods {
		check(network.Address{}, e.Address)
	}
}

// devicesOf goes through the plan and checks each use of a device.
func devicesOf(t *rapid.T, p network.Plan) map[network.Device]bool {
	made := map[network.Device]bool{}
	macs := map[network.MAC]network.Device{}
	spaces := map[network.Space]bool{}
	for _, s := range p.Spaces() {
		spaces[s] = true
		made[network.Device{In: s, Name: "lo"}] = true
	}
	for _, o := range p.Settings {
		if !spaces[o.In] {
			t.Fatalf("%s: there is no such namespace", o)
		}
	}
	create := func(op network.Op, d network.Device, addr network.MAC) {
		if made[d] || len(d.Name) > 15 || !spaces[d.In] {
			t.Fatalf("%s: %s is made twice, has too long a name or is nowhere", op, d)
		}
		made[d] = true
		gateway := network.MAC{0xee, 0xee, 0xee, 0xee, 0xee, 0xee} // each is alone with its pod
		if addr == (network.MAC{}) || addr == gateway {
			return
		}
		if other, ok := macs[addr]; ok {
			t.Fatalf("%s: its MAC is also %s's", op, other)
		}
		macs[addr] = d
	}
	use := func(op network.Op, d network.Device) {
		if !made[d] {
			t.Fatalf("%s: %s has not been made", op, d)
		}
	}
	for _, op := range append(p.Underlay, p.Ops...) {
		switch op := op.(type) {
		case network.Veth:
			create(op, op.A.Device, op.A.MAC)
			create(op, op.B.Device, op.B.MAC)
		case network.Bridge:
			create(op, op.Device, op.MAC)
		case network.Macvlan:
			use(op, op.Parent)
			create(op, op.Device, op.MAC)
		case network.IPVlan:
			use(op, op.Parent)
			create(op, op.Device, network.MAC{})
		case network.Vxlan:
			use(op, op.Under)
			create(op, op.Device, op.MAC)
		case network.Tunnel:
			use(op, op.Under)
			create(op, op.Device, network.MAC{})
		case network.Geneve:
			create(op, op.Device, op.MAC)
		case network.Netkit:
			create(op, op.Primary.Device, op.Primary.MAC)
			create(op, op.Peer.Device, op.Peer.MAC)
		case network.Datapath:
			for _, port := range op.Ports {
				use(op, network.Device{In: op.In, Name: port})
			}
			create(op, op.Device, network.MAC{})
		case network.WireGuard:
			create(op, op.Device, network.MAC{})
		case network.Card:
			create(op, op.Device, network.MAC{})
		case network.Function:
			use(op, op.Card)
			create(op, op.Device, op.MAC)
		case network.UDPTunnel:
			create(op, op.Device, network.MAC{})
		case network.Enslave:
			use(op, op.Device)
			use(op, network.Device{In: op.In, Name: op.Bridge})
		case network.Redirection:
			use(op, network.Device{In: op.In, Name: op.Entry})
			for _, p := range op.Pods {
				use(op, network.Device{In: op.In, Name: p.NodeEnd})
			}
		case network.XDPRedirection:
			use(op, network.Device{In: op.In, Name: op.Port})
			use(op, op.PortPeer)
			for _, p := range op.Pods {
				use(op, p.Device)
				use(op, network.Device{In: op.In, Name: p.NodeEnd})
			}
		case network.Shape:
			use(op, op.Device)
		case network.Impair:
			use(op, op.Device)
		case network.Bond:
			for _, d := range op.Members() {
				use(op, d)
			}
			create(op, op.Device, op.MAC)
		case network.Address:
			use(op, op.Device)
		case network.Route:
			use(op, op.Device)
		case network.Neighbour:
			use(op, op.Device)
		case network.Forward:
			use(op, op.Device)
		}
	}
	return made
}

// redirects tells whether a plan has programs that lead packets past devices which the answers pass.
func redirects(p network.Plan) bool {
	return slices.ContainsFunc(p.Ops, func(op network.Op) bool {
		_, is := op.(network.Redirection)
		return is
	})
}

// A kernel must have bridges that hand packets to the firewall only where that is asked for, and where there is a bridge on a node. Networks that
// stand for systems in which it is so take it where the kernel has it.
func TestBridgeNetfilter(t *testing.T) {
	for _, n := range network.Catalogue() {
		for _, asked := range []result.Switch{"", result.On, result.Off} {
			p, err := n.Plan(topology(t, network.Layout{Conditions: result.Conditions{BridgeNetfilter: asked}}))
			if err != nil {
				t.Fatal(err)
			}
			bridged := slices.ContainsFunc(network.Of[network.Bridge](p.Ops), func(b network.Bridge) bool { return b.Role == network.RoleBridge })
			if needed := slices.Contains(p.Needs(), network.NeedBridgeNetfilter); needed != (bridged && asked == result.On) {
				t.Errorf("%s with bridge_netfilter=%q: needs %v", n.Name, asked, p.Needs())
			}
			want := "0"
			if bridged && (asked == result.On || asked == "" && n.BridgeNetfilter) {
				want = "1"
			}
			for _, s := range p.Settings {
				switch {
				case !strings.HasPrefix(s.Name, "net.bridge.bridge-nf-call-ip"):
				case s.In.Kind == network.NodeSpace && s.Value != want, s.In.Kind != network.NodeSpace && s.Value != "0":
					t.Errorf("%s with bridge_netfilter=%q: %s", n.Name, asked, s)
				}
			}
		}
	}
}
