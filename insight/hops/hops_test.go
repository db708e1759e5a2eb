package hops_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"netdelta/experiment/tracing"
	"netdelta/insight/hops"
	"netdelta/network"
	probe "netdelta/probe/hops"
	"netdelta/result"
)

// traced is a build whose plugin named the node's devices at random: the way from pod0 through node0 and back takes added nanoseconds
// more on the node.
func traced(build int, added float64) tracing.Traced {
	const pod, node, other = 1, 2, 3
	spaces := map[uint32]network.Space{pod: network.InPod(0), node: network.InNode(0), other: network.InPod(1)}
	device := func(space, number uint32, name string) (probe.Address, network.Device) {
		return probe.Address{Space: space, Device: number}, network.Device{In: spaces[space], Name: name}
	}
	known := probe.Map{Spaces: spaces, Devices: map[probe.Address]network.Device{}, Roles: map[network.Device]network.Role{}}
	for i, name := range []string{"eth0", fmt.Sprintf("veth%x", 7919*build+1), fmt.Sprintf("veth%x", 104729*build+2)} {
		at, d := device(uint32([]int{pod, node, node}[i]), uint32(i+2), name)
		known.Devices[at] = d
	}
	at, d := device(other, 2, "eth0")
	known.Devices[at] = d
	known.Roles[d] = network.RolePod
	places := []probe.Point{
		{Kind: probe.Sent, Space: pod, Device: 2}, {Kind: probe.Received, Space: node, Device: 3}, {Kind: probe.Sent, Space: node, Device: 3},
		{Kind: probe.Sent, Space: node, Device: 4}, {Kind: probe.Received, Space: other, Device: 2},
	}
	t := tracing.Traced{Build: build, Untraced: []float64{10_000}, Traced: []float64{11_000}}
	for _, h := range known.Hops(places, "pod0", "pod1") {
		took := 1000.0 + 10*float64(build)
		if h.Where == "node0" {
			took += added / 2
		}
		t.Request = append(t.Request, tracing.Stretch{Hop: h, Times: []float64{took}})
	}
	t.Response = t.Request
	return t
}

// Builds in which a plugin chose other names for its devices are all counted, rows have names of their own, and differences are of
// the same builds.
func TestWayOfDevicesWithRandomNames(t *testing.T) {
	way := func(added float64, builds ...int) hops.Way {
		c := tracing.Cell{Cell: result.Cell{Network: "cni:x"}}
		for _, b := range builds {
			c.Builds = append(c.Builds, traced(b, added))
		}
		return hops.WayOf(c)
	}
	base, other := way(0, 0, 1, 2, 3, 4), way(1000, 0, 2, 3, 4)
	if base.Builds != 5 || other.Builds != 4 || base.Otherwise != 0 {
		t.Fatalf("%d and %d builds count, %d transactions went otherwise", base.Builds, other.Builds, base.Otherwise)
	}
	names := map[string]bool{}
	for _, h := range base.Request {
		if names[h.Name] {
			t.Errorf("two hops are called %s", h.Name)
		}
		names[h.Name] = true
	}
	sum := 0.0
	for _, l := range hops.Compare(base.Request, other.Request) {
		sum += l.Difference
		if l.Base == nil || l.Other == nil {
			t.Errorf("%s is not in both", l.Name())
		}
	}
	if math.Abs(sum-1000) > 1e-6 {
		t.Errorf("the difference is %g ns, want 1000", sum)
	}
}

// A build in which no message was followed, as on a busy machine, leaves the others' figures as they are, and can be written as JSON; so can
// a way of which no build was followed.
func TestWayOfBuildsThatWereNotFollowed(t *testing.T) {
	empty := traced(2, 0)
	empty.Traced = nil
	for _, stretches := range []*[]tracing.Stretch{&empty.Request, &empty.Response} {
		*stretches = slices.Clone(*stretches)
		for k := range *stretches {
			(*stretches)[k].Times = nil
		}
	}
	some := hops.WayOf(tracing.Cell{Builds: []tracing.Traced{traced(0, 0), traced(1, 0), empty}})
	if some.Builds != 2 || some.Traced != 11_000 || len(some.Request) == 0 {
		t.Errorf("with two of three builds: %+v", some)
	}
	none := hops.WayOf(tracing.Cell{Builds: []tracing.Traced{empty, empty}})
	for _, w := range []hops.Way{some, none} {
		if _, err := json.Marshal(w); err != nil {
			t.Errorf("%d builds followed: %v", w.Builds, err)
		}
	}
}

// Sockets in a node's namespace are compared with sockets in a pod's.
func TestSocketsAreComparedAcrossNamespaces(t *testing.T) {
	at := func(where string, step probe.Step, took float64) hops.HopTime {
		return hops.HopTime{Step: string(step), Where: where, P50: took, Builds: []float64{took}}
	}
	lines := hops.Compare([]hops.HopTime{at("node0", probe.StepOut, 1500), at("node1", probe.StepDelivery, 5000)},
		[]hops.HopTime{at("pod0", probe.StepOut, 1540), at("node0", probe.StepForward, 460), at("pod1", probe.StepDelivery, 5030)})
	var got []float64
	for _, l := range lines {
		got = append(got, l.Difference)
	}
	if want := []float64{40, 460, 30}; !slices.Equal(got, want) {
		t.Errorf("the hops differ by %v, want %v", got, want)
	}
}

// TestConclude: what is known to differ is summed over both directions, the largest first; what is not known to is the rest.
func TestConclude(t *testing.T) {
	hop := func(step string, at float64) hops.HopTime {
		return hops.HopTime{Step: step, P50: at, Builds: []float64{at, at + 1, at - 1, at + 2}}
	}
	way := func(more ...hops.HopTime) hops.Way {
		list := append([]hops.HopTime{hop("socket", 1000)}, more...)
		return hops.Way{Request: list, Response: list}
	}
	d := hops.Conclude(way(), way(hop("encapsulation", 600), hop("decapsulation", 1000)))
	if math.Abs(d.Total-3200) > 10 || math.Abs(d.Rest) > 10 || len(d.Steps) != 2 || d.Steps[0].Step != "decapsulation" || d.Steps[1].Step != "encapsulation" {
		t.Errorf("the networks differ by %+v, want 3200 ns: decapsulation, then encapsulation", d)
	}
	if d := hops.Conclude(way(), way()); len(d.Steps) != 0 || math.Abs(d.Total) > 10 {
		t.Errorf("a network differs from itself by %+v", d)
	}
}

// Hops are in doubt where they do not add up to the round trip, where the run had another one, and where two differences of the same
// networks are apart.
func TestFindDoubt(t *testing.T) {
	way := func(network string, untraced, sum, run float64) hops.Way {
		hop := hops.HopTime{Step: "socket", P50: sum, Builds: []float64{sum, sum, sum}}
		return hops.Way{
			Network: network, Untraced: untraced, UntracedBuilds: []float64{untraced - 10, untraced, untraced + 10}, Sum: sum, Run: run, Events: 8,
			Request: []hops.HopTime{hop},
		}
	}
	stamped := way("bridge", 20_000, 12_000, 18_000)
	stamped.Stamped = true
	for name, c := range map[string]struct {
		ways  []hops.Way
		doubt bool
		of    hops.Doubt
	}{
		"all agree":                {[]hops.Way{way("host", 19_800, 19_500, 15_900), way("bridge", 21_700, 21_400, 17_600)}, false, hops.Doubt{}},
		"no run":                   {[]hops.Way{way("host", 19_800, 19_500, 0), way("bridge", 21_700, 21_400, 0)}, false, hops.Doubt{}},
		"they don't add up":        {[]hops.Way{way("bridge", 21_700, 20_270, 0)}, true, hops.Doubt{Network: "bridge", Traced: 20_270, Measured: 21_700}},
		"nothing was traced":       {[]hops.Way{way("bridge", math.NaN(), math.NaN(), 0)}, true, hops.Doubt{Network: "bridge"}},
		"another level in the run": {[]hops.Way{way("bridge", 40_000, 39_500, 17_500)}, true, hops.Doubt{Network: "bridge", Run: true, Traced: 40_000, Measured: 17_500}},
		"less than without tracing": {[]hops.Way{way("routed", 21_400, 22_200, 0), way("vxlan", 23_700, 22_974, 0)}, true,
			hops.Doubt{Network: "vxlan", Base: "routed", Traced: 774, Measured: 2300}},
		"another difference in the run": {[]hops.Way{way("host", 19_800, 19_500, 16_000), way("bridge", 21_700, 21_400, 21_000)}, true,
			hops.Doubt{Network: "bridge", Base: "host", Run: true, Traced: 1900, Measured: 5000}},
		"stamps of sockets": {[]hops.Way{stamped}, false, hops.Doubt{}},
	} {
		d, found := hops.FindDoubt(c.ways)
		if found != c.doubt || d.Network != c.of.Network || d.Base != c.of.Base || d.Run != c.of.Run ||
			!math.IsNaN(d.Traced) && (math.Abs(d.Traced-c.of.Traced) > 1 || math.Abs(d.Measured-c.of.Measured) > 1) {
			t.Errorf("%s: %v, %+v; want %v, %+v", name, found, d, c.doubt, c.of)
		}
	}
}

// The run's figures are those of the same cell, and of the baseline's from any delta of the setting.
func TestInRun(t *testing.T) {
	low, high := 1400.0, 1600.0
	cell := result.Cell{ID: "bridge", Network: "bridge", Workload: "tcp-rr", Role: result.RoleCell}
	deltas := []result.Delta{
		{Cell: "bridge", Setting: cell.Setting(), Metric: "mean", Value: 1, BaselineValue: 2},
		{Cell: "bridge", Setting: cell.Setting(), Metric: "p50", Value: 9500, BaselineValue: 8000, Judgement: result.Judgement{DifferenceLow: &low, DifferenceHigh: &high}},
	}
	var bridge, host, other hops.Way
	bridge.InRun(cell, deltas)
	host.InRun(result.Cell{ID: "host", Network: "host", Workload: "tcp-rr", Role: result.RoleBaseline}, deltas)
	other.InRun(result.Cell{ID: "bridge/udp", Network: "bridge", Workload: "udp-rr", Role: result.RoleBaseline}, deltas)
	if bridge.Run != 9500 || bridge.RunError != 100 || host.Run != 8000 || other.Run != 0 {
		t.Errorf("bridge %g and %g, host %g, another workload %g", bridge.Run, bridge.RunError, host.Run, other.Run)
	}
}
