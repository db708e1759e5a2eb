package insight_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netdelta/insight"
	"netdelta/internal/property"
	"netdelta/network"
	"netdelta/result"
)

// start is when the trials of a world begin.
func start() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

// TestDriftShowsWhatPairingRemoves holds the point of the picture: the baseline by itself climbs with the machine, the networks against
// it stay where they are.
func TestDriftShowsWhatPairingRemoves(t *testing.T) {
	w := usual()
	trials := w.trials(t)
	for i := range trials {
		for k := range trials[i].Bursts.Start {
			trials[i].Bursts.Start[k] += int64(trials[i].Build) * int64(time.Minute)
		}
	}
	trials[0].Bursts.Disturbed[3] = "preempted"
	setting := w.cells()[0].Setting()
	d := insight.Gather(w.cells(), insight.Summarize(result.List(trials))).Drift(setting, "p50", start())
	if want := 2 * w.builds * w.rounds; len(d.Baseline) != want {
		t.Errorf("%d readings of the baseline, want %d", len(d.Baseline), want)
	}
	disturbed, controls := 0, 0
	for i, m := range d.Baseline {
		if m.Disturbed != "" {
			disturbed++
		}
		if m.Control {
			controls++
		}
		if i > 0 && m.At < d.Baseline[i-1].At {
			t.Fatalf("reading %d is before the one before it", i)
		}
	}
	if disturbed != 1 || controls != w.builds*w.rounds {
		t.Errorf("%d readings are disturbed and %d the A/A control's, want 1 and %d", disturbed, controls, w.builds*w.rounds)
	}
	first, last := d.Baseline[0].Value, d.Baseline[2*w.rounds-1].Value // of the first build
	if last < 1.2*first {
		t.Errorf("the baseline goes from %g to %g within a build: this world does not drift", first, last)
	}
	if len(d.Courses) != 1+len(w.networks) || d.Courses[0].Role != result.RoleControl {
		t.Fatalf("%d courses, the first of role %s, want the A/A control and %d networks", len(d.Courses), d.Courses[0].Role, len(w.networks))
	}
	for _, c := range d.Courses {
		if len(c.Steps) != w.builds {
			t.Errorf("%s has %d steps, want one for each of %d builds", c.Name, len(c.Steps), w.builds)
		}
		for _, s := range c.Steps {
			near(t, c.Name+" in a build", s.Change, math.Exp(w.logs[c.Name]), 0.02)
			if s.At/time.Minute != time.Duration(s.Build) {
				t.Errorf("build %d of %s stands at %s", s.Build, c.Name, s.At)
			}
		}
	}
}

// TestDriftOfWhatIsNotThere holds that a metric or a setting that was not measured gives nothing.
func TestDriftOfWhatIsNotThere(t *testing.T) {
	w := usual()
	e := insight.Gather(w.cells(), insight.Summarize(result.List(w.trials(t))))
	for _, d := range []insight.Drift{
		e.Drift(w.cells()[0].Setting(), "throughput", start()),
		e.Drift(w.cells()[0].Setting(), "no such metric", start()),
		e.Drift(result.Setting{Workload: "another"}, "p50", start()),
		insight.Gather(nil, insight.Summarize(result.List(nil))).Drift(w.cells()[0].Setting(), "p50", start()),
	} {
		if diff := cmp.Diff(insight.Drift{}, d); diff != "" {
			t.Error(diff)
		}
	}
}

// TestDistributionsLeaveOut holds that a distribution is of the trials that count, all of them together.
func TestDistributionsLeaveOut(t *testing.T) {
	w := usual()
	w.samples = 2000
	trials := w.trials(t)
	for i := range trials {
		if trials[i].Cell == "vxlan" {
			switch trials[i].Build {
			case 0:
				trials[i].Failed = "no route"
			case 1:
				trials[i].Path = &result.Path{}
			}
		}
		if trials[i].Cell == "macvlan" && trials[i].Build == 5 {
			trials[i].Histogram = "broken"
		}
	}
	var names []string
	for _, d := range insight.Gather(w.cells(), insight.Summarize(result.List(trials))).Distributions(w.cells()[0].Setting()) {
		names = append(names, d.Cell)
		want := int64(w.builds * w.samples)
		if d.Cell == "vxlan" {
			want -= 2 * int64(w.samples)
		}
		if d.Count != want {
			t.Errorf("%s has %d transactions, want %d", d.Cell, d.Count, want)
		}
		q := d.Quantiles[len(d.Quantiles)/2] // of half a latency and an exponential beyond it
		near(t, "a percentile of "+d.Cell, q.Value, baseNS*math.Exp(w.logs[d.Name])*(0.5-math.Log(1-q.Percent/100)), 0.08)
	}
	if want := []string{"host", "host-twin", "bridge", "vxlan"}; !slices.Equal(names, want) {
		t.Errorf("distributions of %q, want %q: an unreadable histogram has none", names, want)
	}
}

// TestQuantilesEndWhereChanceBegins holds that points ascend, start at the least, and leave ten values beyond the last.
func TestQuantilesEndWhereChanceBegins(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		count := rapid.Int64Range(1, 1e9).Draw(t, "count")
		percents := insight.Readable(count)
		if percents[0] != 0 || !slices.IsSorted(percents) {
			t.Fatalf("%d values are read at %g", count, percents)
		}
		last := percents[len(percents)-1]
		if beyond := float64(count) * (1 - last/100); last > 0 && beyond < insight.TailSamples*(1-1e-6) {
			t.Errorf("%g of %d values lie beyond p%g", beyond, count, last)
		}
		if count > 1e8 && len(percents) != insight.DistributionPoints+1 {
			t.Errorf("%d values are read at %d points only", count, len(percents))
		}
	})
}

// TestAuditCountsOnce counts what a journal holds that was written with care and without.
func TestAuditCountsOnce(t *testing.T) {
	w := usual()
	trials := w.trials(t)
	find := func(cell string, build int) *result.Trial {
		i := slices.IndexFunc(trials, func(t result.Trial) bool { return t.Cell == cell && t.Build == build })
		return &trials[i]
	}
	find("bridge", 0).Failed = "b"
	find("vxlan", 0).Failed = "a"
	find("vxlan", 1).Path = &result.Path{Findings: []string{"eth1 carried it", "eth0 did not"}}
	find("host", 2).Path = &result.Path{OK: true}
	find("host", 3).Path = &result.Path{OK: true, Weak: []string{"no sample"}}
	find("host", 4).Bursts.Disturbed[7], find("host", 4).Bursts.Disturbed[8] = "steal", "preempted"
	find("host", 5).Bursts.Disturbed[7] = "steal"
	all := len(trials)
	trials = append(trials, trials[:7]...) // twice in the journal
	got := insight.Summarize(result.List(trials)).Audit()
	want := insight.Account{
		Trials: all, Bursts: all * w.rounds, Builds: w.builds, Proved: 1, Weak: 1, Unwatched: all - 5,
		LostTrials: []insight.Exclusion{{insight.TrialFailed, 2, "bridge#0: b"}, {insight.Misrouted, 1, "vxlan#1: eth1 carried it; eth0 did not"}},
		LostBursts: []insight.Exclusion{{"steal", 2, ""}, {"preempted", 1, ""}},
		Misrouted:  []insight.MisroutedTrial{{"vxlan#1", find("vxlan", 1).Path}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// stops prints a way's devices.
func stops(w insight.Way) []string {
	var all []string
	for _, s := range w.Stops {
		text := s.Space + "/" + s.Device
		if s.Encapsulated {
			text = "(" + text + ")"
		}
		all = append(all, text)
	}
	return all
}

// TestWays holds that a way is the one that was measured, or for want of it the one that the network is built for.
func TestWays(t *testing.T) {
	w := usual()
	w.networks = append(w.networks, "of-the-future")
	trials := w.trials(t)
	for i := range trials {
		switch c := &trials[i]; c.Cell {
		case "bridge":
			c.Path = &result.Path{OK: true, Encapsulation: "none", Hops: []result.PathHop{{Device: "pod7/eth0", Sends: true, Packets: 5, Bytes: 300}, {Device: "strange"}}}
		case "vxlan":
			if c.Build < 2 {
				c.Path = &result.Path{Findings: []string{"eth1 carried it"}, Stray: []result.PathHop{{Device: "node0/eth1"}}}
			} else if c.Build == 2 {
				c.Path = &result.Path{OK: true, Weak: []string{"no sample"}}
			}
		}
	}
	ways := map[string]insight.Way{}
	var order []string
	for _, way := range insight.Gather(w.cells(), insight.Summarize(result.List(trials))).Ways(w.cells(), network.Catalogue()) {
		order = append(order, way.Name)
		ways[way.Name] = way
	}
	if want := []string{"host", "bridge", "macvlan", "vxlan", "of-the-future"}; !slices.Equal(order, want) || !ways["host"].Baseline {
		t.Errorf("ways are of %q, want %q, the baseline first", order, want)
	}
	bridge, vxlan := ways["bridge"], ways["vxlan"]
	if !bridge.Measured || bridge.Trial != "bridge#0" || bridge.Proved != w.builds || bridge.Encapsulation != "" || bridge.Stops[0].Packets != 5 {
		t.Errorf("the way of bridge is not what trial bridge#0 shows: %+v", bridge)
	}
	if want := []string{"pod7/eth0", "/strange"}; !slices.Equal(stops(bridge), want) {
		t.Errorf("bridge stops at %q, want %q", stops(bridge), want)
	}
	if vxlan.Measured || vxlan.Misrouted != 2 || vxlan.Weak != 1 || vxlan.Unwatched != w.builds-3 || vxlan.Encapsulation != "vxlan" || vxlan.Overhead != 50 {
		t.Errorf("the way of vxlan is not as built and counted: %+v", vxlan)
	}
	if want := []string{"eth1 carried it", "no sample"}; !slices.Equal(vxlan.Reasons, want) || !slices.Equal(vxlan.Stray, []string{"node0/eth1"}) {
		t.Errorf("the reasons are %q and stray devices %q", vxlan.Reasons, vxlan.Stray)
	}
	want := []string{
		"pod0/eth0", "node0/veth0", "node0/vxlan0", "(node0/eth0)",
		"(node1/eth0)", "node1/vxlan0", "node1/veth2", "pod2/eth0",
	}
	if diff := cmp.Diff(want, stops(vxlan)); diff != "" {
		t.Error(diff)
	}
	if within := vxlan.Stops[1].Within; within != "bridge br0" {
		t.Errorf("veth0 hangs on %q, want bridge br0", within)
	}
	if future := ways["of-the-future"]; len(future.Stops) != 0 || future.Unwatched != w.builds {
		t.Errorf("the way of an unknown network is %+v", future)
	}
}

// TestSpendings holds that processor time is divided by the work that it was spent on, the baseline's with its A/A control's.
func TestSpendings(t *testing.T) {
	w := usual()
	trials := w.trials(t)
	fill := func(work, moved int64) {
		for i := range trials {
			b := &trials[i].Bursts
			factor := int64(1)
			if trials[i].Cell == "host-twin" {
				factor = 3
			}
			b.ClientCPU, b.ServerCPU, b.KernelCPU, b.Work, b.Moved = nil, nil, nil, nil, nil
			for k := range b.Round {
				if trials[i].Cell != "macvlan" {
					b.ClientCPU, b.ServerCPU = append(b.ClientCPU, factor*6000), append(b.ServerCPU, factor*4000)
					b.KernelCPU, b.Work, b.Moved = append(b.KernelCPU, factor*1000), append(b.Work, work), append(b.Moved, moved)
				}
				b.Disturbed[k] = ""
			}
			b.Disturbed[0] = "steal"
		}
	}
	fill(10, 4000)
	setting := w.cells()[0].Setting()
	got := insight.Gather(w.cells(), insight.Summarize(result.List(trials))).Spendings(setting)
	want := []insight.Spending{
		{Series: insight.Series{"host", "host", result.RoleBaseline}, Client: 1200, Server: 800, Kernel: 200},
		{Series: insight.Series{"bridge", "bridge", result.RoleCell}, Client: 600, Server: 400, Kernel: 100},
		{Series: insight.Series{"vxlan", "vxlan", result.RoleCell}, Client: 600, Server: 400, Kernel: 100},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	fill(0, 4000)
	if got := insight.Gather(w.cells(), insight.Summarize(result.List(trials))).Spendings(setting); len(got) != 0 {
		t.Errorf("without work there is nothing to divide by, got %+v", got)
	}
	for i := range trials {
		trials[i].Bursts.P50 = nil
	}
	if got := insight.Gather(w.cells(), insight.Summarize(result.List(trials))).Spendings(setting); len(got) != 3 || !got[1].PerByte || got[1].Client != 1.5 {
		t.Errorf("a stream's time is for bytes: %+v", got)
	}
}
