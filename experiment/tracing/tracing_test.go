package tracing_test

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/plan"
	"netdelta/experiment/study"
	"netdelta/experiment/tracing"
	"netdelta/insight/hops"
	"netdelta/internal/leak"
	"netdelta/internal/require"
	"netdelta/network"
	probe "netdelta/probe/hops"
	"netdelta/probe/probetest"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/workload/catalogue"
)

func TestMain(m *testing.M) {
	if processor, err := strconv.Atoi(os.Getenv(burner)); err == nil {
		burnNowAndThen(processor)
	}
	probetest.GoAhead()
	os.Exit(leak.Main(m))
}

// trace traces the networks side by side, the first of which is the baseline.
func trace(t *testing.T, networks []network.Network, placement result.Placement, level probe.Level, lasting time.Duration) []hops.Way {
	t.Helper()
	c := configure(t, networks, placement)
	c.Level, c.Lasting = level, lasting
	return sum(t, c, tracing.Trace)
}

// stamp has the sockets' own stamps in place of a tracer.
func stamp(t *testing.T, networks []network.Network) []hops.Way {
	t.Helper()
	return sum(t, configure(t, networks, result.CrossNode), tracing.Stamp)
}

// configure prepares what is to be traced.
func configure(t *testing.T, networks []network.Network, placement result.Placement) tracing.Config {
	t.Helper()
	return configureWith(t, networks, placement, func(d testbed.Provider) testbed.Provider { return d })
}

// configureWith prepares what is to be traced, on testbeds of a driver that does more.
func configureWith(t *testing.T, networks []network.Network, placement result.Placement, more func(testbed.Provider) testbed.Provider) tracing.Config {
	t.Helper()
	var names []string
	for _, n := range networks {
		names = append(names, n.Name)
	}
	s := &study.Study{
		Name: "hops", Testbed: study.Testbed{Kind: "lab", Nodes: 2, Pods: 2, Link: study.Link{MTU: 1500}},
		Baseline: names[0], Networks: names, Placement: []result.Placement{placement},
		Workloads: []study.Workload{{Name: "tcp-rr"}},
		Design:    study.Design{Burst: 5 * time.Millisecond, Builds: 3, Confidence: 0.95, Margin: 0.02, TimeBudget: time.Minute, Seed: 1},
	}
	driver := more(lab.NewDriver(networks))
	p, err := experiment.Prepare(t.Context(), s, driver, catalogue.Workloads())
	if err != nil {
		t.Fatal(err)
	}
	config, err := experiment.Assemble(t.Context(), s, p, driver, catalogue.Workloads())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(config.Kernel.Close(), config.Machine.Close()); err != nil {
			t.Error(err)
		}
	})
	cells := slices.DeleteFunc(plan.Measured(p.Cells), func(c result.Cell) bool { return c.Role == result.RoleControl })
	if len(cells) != len(networks) {
		t.Fatalf("%d cells of %d networks: %+v", len(cells), len(networks), p.Cells)
	}
	return tracing.Config{Experiment: config, Cells: cells}
}

// sum carries the tracing out and sums it up.
func sum(t *testing.T, c tracing.Config, how func(context.Context, tracing.Config) ([]tracing.Cell, error)) []hops.Way {
	t.Helper()
	traced, err := how(t.Context(), c)
	probetest.Supported(t, err)
	var ways []hops.Way
	for _, c := range traced {
		ways = append(ways, hops.WayOf(c))
	}
	return ways
}

func find(t *testing.T, name string) network.Network {
	t.Helper()
	n, err := network.Find(network.Catalogue(), name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// attempts is how often what others on the machine can spoil is measured.
const attempts = 4

// The hops, each less the cost of tracing, add up to the round trip as it is without tracing, to within 5%.
func TestSumOfHops(t *testing.T) {
	networks := []network.Network{find(t, "bridge"), find(t, "routed"), find(t, "vxlan"), find(t, "ebpf-vxlan")}
	left := map[string]float64{}
	for _, n := range networks {
		left[n.Name] = math.Inf(1)
	}
	for range attempts {
		for _, w := range trace(t, networks, result.CrossNode, probe.Devices, 4*time.Second) {
			t.Logf("%s: %.0f ns without tracing, %.0f with; hops add up to %.0f (%+.1f%%); %d events of %.0f ns", w.Network, w.Untraced, w.Traced, w.Sum, 100*w.Gap(), w.Events, w.Cost)
			if w.Transactions < 1000 || w.Lost > 0 {
				t.Errorf("%s: %d transactions followed, %d otherwise, %d events lost", w.Network, w.Transactions, w.Otherwise, w.Lost)
			}
			if math.Abs(w.Gap()) <= 0.05 {
				delete(left, w.Network)
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("in %d attempts the hops never added up to within 5%% of the round trip: %v", attempts, left)
}

// A known cost is found at the hop that has it: rules of a firewall on the first node, which both directions pass.
func TestKnownCostWhenQuiet(t *testing.T) {
	require.Quiet(t)
	routed := find(t, "routed")
	// So many rules that their cost stands out: the difference of two round trips scatters by 2 us from round to round.
	const rules = 1000
	filtered := network.Filtered(routed, rules)
	whole, there, elsewhere := 0.0, 0.0, 0.0
	for n := range 2 * attempts {
		ways := trace(t, []network.Network{routed, filtered}, result.CrossNode, probe.Devices, 4*time.Second)
		base, other := ways[0], ways[1]
		whole += other.Untraced - base.Untraced
		for _, l := range slices.Concat(hops.Compare(base.Request, other.Request), hops.Compare(base.Response, other.Response)) {
			if l.Other != nil && l.Other.Where == "node0" && l.Other.Step == string(probe.StepForward) {
				there += l.Difference
			} else {
				elsewhere += l.Difference
			}
		}
		rounds := float64(n + 1)
		t.Logf("over %d rounds %d rules take %.0f ns of a round trip; at their hop %.0f ns, elsewhere %+.0f ns", n+1, rules, whole/rounds, there/rounds, elsewhere/rounds)
		if whole > 0 && math.Abs(there/whole-1) <= 0.15 {
			return
		}
	}
	t.Error("the cost of the rules was not found at their hop to within 15%")
}

// Hops are named by what the plan says of devices.
func TestNames(t *testing.T) {
	w := trace(t, []network.Network{find(t, "vxlan")}, result.CrossNode, probe.Everything, 0)[0]
	var steps []string
	for _, h := range w.Request {
		steps = append(steps, h.Name)
	}
	want := []string{
		"pod0: socket, TCP/IP out", "link, pod0 eth0 to node0 veth0", "node0: forwarding", "node0: encapsulation",
		"underlay, node0 eth0 to node1 eth0", "node1: decapsulation", "node1: forwarding", "link, node1 veth2 to pod2 eth0",
	}
	text := strings.Join(steps, "\n")
	for _, name := range want {
		if !slices.Contains(steps, name) {
			t.Errorf("there is no hop %q in:\n%s", name, text)
		}
	}
	if w.Builds != tracing.MinBuilds || len(w.Request) != len(w.Response) {
		t.Errorf("%d builds, %d hops there and %d back", w.Builds, len(w.Request), len(w.Response))
	}
}

// Traffic that passes no device has no hops, which is said.
func TestNoDevice(t *testing.T) {
	w := trace(t, []network.Network{find(t, "sockmap")}, result.SameNode, probe.Devices, 0)[0]
	if w.Events != 0 || len(w.Request) != 1 || w.Request[0].Step != string(probe.StepJoined) || w.Transactions < 1000 {
		t.Errorf("%d events in %d transactions, request %+v", w.Events, w.Transactions, w.Request)
	}
}

// Where packets can't be traced the sockets' own stamps give three hops each way, which add up to the exchange.
func TestStamp(t *testing.T) {
	for _, w := range stamp(t, []network.Network{find(t, "bridge"), find(t, "vxlan")}) {
		if len(w.Request) != 3 || len(w.Response) != 3 || w.Transactions < 1000 || w.Sum <= 0 {
			t.Errorf("%s: %d hops there, %d back, of %d transactions, %.0f ns in all", w.Network, len(w.Request), len(w.Response), w.Transactions, w.Sum)
		}
		if gap := w.Sum/w.Traced - 1; math.Abs(gap) > 0.1 {
			t.Errorf("%s: the hops add up to %.0f ns of an exchange of %.0f ns", w.Network, w.Sum, w.Traced)
		}
		for _, h := range slices.Concat(w.Request, w.Response) {
			if h.P50 <= 0 {
				t.Errorf("%s: %s takes %v ns", w.Network, h.Name, h.P50)
			}
		}
	}
}
