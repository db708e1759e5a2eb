package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/experiment/plan"
	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// stores is a study of two states of a cluster with three settings, of which the last two take a server that is started at each visit.
func stores(t *testing.T, budget time.Duration, blocks int) ([]result.Cell, plan.Rules, plan.Costs) {
	t.Helper()
	s := &study.Study{
		Baseline: "routes", Networks: []string{"routes", "pod"}, Placement: []result.Placement{result.CrossNode},
		Workloads: []study.Workload{{Name: "tcp-rr"}, {Name: "block", Levels: study.Levels{"message": {4 * unit.KiB, 2 * unit.MiB}}}},
		Changes:   []testbed.Change{{Network: "routes"}},
		Design:    study.Design{TimeBudget: budget, Builds: 6, Rounds: 10, Blocks: blocks, Seed: 3},
	}
	rules := plan.RulesOf(s.Design)
	if blocks > 0 {
		rules.MinBuilds = blocks
	}
	cells := plan.Expand(s)
	costs := plan.Costs{Build: 20 * time.Second, Cell: 30 * time.Millisecond, Burst: time.Second, Servers: map[string]plan.Server{}}
	for _, c := range cells {
		if c.Workload == "block" {
			costs.Servers[c.ID] = plan.Server{Key: "ceph", Takes: 20 * time.Second}
		}
	}
	fitted, err := plan.Fit(cells, costs, rules)
	if err != nil {
		t.Fatal(err)
	}
	return fitted.Cells, rules, costs
}

// visits is a run across states in virtual time: what the parts of a visit really take.
type visits struct {
	change, found, server time.Duration // found: the cluster as it was found
	burst, tcp            time.Duration // tcp: of tcp-rr, where it differs
	known                 func(cell string, visits int) bool
	loses                 string // a cell that is given up after its first visit

	now    time.Duration
	builds map[string]int // by cell
}

func (v *visits) run(t *testing.T, s *plan.Scheduler) (end plan.Step) {
	t.Helper()
	v.builds = map[string]int{}
	for range 100_000 {
		switch step := s.Next(v.now); step.Kind {
		case plan.StepBuild:
			if plan.States(step.Cells)[0] == "as found" {
				v.now += v.found
			} else {
				v.now += v.change
			}
			if slices.ContainsFunc(step.Cells, func(c result.Cell) bool { return c.Workload == "block" }) {
				v.now += v.server
			}
			s.Built(v.now)
		case plan.StepRound:
			var bursts []time.Duration
			for _, c := range step.Cells {
				bursts = append(bursts, v.burst)
				if c.Workload == "tcp-rr" {
					bursts[len(bursts)-1] = max(v.burst, v.tcp)
				}
				v.now += bursts[len(bursts)-1]
			}
			s.Measured(v.now, bursts)
		case plan.StepCollect:
			for _, c := range step.Cells {
				v.builds[c.ID]++
				s.Resolve(map[string]bool{c.ID: v.known != nil && v.known(c.ID, v.builds[c.ID])})
				if c.ID == v.loses {
					s.Drop(c.ID)
				}
			}
			s.Collected(v.now)
		case plan.StepEnd:
			return step
		}
	}
	t.Fatal("the run does not end")
	return end
}

// measured is how many settings have so many visits in each of their cells, and no cell any other number but none.
func (v *visits) measured(t *testing.T, cells []result.Cell, each int) (settings int) {
	t.Helper()
	for _, c := range cells {
		switch n := v.builds[c.ID]; {
		case n != 0 && n != each:
			t.Errorf("%s has %d visits, want %d", c.ID, n, each)
		case n == each && c.Role == result.RoleBaseline:
			settings++
		}
	}
	return settings
}

// Settings that the budget does not hold as guessed come in after the first block where visits turn out to be shorter, have as many visits as
// the others, and the run says so.
func TestSettingsComeInWhereVisitsAreShorter(t *testing.T) {
	const blocks = 5
	for name, c := range map[string]struct {
		visits
		budget   time.Duration
		settings int
	}{
		"three times shorter": {visits{change: 7 * time.Second, found: 5 * time.Second, server: 8 * time.Second, burst: 300 * time.Millisecond}, 14 * time.Minute, 3},
		"as guessed":          {visits{change: 20 * time.Second, found: 20 * time.Second, server: 20 * time.Second, burst: time.Second}, 14 * time.Minute, 1},
		// The first visits say nothing of the store; those with it do, and what came in goes again.
		"but the store": {visits{change: 7 * time.Second, found: 5 * time.Second, server: time.Minute, burst: 300 * time.Millisecond}, 14 * time.Minute, 1},
	} {
		t.Run(name, func(t *testing.T) {
			cells, rules, costs := stores(t, c.budget, blocks)
			if n := len(result.Settings(plan.Measured(cells))); n != 1 {
				t.Fatalf("%d settings are held as guessed", n)
			}
			s := plan.NewScheduler(cells, rules, costs)
			s.Later(plan.Waiting(cells))
			end := c.run(t, s)
			shed := s.Shed()
			marked := shed.Mark(cells)
			kept := slices.DeleteFunc(slices.Clone(marked), func(c result.Cell) bool { return c.Skipped != "" })
			if n := c.measured(t, kept, blocks); n != c.settings || len(result.Settings(kept)) != n || end.Ended != plan.EndedBuilds || c.now > c.budget {
				t.Errorf("%d settings have %d visits to each state, %d are kept: ended by %s after %v", n, blocks, len(result.Settings(kept)), end.Ended, c.now)
			}
			notes := strings.Join(shed.Explain([]string{"the time budget of 14m holds 1 of 3 workload settings, each on all 2 networks"}), "\n")
			in := len(shed.In) > 0
			if in != strings.Contains(notes, "measured from build 4 on") || in == strings.Contains(notes, "holds 1 of 3") || (len(shed.Cells) > 0) != (in && c.settings == 1) {
				t.Errorf("came in: %v, left out: %v\n%s", shed.In, shed.Cells, notes)
			}
			if len(shed.Cells) > 0 {
				namesMore(t, shed.Note, c.budget)
			}
		})
	}
}

// A run that ends before its time is over, since all is known or lost, measures what it had left out before it ends.
func TestNothingIsLeftOutByARunThatEndsEarly(t *testing.T) {
	for name, v := range map[string]*visits{
		"all known": {change: 20 * time.Second, found: 20 * time.Second, server: 20 * time.Second, burst: time.Second, tcp: 5 * time.Second, known: func(string, int) bool { return true }},
		"lost":      {change: 20 * time.Second, found: 20 * time.Second, server: 20 * time.Second, burst: time.Second, loses: "routes/cross-node/tcp-rr"},
	} {
		t.Run(name, func(t *testing.T) {
			cells, rules, costs := stores(t, 1250*time.Second, 0)
			rules.Builds, rules.MinBuilds = 6, 3
			for i, c := range cells { // as if the budget did not hold them by what was guessed
				if c.Workload == "block" {
					cells[i].Skipped = "left out"
				}
			}
			for i := range costs.Servers {
				costs.Servers[i] = plan.Server{Key: "ceph", Takes: 30 * time.Second}
			}
			s := plan.NewScheduler(cells, rules, costs)
			s.Later(plan.Waiting(cells))
			end := v.run(t, s)
			for _, c := range cells {
				if c.Params.Message == 4*unit.KiB && v.builds[c.ID] < 3 {
					t.Errorf("%s has %d visits: ended by %s after %v", c.ID, v.builds[c.ID], end.Ended, v.now)
				}
			}
		})
	}
}

// A run that was killed after settings came in goes on with them.
func TestWhatCameInIsResumed(t *testing.T) {
	cells, rules, costs := stores(t, 10*time.Minute, 5)
	s := plan.NewScheduler(cells, rules, costs)
	s.Later(plan.Waiting(cells))
	s.Resume([]plan.Finished{{Build: 3, Rounds: 10, Cells: []string{"pod/cross-node/tcp-rr", "pod/cross-node/block/4KiB"}}})
	if in := s.Shed().In; !slices.Contains(in, "routes/cross-node/block/4KiB") {
		t.Errorf("came in: %v", in)
	}
}
