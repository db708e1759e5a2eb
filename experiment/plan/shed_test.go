package plan_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"netdelta/experiment/plan"
	"netdelta/result"
)

// A slow machine leaves out neither of two workloads that the user named, however few builds that leaves each.
func TestSlowMachineKeepsWhatTheUserNames(t *testing.T) {
	cells := settings(4, 3)
	for i := range cells {
		if cells[i].Params.Connections > 2 {
			cells[i].Workload = "udp-rr"
		}
	}
	of := rules(time.Minute)
	of.Named = true
	w := &world{burst: 300 * time.Millisecond, perCell: 40 * time.Millisecond, ahead: true} // 7 and 10 were guessed
	s := plan.NewScheduler(cells, of, costs())
	w.run(t, s)
	builds := map[string]int{}
	for _, c := range cells {
		builds[c.Workload] = max(builds[c.Workload], w.builds[c.ID])
	}
	if len(s.Shed().Cells) == 0 || len(builds) != 2 {
		t.Fatalf("left out %d cells of %d workloads: the test shows nothing", len(s.Shed().Cells), len(builds))
	}
	for workload, n := range builds {
		if n == 0 {
			t.Errorf("%s was not measured: %v", workload, builds)
		}
	}
}

// A machine that is many times slower than was guessed gives up loads, those that were chosen last first, so that what is left
// has its intervals within the budget.
func TestSlowMachineGivesUpLoads(t *testing.T) {
	cells := settings(4, 3)
	w := &world{burst: 90 * time.Millisecond, perCell: 40 * time.Millisecond, ahead: true} // 7 and 10 were guessed
	of := rules(time.Minute)
	of.Ground = "the cluster"
	s := plan.NewScheduler(cells, of, costs())
	if end := w.run(t, s); end.Ended != plan.EndedBudget || w.now > time.Minute {
		t.Errorf("ended %q at %v", end.Ended, w.now)
	}
	shed := s.Shed()
	left := map[string]bool{}
	for _, id := range shed.Cells {
		left[id] = true
	}
	kept := map[int]bool{}
	for _, c := range cells {
		if left[c.ID] {
			if w.builds[c.ID] != 0 {
				t.Errorf("%s was left out after %d builds, want the first rounds", c.ID, w.builds[c.ID])
			}
			continue
		}
		kept[c.Params.Connections] = true
		if w.builds[c.ID] < 6 {
			t.Errorf("%s has %d builds, fewer than an interval takes", c.ID, w.builds[c.ID])
		}
	}
	// The first combination is chosen first, the last one next.
	if len(kept) == 0 || len(kept) == 4 || !kept[1] {
		t.Errorf("kept the loads %v", kept)
	}
	if !strings.HasPrefix(shed.Note, "the cluster takes longer than was planned: ") || !strings.Contains(shed.Why, ": the cluster takes longer") {
		t.Errorf("on a cluster it is said: %q, %q", shed.Note, shed.Why)
	}
	if !strings.Contains(shed.Note, "was left out in the first build,") || !strings.Contains(shed.Why, "time budget of 1m") {
		t.Errorf("it is said: %q, %q", shed.Note, shed.Why)
	}
	for _, c := range shed.Mark(cells) {
		if (c.Skipped != "") != left[c.ID] {
			t.Errorf("%s is marked %q", c.ID, c.Skipped)
		}
	}
	namesMore(t, shed.Note, time.Minute)
}

// namesMore fails unless a note on what was left out names a larger budget.
func namesMore(t *testing.T, note string, budget time.Duration) {
	t.Helper()
	_, rest, _ := strings.Cut(note, "--time-budget ")
	word, _, _ := strings.Cut(rest, " ")
	if more, err := time.ParseDuration(word); err != nil || more <= budget {
		t.Errorf("a budget of %v did not hold all, and this is said: %q", budget, note)
	}
}

// A machine that is as fast as was guessed gives up nothing, nor does a run of as many builds or rounds as were asked for.
func TestNothingIsGivenUpWithoutNeed(t *testing.T) {
	for name, c := range map[string]struct {
		burst time.Duration
		rules func(*plan.Rules)
	}{
		"as guessed": {7 * time.Millisecond, func(*plan.Rules) {}},
		"builds":     {90 * time.Millisecond, func(r *plan.Rules) { r.MaxBuilds, r.Builds, r.MinBuilds = 6, 6, 6 }},
		"rounds":     {90 * time.Millisecond, func(r *plan.Rules) { r.Rounds, r.MinRounds = 20, 20 }},
		"one load":   {400 * time.Millisecond, func(*plan.Rules) {}},
	} {
		cells := settings(4, 3)
		if name == "one load" {
			cells = settings(1, 3)
		}
		asked := rules(time.Minute)
		c.rules(&asked)
		w := &world{burst: c.burst, perCell: 10 * time.Millisecond}
		s := plan.NewScheduler(cells, asked, costs())
		w.run(t, s)
		if shed := s.Shed(); len(shed.Cells) != 0 || shed.Note != "" {
			t.Errorf("%s: %q", name, shed.Note)
		}
	}
}

// What is left out after some builds is shown with these, and one budget is named that holds all, though another was guessed at first.
func TestWhatWasMeasuredIsShown(t *testing.T) {
	cells := settings(4, 3)
	w := &world{burst: 7 * time.Millisecond, perCell: 10 * time.Millisecond}
	w.noise = func() float64 {
		if len(w.steps) >= 2 {
			return 3
		}
		return 1
	}
	s := plan.NewScheduler(cells, rules(15*time.Second), costs())
	w.run(t, s)
	shed := s.Shed()
	if len(shed.Shown) == 0 || len(shed.Shown) == len(cells) {
		t.Fatalf("shown are %d of %d cells that were left out: the test shows nothing", len(shed.Shown), len(shed.Cells))
	}
	guessed := result.Cell{ID: "guessed", Skipped: "left out by the time budget of 20s; 25s holds all"}
	for _, c := range shed.Mark(append(cells, guessed)) {
		switch {
		case c.ID == guessed.ID:
			if want := "left out by the time budget of 20s; " + shed.Whole + " holds all"; c.Skipped != want {
				t.Errorf("a cell that was left out as guessed is marked %q, want %q", c.Skipped, want)
			}
		case c.Skipped != "" && w.builds[c.ID] >= 3:
			t.Errorf("%s has %d builds and is marked %q", c.ID, w.builds[c.ID], c.Skipped)
		}
	}
	notes := strings.Join(shed.Explain([]string{"the time budget of 20s holds 1 of 2 workload settings, each on all 3 networks: a; left out: b; --time-budget 25s holds all"}), "\n")
	if strings.Count(notes, "--time-budget") != 1 || !strings.Contains(notes, "--time-budget "+shed.Whole) || !strings.Contains(notes, "left out: b") {
		t.Errorf("it is said: %s", notes)
	}
}

// However loaded the machine is: settings go first, then rounds, and builds of the first setting last.
func TestLoadedMachineKeepsBuilds(t *testing.T) {
	const budget = 30 * time.Second
	for name, w := range map[string]*world{
		"slow set-up":       {perCell: 50 * time.Millisecond, burst: 7 * time.Millisecond},
		"slow bursts":       {perCell: 5 * time.Millisecond, burst: 25 * time.Millisecond},
		"both":              {perCell: 50 * time.Millisecond, burst: 20 * time.Millisecond},
		"slow from then on": {perCell: 5 * time.Millisecond, burst: 7 * time.Millisecond},
	} {
		cells := settings(10, 12)
		if name == "slow from then on" {
			w.noise = func() float64 {
				if len(w.steps) > 0 {
					return 2
				}
				return 1
			}
		}
		w.ahead = true
		s := plan.NewScheduler(cells, rules(budget), costs())
		w.run(t, s)
		if w.builds["net0/0"] < 6 || w.now > budget+w.longest {
			t.Errorf("%s: %d builds of the first setting in %v", name, w.builds["net0/0"], w.now)
		}
		for _, c := range cells {
			if n := w.builds[c.ID]; n > w.builds["net0/0"] {
				t.Errorf("%s: %s has %d builds, more than the first setting", name, c.ID, n)
			}
		}
		if len(s.Shed().Cells) == 0 || len(s.Shed().Cells) == len(cells) {
			t.Errorf("%s: left out %d of %d cells", name, len(s.Shed().Cells), len(cells))
		}
		namesMore(t, s.Shed().Note, budget)
	}
}

// Where one load is too much, its setting on one node goes, since networks differ most across nodes; where one setting is, its builds have fewer rounds.
func TestOneLoadGivesUpPlacements(t *testing.T) {
	cells := settings(1, 12)
	for _, c := range settings(1, 12) {
		c.ID, c.Placement = c.ID+"/across", result.CrossNode
		cells = append(cells, c)
	}
	w := &world{perCell: 50 * time.Millisecond, burst: 20 * time.Millisecond}
	s := plan.NewScheduler(cells, rules(20*time.Second), costs())
	w.run(t, s)
	if w.builds["net0/0/across"] < 6 || w.builds["net0/0"] != 0 || !strings.Contains(s.Shed().Note, "on one node was left out in the first build") {
		t.Errorf("%d builds, %d across nodes: %s", w.builds["net0/0"], w.builds["net0/0/across"], s.Shed().Note)
	}
	if first := w.steps[0]; first.Rounds >= 10 {
		t.Errorf("the first build has %d rounds, where six of ten don't fit", first.Rounds)
	}
}

// A run in blocks whose number the study leaves open gives up loads as well, and what is spent once is no part of what a build
// costs.
func TestBlocksGiveUpLoads(t *testing.T) {
	for name, c := range map[string]struct {
		burst, once time.Duration
		sheds       bool
	}{
		"slow":                   {900 * time.Millisecond, 0, true},
		"as guessed":             {400 * time.Millisecond, 0, false},
		"services started first": {400 * time.Millisecond, 10 * time.Second, false},
	} {
		r := plan.Rules{Budget: time.Minute, Builds: 6, MinBuilds: 6, Rounds: 1, MinRounds: 1, OnePass: true}
		w := &world{burst: c.burst, once: c.once}
		s := plan.NewScheduler(settings(4, 3), r, plan.Costs{Build: 50 * time.Millisecond, Burst: 400 * time.Millisecond})
		end := w.run(t, s)
		if w.now > time.Minute || end.Ended != plan.EndedBudget {
			t.Errorf("%s: ended %q at %v", name, end.Ended, w.now)
		}
		if shed := s.Shed(); (len(shed.Cells) > 0) != c.sheds {
			t.Errorf("%s: %q", name, shed.Note)
		}
		if w.builds["net0/0"] < 6 {
			t.Errorf("%s: %d builds of the first load", name, w.builds["net0/0"])
		}
	}
}

// Of loads that cost very different amounts it is the dear one that goes, though a small one was chosen after it; and all that went
// in the course of a run is named.
func TestSmallLoadsStay(t *testing.T) {
	cells := settings(3, 3)
	dear := map[string]time.Duration{}
	for _, c := range cells {
		if c.Params.Connections == 3 { // the second that is chosen
			dear[c.ID] = 3 * time.Second
		}
	}
	w := &world{burst: 10 * time.Millisecond, dear: dear}
	r := plan.Rules{Budget: time.Minute, Builds: 6, MinBuilds: 6, Rounds: 1, MinRounds: 1, OnePass: true}
	s := plan.NewScheduler(cells, r, plan.Costs{Burst: 10 * time.Millisecond})
	w.run(t, s)
	shed := s.Shed()
	if len(shed.Cells) != 5 || !strings.Contains(shed.Note, "conns=3 was left out") {
		t.Errorf("left out %v: %s", shed.Cells, shed.Note)
	}
	for _, c := range cells {
		if dear[c.ID] == 0 && w.builds[c.ID] < 6 {
			t.Errorf("%s has %d builds", c.ID, w.builds[c.ID])
		}
	}
}

// However fast and slow a machine is in turn, what its budget did not hold takes a larger one, small as costs may be as a rule.
func TestWhatIsLeftOutTakesALargerBudget(t *testing.T) {
	const budget = 40 * time.Second
	for seed := range uint64(80) {
		cells := settings(4, 4)
		for i, c := range cells {
			if c.Params.Connections > 1 {
				cells[i].Skipped = "left out as guessed"
			}
		}
		random := rand.New(rand.NewPCG(seed, 1))
		var factors []float64
		w := &world{perCell: 40 * time.Millisecond, burst: 7 * time.Millisecond}
		w.noise = func() float64 { // of a build
			for len(factors) <= len(w.steps) {
				factors = append(factors, math.Exp(2*random.NormFloat64()))
			}
			return factors[len(w.steps)]
		}
		s := plan.NewScheduler(plan.Measured(cells), rules(budget), costs())
		s.Later(plan.Waiting(cells))
		w.run(t, s)
		if shed := s.Shed(); shed.Note != "" {
			namesMore(t, shed.Note, budget)
		}
	}
}
