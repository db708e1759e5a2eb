package html

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
)

// world is a simulated run: what a report is made of, without a testbed.
type world struct {
	networks []string // in addition to host
	loads    []result.Setting
	builds   int
	rounds   int
	samples  int  // transactions in a trial's histogram
	bare     bool // without path, processor time and sockets, as in a run of an older version
}

// truth is a network's true ratio to host.
func truth(name string, p result.Placement) float64 {
	c := map[string]float64{"macvlan": 1.025, "bridge": 1.14, "routed": 1.22, "vxlan": 1.41, "bridge-nat": 1.55, "sockmap": 0.6, "host": 1}[name]
	if c == 0 {
		c = 1 + float64(len(name)%7)/10
	}
	if p == result.SameNode {
		c = 1 + (c-1)/3
	}
	return c
}

// usual is a run with something of everything.
func usual() world {
	return world{
		networks: []string{"bridge", "bridge-nat", "macvlan", "routed", "vxlan", "sockmap"},
		loads: []result.Setting{
			{Workload: "tcp-rr", Params: result.Params{Message: 300}, Placement: result.SameNode},
			{Workload: "tcp-rr", Params: result.Params{Message: 300}, Placement: result.CrossNode},
			{Workload: "udp-rr", Params: result.Params{Message: 1024}, Placement: result.CrossNode},
			{Workload: "tcp-stream", Params: result.Params{Connections: 4}, Placement: result.CrossNode},
		},
		builds: 8, rounds: 12, samples: 20_000,
	}
}

// began is when all simulated runs began.
func began() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }

// cells are the world's cells, with one network that this machine can't do and a setting that was left out.
func (w world) cells() []result.Cell {
	var all []result.Cell
	for _, s := range w.loads {
		cell := func(name string, role result.Role) result.Cell {
			c := result.Cell{
				ID: name + "/" + string(s.Placement) + "/" + words.Load(s), Network: name, Placement: s.Placement, Path: "pod",
				Workload: s.Workload, Params: s.Params, Role: role,
			}
			if name == "bridge-nat" {
				c.Path = "nodeport"
			}
			if role == result.RoleControl {
				c.ID = name + "+twin/" + string(s.Placement) + "/" + words.Load(s)
			}
			return c
		}
		all = append(all, cell("host", result.RoleBaseline), cell("host", result.RoleControl))
		for _, n := range w.networks {
			all = append(all, cell(n, result.RoleCell))
		}
		absent := cell("ipvlan-l2", result.RoleCell)
		absent.InGuest, absent.Unsupported = true, "network ipvlan-l2 is unsupported: needs ipvlan links (CONFIG_IPVLAN); run it with --testbed vm"
		all = append(all, absent)
	}
	return all
}

// run is the world's run with its trials, judged.
func (w world) run(tb testing.TB) (result.Run, []result.Trial) {
	tb.Helper()
	run := result.Run{
		Schema: result.Schema, Run: "latency-20300102-030405", Study: "latency", Testbed: "lab", Seed: 42,
		Question: "What does each container network add to a round trip?",
		Started:  began(), Finished: began().Add(time.Duration(w.builds) * 3 * time.Second), Confidence: 0.95, Margin: 0.02,
		Ended: "resolved", Adaptive: true,
		Notes: []string{"the time budget of 1m holds 4 of 8 workload settings; --time-budget 2m holds all"},
		Environment: result.Environment{
			Netdelta: "1.0.0", GoVersion: "go1.26.8", Kernel: "6.18.5", Arch: "x86_64", OS: "Debian GNU/Linux 13", Hostname: "bench1",
			CPU: result.CPU{Model: "Example CPU @ 3.00GHz", Count: 8, Governor: "performance", Mitigations: "spectre_v1 spectre_v2"}, Memory: 16 * unit.GiB,
			Virtual: "kvm", Clock: "tsc", Sysctls: map[string]string{"net.ipv4.tcp_congestion_control": "cubic", "net.ipv4.ip_forward": "0"},
			Links: []result.Link{
				{Network: "host", Where: "node", Name: "eth0", Kind: "veth", MTU: 1500, Offloads: map[string]bool{"gro": true, "tso": false}},
				{Network: "vxlan", Where: "node", Name: "vxlan0", Kind: "vxlan", MTU: 1450, Offloads: map[string]bool{"gro": true, "tso": true}},
			},
			Measuring: []int{1}, Controlling: []int{0, 2},
		},
		Cells: w.cells(),
	}
	trials := w.trials(tb, run.Cells)
	words.NewJudge(nil).Conclude(&run, trials)
	run.Claims = claims()
	return run, trials
}

// claims has one of each verdict.
func claims() []result.Claim {
	return []result.Claim{
		{
			ID: "macvlan-closest", Says: "Macvlan is the closest virtualised network to host.", Source: "A study of 2022, table 3", Published: "+3% at 300 B",
			Expect: "tcp-rr p50, cross-node: macvlan/host < bridge/host", Measured: "+2.5% against +14%", Verdict: "confirmed",
		},
		{ID: "bridge-free", Says: "A bridge costs nothing that matters.", Source: "A talk of 2019", Measured: "+14%", Verdict: "contradicted"},
		{ID: "vxlan-double", Says: "VXLAN doubles the latency of small messages.", Published: "2.0×", Measured: "+41%", Verdict: "unresolved"},
		{ID: "gre", Says: "GRE costs less than VXLAN.", Verdict: "not-tested"},
	}
}

// trials measures the world: drifting, with a few disturbed bursts.
func (w world) trials(tb testing.TB, cells []result.Cell) []result.Trial {
	tb.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	histograms := map[string]string{}
	var trials []result.Trial
	for build := range w.builds {
		for _, cell := range cells {
			if cell.Unsupported != "" || cell.Skipped != "" {
				continue
			}
			t := w.trial(tb, cell, build, random)
			if cell.Workload != "tcp-stream" && w.samples > 0 {
				kind := string(cell.Role) + cell.Network + string(cell.Placement)
				if histograms[kind] == "" {
					histograms[kind] = w.histogram(tb, truth(cell.Network, cell.Placement), random)
				}
				t.Histogram = histograms[kind]
			}
			trials = append(trials, t)
		}
	}
	return trials
}

// trial is one cell's in one build.
func (w world) trial(tb testing.TB, cell result.Cell, build int, random *rand.Rand) result.Trial {
	tb.Helper()
	ratio := truth(cell.Network, cell.Placement) * math.Exp(0.004*random.NormFloat64())
	if cell.Network == "host" {
		ratio = math.Exp(0.002 * random.NormFloat64())
	}
	started := began().Add(time.Duration(build) * 3 * time.Second)
	t := result.Trial{
		Schema: result.Schema, Cell: cell.ID, Role: cell.Role, Build: build, Started: started, Finished: started.Add(3 * time.Second),
		Transactions: int64(w.samples), Bytes: int64(w.samples) * 600,
	}
	b := &t.Bursts
	for round := range w.rounds {
		at := (float64(build) + float64(round)/float64(w.rounds)) * 3
		x := 6000 * ratio * (1.15 + 0.15*math.Sin(at/3)) * math.Exp(0.015*random.NormFloat64())
		b.Round = append(b.Round, round)
		b.Start = append(b.Start, int64(at*1e9))
		b.Duration = append(b.Duration, 5e6)
		disturbed := ""
		if random.IntN(40) == 0 {
			disturbed = []string{"preempted", "cpu-pressure"}[random.IntN(2)]
		}
		b.Disturbed = append(b.Disturbed, disturbed)
		if !w.bare {
			b.ClientCPU, b.ServerCPU = append(b.ClientCPU, int64(400*x)), append(b.ServerCPU, int64(350*x))
			b.KernelCPU = append(b.KernelCPU, int64(90*x*ratio))
			b.Work, b.Moved = append(b.Work, 800), append(b.Moved, 480_000)
		}
		if cell.Workload == "tcp-stream" {
			b.Throughput = append(b.Throughput, 6e13/x)
			continue
		}
		b.Transactions = append(b.Transactions, 800)
		b.Min, b.P50, b.P90 = append(b.Min, 0.9*x), append(b.P50, x), append(b.P90, 1.2*x)
		b.P99, b.Mean = append(b.P99, 2*x), append(b.Mean, 1.1*x)
		b.Split = append(b.Split, 0.01*random.NormFloat64())
	}
	if !w.bare {
		t.Path = pathOf(tb, cell)
	}
	return t
}

// histogram has a tail.
func (w world) histogram(tb testing.TB, ratio float64, random *rand.Rand) string {
	tb.Helper()
	h := result.NewHistogram()
	for range w.samples {
		v := 6000 * ratio * (0.95 + 0.1*random.ExpFloat64())
		if random.IntN(100) == 0 {
			v *= 1 + 4*random.ExpFloat64()
		}
		if err := h.RecordValue(int64(v)); err != nil {
			tb.Fatal(err)
		}
	}
	text, err := result.EncodeHistogram(h)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// pathOf is a proof of the way of a cell's packets: weak in one network, none where the catalogue knows no network.
func pathOf(tb testing.TB, cell result.Cell) *result.Path {
	tb.Helper()
	n, known := gather.First(network.Catalogue(), func(n network.Network) bool { return n.Name == cell.Network })
	if !known { // Find would look for names that are like it, once for each of thousands of trials
		return nil
	}
	topology, err := network.NewTopology(network.Layout{Nodes: 2, PodsPerNode: 2, MTU: 9000})
	if err != nil {
		tb.Fatal(err)
	}
	plan, err := n.Plan(topology)
	if err != nil {
		tb.Fatal(err)
	}
	to := 1
	if cell.Placement == result.CrossNode {
		to = 2
	}
	p := &result.Path{OK: true, Payload: 960_000, Encapsulation: "none"}
	for _, h := range plan.Path(0, to, network.TCP) {
		hop := result.PathHop{
			Device: h.Device.String(), Role: string(h.Role), Sends: h.Sends, Encapsulated: h.Encapsulated, Packets: 12_034, Bytes: 4_332_240,
		}
		if h.Encapsulated {
			hop.Bytes += 50 * hop.Packets
			p.Encapsulation, p.Overhead = "vxlan", 50
		}
		p.Hops = append(p.Hops, hop)
	}
	if cell.Network == "routed" {
		p.Weak = []string{"no packet was sampled: opening a packet socket: operation not permitted"}
	}
	return p
}

// spoil adds what goes wrong: a failed trial, a misrouted one, a stalled one, lost packets.
func spoil(run *result.Run, trials []result.Trial) []result.Trial {
	find := func(name string, build int) *result.Trial {
		i := slices.IndexFunc(trials, func(t result.Trial) bool {
			return t.Build == build && t.Cell == name+"/cross-node/tcp-rr, 300B"
		})
		return &trials[i]
	}
	failed := find("bridge", 2)
	failed.Failed, failed.Bursts, failed.Histogram = "dial 198.19.1.10:20000: connection refused", result.Bursts{}, ""
	wrong := find("vxlan", 3)
	wrong.Path = &result.Path{
		Findings: []string{"node0/eth1 carried 12,034 packets that node0/eth0 should have carried"},
		Stray:    []result.PathHop{{Device: "node0/eth1", Packets: 12_034}},
	}
	words.NewJudge(nil).Conclude(run, trials)
	run.Checks = append(run.Checks,
		result.Check{Trial: find("routed", 4).ID(), Check: "stalls", Expected: "no second without traffic", Observed: "1.0 s without traffic at 2.0 s"},
		result.Check{Trial: find("macvlan", 1).ID(), Check: "path", OK: true, Expected: "packets on pod0/eth0", Observed: "12034 packets"})
	return trials
}

// large is a run of so many networks under so many loads in both placements, with more metrics than anybody reads.
func large(tb testing.TB, networks, loads int) (result.Run, []result.Trial) {
	tb.Helper()
	w := world{builds: 6, rounds: 2, samples: 200}
	for n := range networks {
		w.networks = append(w.networks, fmt.Sprintf("network-%d", n))
	}
	for i := range loads {
		for _, p := range []result.Placement{result.SameNode, result.CrossNode} {
			w.loads = append(w.loads, result.Setting{Workload: "tcp-rr", Params: result.Params{Message: unit.Bytes(64 + i)}, Placement: p})
		}
	}
	run := result.Run{
		Schema: result.Schema, Run: "large", Study: "large", Question: "What does each of ten thousand cells cost?", Testbed: "lab",
		Started: began(), Finished: began().Add(time.Hour), Confidence: 0.95, Margin: 0.02, Ended: "budget", Cells: w.cells(),
	}
	random := rand.New(rand.NewPCG(3, 4))
	for _, c := range run.Cells {
		if c.Unsupported != "" || c.Role == result.RoleBaseline {
			continue
		}
		for i, metric := range []string{"p50", "p90", "p99", "p99.9", "mean", "min", "cpu"} {
			d := estimated(c, metric, math.Exp(0.1*random.NormFloat64()), 0.01)
			d.Headline = i == 0
			if c.Role == result.RoleControl {
				run.Null = append(run.Null, d)
			} else {
				run.Deltas = append(run.Deltas, d)
			}
		}
	}
	return run, w.trials(tb, run.Cells)
}

// estimated is a delta with an interval of the given half width on the log scale.
func estimated(c result.Cell, metric string, ratio, half float64) result.Delta {
	low, high := ratio*math.Exp(-half), ratio*math.Exp(half)
	const base = 6000.0
	differenceLow, differenceHigh := base*(low-1), base*(high-1)
	verdict := "slower"
	switch {
	case low < 1 && high > 1:
		verdict = "unresolved"
	case high < 1:
		verdict = "faster"
	}
	return result.Delta{
		Cell: c.ID, Network: c.Network, Baseline: "host", Setting: c.Setting(), Path: c.Path,
		Metric: metric, Unit: "ns", Better: "lower", BaselineValue: base, Value: base * ratio, Judgement: result.Judgement{Ratio: ratio, RatioLow: &low, RatioHigh: &high,
			Difference: base * (ratio - 1), DifferenceLow: &differenceLow, DifferenceHigh: &differenceHigh,
			Blocks: 8, Rounds: 96, Verdict: verdict, Excluded: map[string]int{}},
	}
}
