package plan_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netdelta/experiment/plan"
	"netdelta/experiment/studies"
	"netdelta/experiment/study"
	"netdelta/internal/property"
	"netdelta/result"
	"netdelta/unit"
)

// builtin reads a built-in study with a catalogue that has all it asks for.
func builtin(t testing.TB, name string) *study.Study {
	t.Helper()
	f, ok := studies.Find(name)
	if !ok {
		t.Fatalf("no study %s", name)
	}
	s, err := study.Parse(f.Path(), f.Data, study.Known{
		Testbeds: []string{"lab"},
		Networks: []string{
			"host", "bridge", "bridge-nat", "macvlan", "ipvlan-l2", "ipvlan-l3", "routed", "vxlan", "vxlan-routed", "ebpf-routed", "ebpf-vxlan", "sockmap",
			"xdp", "udp-tun", "sriov", "ipip", "gre", "geneve", "netkit", "netkit-l2", "ovs", "wireguard", "ipsec",
		},
		Workloads: []study.KnownWorkload{{Name: "tcp-rr"}, {Name: "udp-rr"}, {Name: "tcp-crr"}, {Name: "tcp-stream"}, {Name: "udp-stream"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Networks = s.Networks[:min(9, len(s.Networks))] // the budgets in these tests are for so many
	return s
}

func TestExpandLatency(t *testing.T) {
	cells := plan.Expand(builtin(t, "latency"))
	if want := 10 * 2 * 10; len(cells) != want { // networks and the A/A control, placements, settings
		t.Errorf("have %d cells, want %d", len(cells), want)
	}
	seen := map[string]bool{}
	roles := map[result.Setting]map[result.Role]int{}
	for _, c := range cells {
		if seen[c.ID] {
			t.Errorf("two cells are named %s", c.ID)
		}
		seen[c.ID] = true
		if roles[c.Setting()] == nil {
			roles[c.Setting()] = map[result.Role]int{}
		}
		roles[c.Setting()][c.Role]++
	}
	for setting, have := range roles {
		if d := cmp.Diff(map[result.Role]int{result.RoleBaseline: 1, result.RoleControl: 1, result.RoleCell: 8}, have); d != "" {
			t.Errorf("%+v: %s", setting, d)
		}
	}
	for _, id := range []string{"vxlan/cross-node/tcp-rr/300B", "host/same-node/udp-rr/2KiB", "host+twin/same-node/udp-rr/500B"} {
		if !seen[id] {
			t.Errorf("no cell is named %s", id)
		}
	}
}

func TestExpandNamesEveryLevel(t *testing.T) {
	s := &study.Study{
		Baseline: "host", Networks: []string{"host"}, Placement: []result.Placement{result.CrossNode},
		Workloads: []study.Workload{{Name: "w", Levels: study.Levels{
			"message": {unit.Bytes(1), unit.Bytes(1500), unit.Bytes(1 << 20)}, "connections": {1, 8}, "rate": {unit.BitsPerSecond(unit.Gbit), study.SearchRate, unit.BitsPerSecond(1.5 * unit.Mbit)},
			"request_rate": {0.5, float64(1e6)}, "cpu": {"same", "two"}, "busy_poll": {time.Duration(0), 50 * time.Microsecond},
			"congestion_control": {"bbr"}, "nagle": {false, true},
		}}},
		Factors: study.Levels{"mtu": {unit.Bytes(1500), unit.Bytes(9000)}, "family": {string(result.IPv4), string(result.IPv6)}},
	}
	seen := map[string]bool{}
	for _, c := range plan.Expand(s) {
		seen[c.ID] = true
	}
	if want := 2 * 3 * 2 * 3 * 2 * 2 * 2 * 2 * 2 * 2; len(seen) != want {
		t.Errorf("have %d names, want %d", len(seen), want)
	}
	const longest = "host/cross-node/w/1MiB/conns=8/rate=1Gbit/rps=1000000/cpu=two/poll=50us/cc=bbr/nagle/mtu=9000"
	for _, name := range []string{longest, longest + "/ipv6", strings.Replace(longest, "rate=1Gbit", "rate=search", 1)} { // IPv4 is not named
		if !seen[name] {
			t.Errorf("no cell is named %s", name)
		}
	}
}

// apart makes the bursts of one workload among cells cost something else.
func apart(cells []result.Cell, workload string, burst time.Duration) map[string]time.Duration {
	all := map[string]time.Duration{}
	for _, c := range cells {
		if c.Workload == workload {
			all[c.ID] = burst
		}
	}
	return all
}

func costs() plan.Costs {
	return plan.Costs{
		Start: 2 * time.Second, Build: 50 * time.Millisecond, Cell: 10 * time.Millisecond, Burst: 7 * time.Millisecond,
	}
}

func TestFitChoosesByBudget(t *testing.T) {
	s := builtin(t, "latency")
	rules := plan.RulesOf(s.Design)
	f, err := plan.Fit(plan.Expand(s), costs(), rules)
	if err != nil {
		t.Fatal(err)
	}
	const want = "the time budget of 1m holds 1 of 9 workload settings, each on all 9 networks: tcp-rr 300B at 2 levels; " +
		"left out: udp-rr 300B, tcp-rr 64KiB, udp-rr 2KiB, tcp-rr 500B, udp-rr 500B, tcp-rr 1KiB, udp-rr 1KiB, tcp-rr 2KiB; --time-budget 2m40s holds all"
	if d := cmp.Diff(strings.ReplaceAll(want, "2m40s", unit.FormatDuration(f.Whole)), f.Note); d != "" {
		t.Error(d)
	}
	if len(f.Cells) != 200 || len(plan.Measured(f.Cells)) != 40 {
		t.Errorf("kept %d of %d cells", len(plan.Measured(f.Cells)), len(f.Cells))
	}
	for _, c := range f.Cells {
		kept := slices.ContainsFunc(plan.Measured(f.Cells), func(k result.Cell) bool { return k.ID == c.ID })
		if kept != (c.Skipped == "") {
			t.Errorf("cell %s is kept: %v, and skipped: %q", c.ID, kept, c.Skipped)
		}
	}
	rules.Budget = f.Whole
	if whole, err := plan.Fit(plan.Expand(s), costs(), rules); err != nil || whole.Note != "" || len(plan.Measured(whole.Cells)) != 200 {
		t.Errorf("the budget that is said to hold all keeps %d cells: %q, %v", len(plan.Measured(whole.Cells)), whole.Note, err)
	}
}

// Of two workloads that the user named both are measured, where the budget holds the planned builds of one alone. Of a study's own
// workloads, the others are left out.
func TestFitMeasuresWhatTheUserNames(t *testing.T) {
	s := builtin(t, "latency")
	for _, named := range []bool{true, false} {
		rules := plan.RulesOf(s.Design)
		rules.Named = named
		f, err := plan.Fit(plan.Expand(s), costs(), rules)
		if err != nil {
			t.Fatal(err)
		}
		kept := map[string]bool{}
		for _, c := range plan.Measured(f.Cells) {
			kept[c.Workload] = true
		}
		if !kept["tcp-rr"] || kept["udp-rr"] != named {
			t.Errorf("workloads named: %v; kept %v", named, kept)
		}
	}
}

// What is started once is charged once, and only for what is chosen: clusters of loads that the budget leaves out take none of it.
func TestFitChargesWhatIsChosen(t *testing.T) {
	s := builtin(t, "latency")
	cells, rules := plan.Expand(s), plan.RulesOf(s.Design)
	plain, err := plan.Fit(cells, costs(), rules)
	if err != nil {
		t.Fatal(err)
	}
	chosen := plan.Measured(plain.Cells)
	dear := costs()
	dear.Once = map[string]plan.Server{}
	for _, c := range cells {
		dear.Once[c.ID] = plan.Server{Key: "of the others", Takes: time.Hour}
	}
	for _, c := range chosen {
		dear.Once[c.ID] = plan.Server{Key: "of the chosen", Takes: time.Second}
	}
	rules.Budget += time.Second
	f, err := plan.Fit(cells, dear, rules)
	if err != nil || len(plan.Measured(f.Cells)) != len(chosen) {
		t.Errorf("%d cells are kept, not %d: %v", len(plan.Measured(f.Cells)), len(chosen), err)
	}
	if whole := plain.Whole + time.Hour + time.Second; f.Whole < plain.Whole+time.Hour || f.Whole > whole+time.Minute {
		t.Errorf("all would take %v, where %v and both clusters are %v", f.Whole, plain.Whole, whole)
	}
}

func TestFitTooShort(t *testing.T) {
	s := builtin(t, "latency")
	rules := plan.RulesOf(s.Design)
	rules.Budget = 5 * time.Second
	_, err := plan.Fit(plan.Expand(s), costs(), rules)
	var short *plan.BudgetError
	if !errors.As(err, &short) {
		t.Fatalf("want a *plan.BudgetError, have %v", err)
	}
	if want := "a time budget of 5s is too short for even one workload setting (20 cells, 6 builds of 10 rounds); use --time-budget 15s or more, or fewer networks"; err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	rules.Budget = short.Least
	if _, err := plan.Fit(plan.Expand(s), costs(), rules); err != nil {
		t.Errorf("the least budget is not enough: %v", err)
	}
}

func TestFitLeavesUnsupportedAlone(t *testing.T) {
	s := builtin(t, "latency")
	cells := plan.Expand(s)
	for i, c := range cells {
		if strings.HasPrefix(c.Network, "ipvlan") {
			cells[i].Unsupported = "needs ipvlan"
		}
	}
	f, err := plan.Fit(cells, costs(), plan.RulesOf(s.Design))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range f.Cells {
		if c.Unsupported != "" && c.Skipped != "" {
			t.Errorf("%s is unsupported, and the budget is blamed: %s", c.ID, c.Skipped)
		}
	}
	for _, c := range plan.Measured(f.Cells) {
		if c.Unsupported != "" {
			t.Errorf("%s is kept though it is unsupported", c.ID)
		}
	}
	if !strings.Contains(f.Note, "each on all 7 networks") {
		t.Errorf("the note counts networks that can't run: %s", f.Note)
	}
}

// TestFitHolds: what is kept fits, the whole budget keeps everything, and a longer budget never keeps less.
func TestFitHolds(t *testing.T) {
	cells := plan.Expand(builtin(t, "latency"))
	property.Check(t, func(t *rapid.T) {
		ms := func(name string, low, high int) time.Duration {
			return time.Duration(rapid.IntRange(low, high).Draw(t, name)) * time.Millisecond
		}
		c := plan.Costs{
			Start: ms("start", 0, 2000), Build: ms("build", 0, 500), Cell: ms("cell", 0, 50), Burst: ms("burst", 1, 50),
			Cells: apart(cells, "udp-rr", ms("udp", 1, 200)),
		}
		rules := plan.Rules{Budget: ms("budget", 1, 600_000), Builds: rapid.IntRange(6, 20).Draw(t, "builds"), MinBuilds: 6, MinRounds: 10}
		f, err := plan.Fit(cells, c, rules)
		var short *plan.BudgetError
		if errors.As(err, &short) {
			if short.Least <= rules.Budget {
				t.Fatalf("%v is too short, and %v is not", rules.Budget, short.Least)
			}
			rules.Budget = short.Least
			f, err = plan.Fit(cells, c, rules)
		}
		if err != nil {
			t.Fatal(err)
		}
		if (f.Note == "") != (len(plan.Measured(f.Cells)) == len(cells)) {
			t.Fatalf("kept %d of %d with the note %q", len(plan.Measured(f.Cells)), len(cells), f.Note)
		}
		longer := rules
		longer.Budget = max(f.Whole, rules.Budget)
		all, err := plan.Fit(cells, c, longer)
		if err != nil || len(plan.Measured(all.Cells)) != len(cells) {
			t.Fatalf("%v was said to hold all, and keeps %d of %d (%v)", f.Whole, len(plan.Measured(all.Cells)), len(cells), err)
		}
		if f.Note != "" && f.Whole < rules.Budget {
			t.Fatalf("%v leaves cells out, and %v would hold all", rules.Budget, f.Whole)
		}
	})
}

// TestOrderIsUniform counts how often each cell comes at each place, with chi-square at p = 1e-6, so that the fixed seeds
// pass by a wide margin and a skewed order does not.
func TestOrderIsUniform(t *testing.T) {
	const n, rounds = 7, 20_000
	for name, order := range map[string]func(i int) []int{
		"rounds": func(i int) []int { return plan.Order(1, 0, i, n) },
		"builds": func(i int) []int { return plan.Order(1, i, 0, n) },
		"seeds":  func(i int) []int { return plan.Order(uint64(i), 0, 0, n) },
	} {
		var count [n][n]int
		var next [n][n]int // how often cell b follows cell a: neighbouring orders must not resemble each other
		last := -1
		for i := range rounds {
			o := order(i)
			if s := slices.Sorted(slices.Values(o)); !slices.Equal(s, []int{0, 1, 2, 3, 4, 5, 6}) {
				t.Fatalf("%v is not a permutation", o)
			}
			for place, cell := range o {
				count[place][cell]++
			}
			if last >= 0 {
				next[last][o[0]]++
			}
			last = o[0]
		}
		for what, table := range map[string][n][n]int{"places": count, "first after first": next} {
			chi, total := 0.0, 0
			for _, row := range table {
				for _, v := range row {
					total += v
				}
			}
			expected := float64(total) / (n * n)
			for _, row := range table {
				for _, v := range row {
					chi += math.Pow(float64(v)-expected, 2) / expected
				}
			}
			if chi > 115 { // 48 degrees of freedom
				t.Errorf("%s, %s: chi-square %.0f", name, what, chi)
			}
		}
	}
}

func TestOrderIsRepeatable(t *testing.T) {
	if d := cmp.Diff(plan.Order(42, 3, 17, 50), plan.Order(42, 3, 17, 50)); d != "" {
		t.Error(d)
	}
	for name, other := range map[string][]int{
		"seed": plan.Order(43, 3, 17, 50), "build": plan.Order(42, 4, 17, 50), "round": plan.Order(42, 3, 18, 50),
		"build and round swapped": plan.Order(42, 17, 3, 50),
	} {
		if slices.Equal(plan.Order(42, 3, 17, 50), other) {
			t.Errorf("another %s gives the same order", name)
		}
	}
}

func TestOrdersDiffer(t *testing.T) {
	seen := map[string]string{}
	for seed := range uint64(8) {
		for build := range 8 {
			for round := range 8 {
				at := fmt.Sprint(seed, build, round)
				order := fmt.Sprint(plan.Order(seed, build, round, 50))
				if other, ok := seen[order]; ok {
					t.Errorf("seed, build and round %s have the order of %s", at, other)
				}
				seen[order] = at
			}
		}
	}
}
