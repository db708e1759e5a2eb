package network_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netdelta/network"
	"netdelta/unit"
)

// update rewrites the golden files instead of comparing with them.
func update() bool { return flag.Lookup("update").Value.String() == "true" }

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite the golden files")
	flag.Parse()
	os.Exit(m.Run())
}

func topology(t *testing.T, mtu unit.Bytes, rate unit.BitsPerSecond, podsOutlive bool) network.Topology {
	t.Helper()
	top, err := network.NewTopology(2, 2, mtu, rate, podsOutlive)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func TestPlans(t *testing.T) {
	for _, n := range network.Catalogue() {
		golden(t, n, n.Name, topology(t, 1500, 0, false))
	}
	host := network.Catalogue()[0]
	golden(t, host, "host-outliving", topology(t, 9000, 10_000_000_000, true))
}

// golden compares a plan, and the paths from the first pod, with a file.
func golden(t *testing.T, n network.Network, name string, top network.Topology) {
	t.Run(name, func(t *testing.T) {
		p, err := n.Plan(top)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		b.WriteString(p.String())
		for to := 1; to < len(top.Pods); to++ {
			hops := make([]string, 0, 8)
			for _, h := range p.Path(0, to) {
				hops = append(hops, h.String())
			}
			b.WriteString("pod0 to pod" + string(rune('0'+to)) + ": " + p.Endpoint(0, to, 20000).String() + " by " + strings.Join(hops, " ") + "\n")
		}
		file := filepath.Join("testdata", name+".txt")
		if update() {
			if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("the plan differs from %s; if it is meant to, run the test with -update:\n%s", file, diff)
		}
	})
}

func TestMTU(t *testing.T) {
	for _, c := range []struct {
		network string
		mtu     unit.Bytes
		pod     unit.Bytes // 0 where the plan must fail
		says    string
	}{
		{"bridge", 576, 576, ""},
		{"vxlan", 1500, 1450, ""},
		{"vxlan-routed", 9000, 8950, ""},
		{"vxlan", 626, 576, ""},
		{"vxlan", 625, 0, "set the link's MTU to 626 or more"},
		{"host", 65535, 65535, ""},
	} {
		n, err := network.Find(network.Catalogue(), c.network)
		if err != nil {
			t.Fatal(err)
		}
		p, err := n.Plan(topology(t, c.mtu, 0, false))
		if c.pod == 0 {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s over an MTU of %d: got error %v, want one that says %q", c.network, int64(c.mtu), err, c.says)
			}
			continue
		}
		if err != nil || p.MTU != c.pod {
			t.Errorf("%s over an MTU of %d: got %d and error %v, want %d", c.network, int64(c.mtu), int64(p.MTU), err, int64(c.pod))
		}
	}
}

func TestBadTopologies(t *testing.T) {
	for _, c := range []struct {
		nodes, pods int
		mtu         unit.Bytes
		rate        unit.BitsPerSecond
		says        string
	}{
		{0, 2, 1500, 0, "0 nodes: need 1 to 250"},
		{251, 2, 1500, 0, "251 nodes: need 1 to 250"},
		{2, 0, 1500, 0, "0 pods on each node: need 1 to 45"},
		{2, 46, 1500, 0, "46 pods on each node: need 1 to 45"},
		{2, 2, -1, 0, "an MTU of -1: need 576 to 65535"},
		{2, 2, 575, 0, "an MTU of 575: need 576 to 65535"},
		{2, 2, 65536, 0, "an MTU of 65536: need 576 to 65535"},
		{2, 2, 1500, -5, "a link rate of -5 bit/s: need 0 (unlimited) or more"},
	} {
		_, err := network.NewTopology(c.nodes, c.pods, c.mtu, c.rate, false)
		if err == nil || err.Error() != c.says {
			t.Errorf("%+v: got error %v", c, err)
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
		if nearest == "" && !strings.Contains(err.Error(), "known are host, bridge") {
			t.Errorf("%q: error %q does not list what is known", name, err)
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
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom(network.Catalogue()).Draw(t, "network")
		top, err := network.NewTopology(
			rapid.IntRange(1, 12).Draw(t, "nodes"), rapid.IntRange(1, 12).Draw(t, "pods"),
			unit.Bytes(rapid.IntRange(700, 9000).Draw(t, "mtu")), unit.BitsPerSecond(rapid.IntRange(0, 1).Draw(t, "rate")*1e9),
			rapid.Bool().Draw(t, "pods outlive"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := n.Plan(top)
		if err != nil {
			t.Fatal(err)
		}
		made := devicesOf(t, p)
		for from := range top.Pods {
			for to := range top.Pods {
				if from != to {
					checkPath(t, p, made, from, to)
				}
			}
		}
	})
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
			t.Fatalf("%s: its MAC is that of %s", op, other)
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
		case network.Enslave:
			use(op, op.Device)
			use(op, network.Device{In: op.In, Name: op.Bridge})
		case network.Shape:
			use(op, op.Device)
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

// checkPath follows a path from end to end.
func checkPath(t *rapid.T, p network.Plan, made map[network.Device]bool, from, to int) {
	path := p.Path(from, to)
	if len(path) < 2 {
		t.Fatalf("the path from pod %d to pod %d has %d devices", from, to, len(path))
	}
	for _, h := range path {
		if !made[h.Device] || h.Role == "" {
			t.Fatalf("%s on the path from pod %d to pod %d has not been made or has no role", h, from, to)
		}
	}
	first, last := path[0], path[len(path)-1]
	if first.In != p.Pods[from].In || !first.Sends || last.In != p.Pods[to].In || last.Sends {
		t.Fatalf("the path from pod %d to pod %d leads from %s to %s", from, to, first, last)
	}
	back := p.Path(to, from)
	if len(back) != len(path) {
		t.Fatalf("%d devices there, %d back", len(path), len(back))
	}
	for i, h := range path {
		if b := back[len(back)-1-i]; b.Device != h.Device || b.Sends == h.Sends || b.Encapsulated != h.Encapsulated {
			t.Fatalf("there %s, back %s", h, b)
		}
	}
}
