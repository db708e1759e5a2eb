package terminal

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netdelta/insight"
	"netdelta/internal/golden"
	"netdelta/internal/property"
	"netdelta/report/reporttest"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
)

// setting is a setting of the sample run.
type setting struct {
	workload  string
	params    result.Params
	placement result.Placement
	baseline  float64 // headline value of the baseline
}

// delta is a headline delta in the setting, its interval in percent.
func (s setting) delta(network, verdict string, low, ratio, high float64) result.Delta {
	low, ratio, high = 1+low/100, 1+ratio/100, 1+high/100
	differenceLow, differenceHigh := s.baseline*(low-1), s.baseline*(high-1)
	d := result.Delta{
		Network: network, Baseline: "host", Setting: result.Setting{Workload: s.workload, Params: s.params, Placement: s.placement}, Path: "pod",
		Metric: "p50", Unit: "ns", Better: "lower", Headline: true, Judgement: result.Judgement{Verdict: verdict, Blocks: 12, Rounds: 2400, Ratio: ratio, RatioLow: &low, RatioHigh: &high, Difference: s.baseline * (ratio - 1), DifferenceLow: &differenceLow, DifferenceHigh: &differenceHigh, Excluded: map[string]int{"pressure": 30, "baseline pressure": 12}},
		BaselineValue: s.baseline, Value: s.baseline * ratio,
		Variance: &result.Variance{Builds: 0.0031, Rounds: 0.012, Bursts: 0.006},
	}
	if s.workload == "tcp-stream" {
		d.Metric, d.Unit, d.Better = "throughput", "bit/s", "higher"
	}
	if network == "bridge-nat" {
		d.Path = "nodeport"
	}
	d.Cell = s.id(network)
	return d
}

func (s setting) id(network string) string {
	return strings.Join([]string{network, string(s.placement), s.workload, s.params.Message.String()}, "/")
}

// cell is a cell of the setting.
func (s setting) cell(network string, role result.Role) result.Cell {
	c := result.Cell{
		ID: s.id(network), Network: network, Placement: s.placement, Path: "pod", Workload: s.workload, Params: s.params, Role: role,
	}
	if role == result.RoleControl {
		c.ID += "#twin"
	}
	if network == "bridge-nat" {
		c.Path = "nodeport"
	}
	return c
}

// add adds the setting to a run: the first delta is the null check.
func (s setting) add(run *result.Run, deltas ...result.Delta) {
	run.Cells = append(run.Cells, s.cell("host", result.RoleBaseline), s.cell("host", result.RoleControl))
	if len(deltas) > 0 {
		null := deltas[0]
		if low, _, high := change(null); insight.HasInterval(null) {
			floor := max(math.Abs(low), math.Abs(high))
			null.Floor = &floor
		}
		run.Null = append(run.Null, null)
		for _, d := range deltas[1:] {
			run.Cells = append(run.Cells, s.cell(d.Network, result.RoleCell))
			run.Deltas = append(run.Deltas, d)
		}
		run.Contrasts = append(run.Contrasts, reporttest.Contrasts(deltas[1:]...)...)
	}
}

func across() setting {
	return setting{"tcp-rr", result.Params{Message: 300}, result.CrossNode, 23_100}
}

// sample is a run with something of everything.
func sample() result.Run {
	run := result.Run{
		Schema: result.Schema, Run: "20300102-030405", Study: "latency", Testbed: "lab", Seed: 42,
		Question: "What does each container network add to a round trip?",
		Started:  time.Unix(0, 0), Finished: time.Unix(58, 0), Confidence: 0.95, Margin: 0.02, Ended: "budget",
		Environment: result.Environment{Kernel: "6.18.5", CPU: result.CPU{Count: 2}, Virtual: "kvm"},
		Notes:       []string{"24 of 160 cells fit the budget of 1m: sizes 300B of tcp-rr and tcp-stream; the whole takes --time-budget 15m."},
	}
	s := across()
	s.add(&run, s.delta("host", "same", -0.43, -0.08, 0.31),
		s.delta("vxlan", "slower", 30.1, 31.4, 32.9), s.delta("bridge", "slower", 11.2, 12.1, 13.3),
		s.delta("bridge-nat", "slower", 14.8, 16.2, 17.7), s.delta("macvlan", "same", 0.4, 1.2, 1.9),
		s.delta("routed", "slower", 11.5, 12.6, 13.4))
	for network, ratio := range map[string]float64{"vxlan": 1.45, "bridge": 1.21} {
		tail := s.delta(network, "unresolved", 0, 100*(ratio-1), 0)
		tail.Metric, tail.Headline = "p99", false
		if network == "vxlan" {
			tail.Verdict = "slower"
		}
		run.Deltas = append(run.Deltas, tail)
	}
	spent := s.delta("vxlan", "slower", 40, 42, 44)
	spent.Metric, spent.Headline = "cpu", false
	run.Deltas = append(run.Deltas, spent)
	n := setting{"tcp-rr", result.Params{Message: 300}, result.SameNode, 19_400}
	n.add(&run, n.delta("host", "same", -0.6, 0.1, 0.7), n.delta("bridge", "slower", 4.1, 5, 5.8),
		n.delta("macvlan", "unresolved", -1.2, 1.1, 3.4), n.delta("sockmap", "faster", -42.1, -40.3, -38.8))
	f := setting{"tcp-stream", result.Params{Connections: 4}, result.CrossNode, 9.41e9}
	f.add(&run, f.delta("host", "slower", -4.1, -2.9, -1.4), f.delta("vxlan", "slower", -26.2, -23.9, -21.5), f.delta("macvlan", "unresolved", -9, 1.1, 60))
	ipvlan := s.cell("ipvlan-l2", result.RoleCell)
	ipvlan.InGuest, ipvlan.Unsupported = true, "network ipvlan-l2 is unsupported: needs ipvlan links (CONFIG_IPVLAN); run it with --testbed vm"
	other := f.cell("ipvlan-l2", result.RoleCell)
	other.InGuest, other.Unsupported = true, ipvlan.Unsupported
	geneve := s.cell("geneve", result.RoleCell)
	ipip := s.cell("ipip", result.RoleCell)
	skipped := setting{"tcp-rr", result.Params{Message: 2048}, result.CrossNode, 0}.cell("vxlan", result.RoleCell)
	skipped.Skipped = "left out to keep the time budget"
	run.Cells = append(run.Cells, ipvlan, other, geneve, ipip, skipped)
	run.Checks = []result.Check{
		{Trial: geneve.ID + "#0", Check: insight.CheckFinished, Observed: "building network geneve: link eth0: no such device"},
		{Trial: geneve.ID + "#1", Check: insight.CheckFinished, Observed: "building network geneve: link eth1: no such device"},
		{Trial: ipip.ID + "#1", Check: insight.CheckFinished, Observed: "building network ipip: no such device"},
		{Trial: geneve.ID, Check: insight.CheckMeasured, Observed: "trial failed: 1"},
		{Trial: "a#1", Check: insight.CheckLoss, Expected: "0 datagrams lost", Observed: "3 lost"},
		{Trial: "b#1", Check: insight.CheckLoss, Expected: "0 datagrams lost", Observed: "1 lost"},
	}
	astray := "node0/eth1 carried 98% of the bytes; the plan says node0/eth0"
	for _, build := range []string{"#3", "#4"} {
		run.Checks = append(run.Checks, result.Check{
			Trial: s.id("routed") + build, Check: insight.CheckPath, Expected: "node0/eth0 > node1/eth0", Observed: astray,
		})
	}
	run.Paths = []result.PathProof{
		{Network: "vxlan", Placement: result.CrossNode, Trials: 12, Proved: 12},
		{Network: "routed", Placement: result.CrossNode, Trials: 12, Proved: 10, Weak: []string{"no packet sample: needs CAP_NET_RAW"}},
	}
	run.Deltas[0].Warnings = []string{"leaving out 3 rounds whose delta is not a finite number"}
	run.Account = &result.Account{Trials: 120, Builds: 12, Bursts: 31_626, LostBursts: map[string]int{"pressure": 426}, LeftOut: 1}
	run.Advice = nil
	for _, a := range insight.Advise(run, nil) {
		run.Advice = append(run.Advice, words.Advice(a))
	}
	return run
}

// oneBuild is a run that ended too early for any interval.
func oneBuild() result.Run {
	run := result.Run{Study: "latency", Testbed: "lab", Confidence: 0.95, Margin: 0.02, Ended: "interrupted"}
	s := across()
	s.add(&run, s.delta("host", "unresolved", 0, 0.4, 0), s.delta("vxlan", "unresolved", 0, 29, 0), s.delta("macvlan", "unresolved", 0, 1, 0))
	for _, deltas := range [][]result.Delta{run.Deltas, run.Null} {
		for i := range deltas {
			d := &deltas[i]
			d.RatioLow, d.RatioHigh, d.DifferenceLow, d.DifferenceHigh, d.Floor = nil, nil, nil, nil, nil
			d.Blocks, d.Need, d.Variance, d.Excluded = 1, 6, nil, nil
		}
	}
	run.Advice = nil
	for _, a := range insight.Advise(run, nil) {
		run.Advice = append(run.Advice, words.Advice(a))
	}
	return run
}

// loss is a run whose headline has no ratio.
func loss() result.Run {
	run := result.Run{Study: "loss", Testbed: "lab", Confidence: 0.95, Margin: 0.02, Ended: "resolved"}
	run.Account = &result.Account{Bursts: 4_872, LostBursts: map[string]int{"pressure": 72}}
	s := setting{"udp-stream", result.Params{Rate: 1e9}, result.CrossNode, 0}
	s.add(&run, s.delta("host", "same", 0, 0, 0), s.delta("vxlan", "slower", 4, 5, 6))
	for _, deltas := range [][]result.Delta{run.Deltas, run.Null} {
		for i := range deltas {
			d := &deltas[i]
			low, high := *d.RatioLow-1, *d.RatioHigh-1
			d.Metric, d.Unit, d.Difference, d.DifferenceLow, d.DifferenceHigh = "loss", "ratio", d.Ratio-1, &low, &high
			d.Value, d.Ratio, d.RatioLow, d.RatioHigh = d.Difference, 0, nil, nil
		}
	}
	return run
}

func TestGolden(t *testing.T) {
	plain := ui.Terminal{Width: 80, Unicode: true}
	for name, tc := range map[string]struct {
		run      result.Run
		terminal ui.Terminal
	}{
		"80":        {sample(), plain},
		"120":       {sample(), ui.Terminal{Width: 120, Unicode: true}},
		"80-colour": {sample(), ui.Terminal{Width: 80, Unicode: true, Colour: true}},
		"80-ascii":  {sample(), ui.Terminal{Width: 80}},
		"40":        {sample(), ui.Terminal{Width: 40, Unicode: true}},
		"empty":     {result.Run{Study: "latency", Ended: "running"}, plain},
		"one-build": {oneBuild(), plain},
		"loss":      {loss(), plain},
	} {
		t.Run(name, func(t *testing.T) {
			for file, verbose := range map[string]bool{name: true, "brief-" + name: false} {
				var got bytes.Buffer
				if err := Write(&got, tc.run, View{Terminal: tc.terminal, Verbose: verbose}); err != nil {
					t.Fatal(err)
				}
				golden.Check(t, filepath.Join("testdata", file+".txt"), got.String())
			}
		})
	}
}

// TestColoursChangeNothingElse holds that a coloured report is the plain one with colours in it.
func TestColoursChangeNothingElse(t *testing.T) {
	var plain, coloured bytes.Buffer
	if err := errors.Join(
		Write(&plain, sample(), View{Terminal: ui.Terminal{Width: 100, Unicode: true}, Verbose: true}),
		Write(&coloured, sample(), View{Terminal: ui.Terminal{Width: 100, Unicode: true, Colour: true}, Verbose: true}),
	); err != nil {
		t.Fatal(err)
	}
	text := coloured.String()
	for _, s := range []ui.Style{ui.Bold, ui.Dim, ui.Red, ui.Green, ui.Yellow, ui.Blue} {
		if !strings.Contains(text, "\x1b["+string(s)+"m") {
			t.Errorf("no text in style %s", s)
		}
		text = strings.ReplaceAll(text, "\x1b["+string(s)+"m", "")
	}
	text = strings.ReplaceAll(text, "\x1b[0m", "")
	if diff := cmp.Diff(plain.String(), text); diff != "" {
		t.Errorf("without its colours (-plain +coloured):\n%s", diff)
	}
}

// TestHostileText holds that no text of a run reaches the terminal with its control characters.
func TestHostileText(t *testing.T) {
	const evil = "x\x1b]0;owned\a\x1b[2J\u202e\u200b\u2060\ufeff\r\n\u009b1m"
	run := sample()
	run.Study, run.Question, run.Testbed, run.Ended = evil, evil, evil, evil
	run.Environment.Kernel, run.Environment.Virtual = evil, evil
	run.Environment.Cluster = &result.Cluster{Name: evil, Version: evil, Network: evil, Proxy: evil, Nodes: []result.ClusterNode{{Name: evil, Zone: evil}}}
	run.Notes = []string{evil}
	for i := range run.Cells {
		c := &run.Cells[i]
		c.Network, c.Workload, c.ID = c.Network+evil, c.Workload+evil, c.ID+evil
		c.Path, c.Params.CPU, c.Params.CongestionControl = evil, evil, evil
		c.Placement += evil
		if c.Unsupported != "" {
			c.Unsupported += evil
		}
		if c.Skipped != "" {
			c.Skipped += evil
		}
	}
	for _, deltas := range [][]result.Delta{run.Deltas, run.Null} {
		for i := range deltas {
			d := &deltas[i]
			d.Network, d.Baseline, d.Workload, d.Cell = d.Network+evil, evil, d.Workload+evil, d.Cell+evil
			d.Path, d.Params.CPU, d.Params.CongestionControl = evil, evil, evil
			d.Placement += evil
			d.Metric, d.Unit, d.Verdict = evil, evil, d.Verdict+evil
			d.Warnings, d.Excluded = []string{evil}, map[string]int{evil: 1}
		}
	}
	run.Account.LostBursts = map[string]int{evil: 1}
	for i := range run.Checks {
		c := &run.Checks[i]
		c.Trial, c.Expected, c.Observed = c.Trial+evil, evil, evil
	}
	run.Checks = append(run.Checks, result.Check{Check: evil})
	run.Advice = []result.Advice{{Says: evil, Why: evil}}
	var out bytes.Buffer
	if err := Write(&out, run, View{Terminal: ui.Terminal{Width: 80, Unicode: true}, Verbose: true}); err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexAny(out.String(), "\x1b\a\r\u202e\u009b\u200b\u2060\ufeff"); i >= 0 {
		t.Errorf("a control character got through: %q", out.String()[max(i-80, 0):i+10])
	}
	if !strings.Contains(out.String(), "owned") {
		t.Error("the text itself is missing")
	}
}

// TestLinesFit holds that tables and headings keep to the width, at any width and for any figures.
func TestLinesFit(t *testing.T) {
	percent := rapid.Float64Range(-90, 900)
	property.Check(t, func(t *rapid.T) {
		run := result.Run{Study: "any", Margin: 0.02, Confidence: 0.95}
		s := across()
		if rapid.Bool().Draw(t, "stream") {
			s.workload, s.baseline = "tcp-stream", 9.4e9
		}
		var deltas []result.Delta
		for range rapid.IntRange(1, 5).Draw(t, "deltas") {
			d := s.delta(rapid.StringN(1, 40, -1).Draw(t, "network"), rapid.SampledFrom([]string{"slower", "faster", "same", "unresolved"}).Draw(t, "verdict"),
				percent.Draw(t, "low"), percent.Draw(t, "ratio"), percent.Draw(t, "high"))
			if rapid.Bool().Draw(t, "too few") {
				d.RatioLow, d.RatioHigh, d.Need = nil, nil, 6
			}
			deltas = append(deltas, d)
		}
		s.add(&run, deltas...)
		terminal := ui.Terminal{Width: rapid.IntRange(72, 200).Draw(t, "width"), Unicode: rapid.Bool().Draw(t, "unicode")}
		var out bytes.Buffer
		if err := Write(&out, run, View{Terminal: terminal, Verbose: true}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if got := ui.Columns(strings.TrimSuffix(line, "\n")); got > terminal.Width && !strings.HasPrefix(line, "Across nodes") {
				t.Fatalf("%d columns of %d: %q", got, terminal.Width, line)
			}
		}
	})
}

// broken is a writer that fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWriterErrorIsReturned(t *testing.T) {
	if err := Write(broken{}, sample(), View{Terminal: ui.Terminal{Width: 80}, Verbose: true}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("error %v, want %v", err, os.ErrClosed)
	}
}
