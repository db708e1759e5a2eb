package plan_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netdelta/experiment/plan"
	"netdelta/internal/property"
	"netdelta/result"
)

// settings makes so many settings of one baseline, its A/A control and so many networks each.
func settings(n, networks int) []result.Cell {
	var cells []result.Cell
	for i := range n {
		p := result.Params{Connections: i + 1}
		add := func(network string, role result.Role) {
			cells = append(cells, result.Cell{
				ID: fmt.Sprintf("%s/%d", network, i), Network: network, Workload: "tcp-rr", Params: p, Role: role,
				Placement: result.SameNode, Path: plan.PathPod,
			})
		}
		add("host", result.RoleBaseline)
		add("host+twin", result.RoleControl)
		for k := range networks {
			add(fmt.Sprintf("net%d", k), result.RoleCell)
		}
	}
	return cells
}

// world is a run in virtual time: what things really cost, and when a delta is resolved.
type world struct {
	setup, perCell, burst, collect time.Duration
	once                           time.Duration            // spent in the first build alone
	renewal                        time.Duration            // spent in every sixth build after that
	noise                          func() float64           // a factor on everything
	dear                           map[string]time.Duration // bursts that cost something else, by cell
	// resolves is after how many builds a cell is resolved; a cell that is not in it never is.
	resolves map[string]int
	ahead    bool // ask for the next build's cells during each build

	now       time.Duration
	longest   time.Duration // the longest round
	measuring time.Duration
	steps     []plan.Step // builds and the end; Rounds is how many were run
	builds    map[string]int
}

func (w *world) spend(d time.Duration) time.Duration {
	if w.noise != nil {
		d = time.Duration(float64(d) * w.noise())
	}
	w.now += d
	return d
}

// run drives the scheduler to its end.
func (w *world) run(t failer, s *plan.Scheduler) plan.Step {
	w.builds = map[string]int{}
	rounds := 0
	for range 1_000_000 {
		step := s.Next(w.now)
		switch step.Kind {
		case plan.StepBuild:
			rounds = 0
			w.spend(w.setup + time.Duration(len(step.Cells))*w.perCell + w.once)
			s.Once(w.once)
			w.once = 0
			if w.renewal > 0 && step.Build%6 == 5 {
				w.once = w.renewal
			}
			s.Renewal(w.once)
			s.Built(w.now)
		case plan.StepRound:
			if step.Round != rounds {
				t.Fatalf("build %d: round %d comes after %d", step.Build, step.Round, rounds)
			}
			rounds++
			bursts := make([]time.Duration, len(step.Cells))
			took := time.Duration(0)
			for i, c := range step.Cells {
				bursts[i] = w.burst
				if d, is := w.dear[c.ID]; is {
					bursts[i] = d
				}
				took += bursts[i]
			}
			took = w.spend(took)
			w.longest, w.measuring = max(w.longest, took), w.measuring+took
			if w.dear == nil {
				bursts = nil
			}
			s.Measured(w.now, bursts)
			if w.ahead && step.Round == 0 {
				s.Ahead()
			}
		case plan.StepCollect:
			w.spend(w.collect)
			resolved := map[string]bool{}
			for _, c := range step.Cells {
				w.builds[c.ID]++
				after, ok := w.resolves[c.ID]
				resolved[c.ID] = ok && w.builds[c.ID] >= after
			}
			s.Resolve(resolved)
			step.Rounds = rounds
			w.steps = append(w.steps, step)
			s.Collected(w.now)
		case plan.StepEnd:
			return step
		}
	}
	t.Fatalf("the run does not end")
	return plan.Step{}
}

type failer interface{ Fatalf(string, ...any) }

func rules(budget time.Duration) plan.Rules {
	return plan.Rules{Budget: budget, Builds: 12, MinBuilds: 6, MinRounds: 10}
}

// Where pods serve six builds, the time that is left after these goes into the sixth when it is too short for new pods.
func TestSchedulerKnowsWhenPodsAreDue(t *testing.T) {
	w := &world{burst: 7 * time.Millisecond, perCell: 10 * time.Millisecond, setup: 2 * time.Second, once: 10 * time.Second, renewal: 10 * time.Second}
	costs := costs()
	costs.Start, costs.Build = 10*time.Second, 2*time.Second
	w.run(t, plan.NewScheduler(settings(1, 3), rules(35*time.Second), costs))
	if len(w.steps) != 6 || w.now < 30*time.Second || w.now > 35*time.Second {
		t.Errorf("%d builds in %s, want 6 that take up most of 35 s", len(w.steps), w.now)
	}
}

func TestSchedulerEndsWhenAllIsKnown(t *testing.T) {
	cells := settings(1, 3)
	w := &world{burst: 7 * time.Millisecond, perCell: 10 * time.Millisecond, resolves: map[string]int{"net0/0": 1, "net1/0": 3, "net2/0": 6}}
	end := w.run(t, plan.NewScheduler(cells, rules(time.Minute), costs()))
	if end.Ended != plan.EndedResolved || len(w.steps) != 6 {
		t.Errorf("ended %q after %d builds", end.Ended, len(w.steps))
	}
	for _, b := range w.steps {
		if b.Rounds != w.steps[0].Rounds || len(b.Cells) != len(cells) {
			t.Errorf("build %d has %d rounds of %d cells, the first %d", b.Build, b.Rounds, len(b.Cells), w.steps[0].Rounds)
		}
	}
	// Twelve builds were planned, six sufficed: about half of the time is used.
	if w.now < 25*time.Second || w.now > 35*time.Second {
		t.Errorf("took %v", w.now)
	}
}

func TestSchedulerGoesOnWithTheUnresolved(t *testing.T) {
	cells := settings(2, 3)
	w := &world{burst: 7 * time.Millisecond, perCell: 10 * time.Millisecond, resolves: map[string]int{
		"net0/0": 1, "net1/0": 1, "net2/0": 1, "net0/1": 1, "net1/1": 9,
	}}
	end := w.run(t, plan.NewScheduler(cells, rules(time.Minute), costs()))
	if end.Ended != plan.EndedBudget {
		t.Errorf("ended %q", end.Ended)
	}
	for i, b := range w.steps {
		var ids []string
		for _, c := range b.Cells {
			ids = append(ids, c.ID)
		}
		want := "[host/1 host+twin/1 net2/1]"
		switch {
		case i < 6:
			want = "[host/0 host+twin/0 net0/0 net1/0 net2/0 host/1 host+twin/1 net0/1 net1/1 net2/1]"
		case i < 9:
			want = "[host/1 host+twin/1 net1/1 net2/1]"
		}
		if got := fmt.Sprint(ids); got != want {
			t.Errorf("build %d has %s, want %s", i, got, want)
		}
	}
	if len(w.steps) <= 12 {
		t.Errorf("smaller builds should be more: have %d", len(w.steps))
	}
}

// A run that was slow to be prepared, or that has a build slower than was planned, measures one round in place of nothing.
func TestSchedulerMeasuresSomething(t *testing.T) {
	for name, w := range map[string]*world{
		"the time is over":  {now: time.Minute, perCell: 100 * time.Millisecond, burst: 7 * time.Millisecond},
		"the build is slow": {setup: 2 * time.Minute, burst: 7 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			r := rules(time.Minute)
			r.Rounds, r.MaxBuilds = 8, 1
			w.resolves = map[string]int{}
			w.run(t, plan.NewScheduler(settings(1, 3), r, costs()))
			if w.measuring == 0 || len(w.steps) != 1 {
				t.Errorf("%d builds, measured for %v", len(w.steps), w.measuring)
			}
		})
	}
}

// TestSchedulerKeepsToTheBudget: whatever things cost and however wrong the estimates are, the budget is never exceeded
// by more than a round, at least 90% of it is used while something is unresolved, and each cell takes part in at least
// the least number of builds, if the budget holds them.
func TestSchedulerKeepsToTheBudget(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		us := func(name string, low, high int) time.Duration {
			return time.Duration(rapid.IntRange(low, high).Draw(t, name)) * time.Microsecond
		}
		seed := rapid.Uint64().Draw(t, "seed")
		draw := 0
		w := &world{
			setup: us("setup", 0, 200_000), perCell: us("cell", 0, 20_000), burst: us("burst", 1000, 20_000), collect: us("collect", 0, 20_000),
			noise: func() float64 { draw++; return 0.9 + 0.2*float64(plan.Order(seed, 0, draw, 101)[0])/100 },
			ahead: rapid.Bool().Draw(t, "ahead"),
		}
		cells := settings(rapid.IntRange(1, 4).Draw(t, "settings"), rapid.IntRange(0, 8).Draw(t, "networks"))
		wrong := rapid.Float64Range(0.5, 2).Draw(t, "wrong")
		estimate := func(d time.Duration) time.Duration { return time.Duration(float64(d) * wrong) }
		c := plan.Costs{Build: estimate(w.setup), Cell: estimate(w.perCell), Burst: estimate(w.burst)}
		build := w.setup + w.collect
		for range cells {
			build += w.perCell + 10*w.burst
		}
		r := rules(build * time.Duration(rapid.IntRange(20, 200).Draw(t, "builds")) / 2)
		w.resolves = map[string]int{}
		s := plan.NewScheduler(cells, r, c)
		end := w.run(t, s)
		if end.Ended != plan.EndedBudget {
			t.Fatalf("nothing is ever resolved, and the run ended %q", end.Ended)
		}
		over := w.now - r.Budget
		if limit := w.longest + w.collect/5; over > limit {
			t.Fatalf("over the budget of %v by %v, with rounds of %v", r.Budget, over, w.longest)
		}
		if used := float64(w.now) / float64(r.Budget); used < 0.9 {
			t.Fatalf("used %.0f%% of %v in %d builds", 100*used, r.Budget, len(w.steps))
		}
		for _, cell := range cells {
			if w.builds[cell.ID] < 6 {
				t.Fatalf("%s took part in %d builds", cell.ID, w.builds[cell.ID])
			}
		}
	})
}

// TestSchedulerInvariants: each build has a baseline and an A/A control for each of its cells, and no cell that is resolved after
// enough builds.
func TestSchedulerInvariants(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		cells := settings(rapid.IntRange(1, 4).Draw(t, "settings"), rapid.IntRange(1, 6).Draw(t, "networks"))
		w := &world{burst: 5 * time.Millisecond, perCell: 5 * time.Millisecond, resolves: map[string]int{}}
		for _, c := range cells {
			if after := rapid.IntRange(0, 15).Draw(t, "after "+c.ID); after > 0 {
				w.resolves[c.ID] = after
			}
		}
		w.run(t, plan.NewScheduler(cells, rules(2*time.Minute), costs()))
		count := map[string]int{}
		for _, b := range w.steps {
			has := map[result.Setting]int{}
			wants := map[result.Setting]int{}
			for _, c := range b.Cells {
				if c.Role != result.RoleCell {
					has[c.Setting()]++
				} else {
					wants[c.Setting()]++
					if after, ok := w.resolves[c.ID]; ok && count[c.ID] >= max(6, after) {
						t.Fatalf("build %d has %s again, which is resolved", b.Build, c.ID)
					}
				}
				count[c.ID]++
			}
			for setting := range wants {
				if has[setting] != 2 {
					t.Fatalf("build %d has cells of %+v and %d baselines", b.Build, setting, has[setting])
				}
			}
			if len(has) != len(wants) {
				t.Fatalf("build %d has baselines without cells", b.Build)
			}
		}
	})
}

func TestSchedulerResumes(t *testing.T) {
	cells := settings(1, 2)
	var ids []string
	for _, c := range cells {
		ids = append(ids, c.ID)
	}
	s := plan.NewScheduler(cells, rules(time.Minute), costs())
	s.Resume([]plan.Finished{{Build: 0, Rounds: 40, Cells: ids}, {Build: 1, Rounds: 40, Cells: ids}, {Build: 2, Rounds: 40, Cells: ids[:3]}})
	w := &world{now: 10 * time.Second, burst: 7 * time.Millisecond, resolves: map[string]int{"net0/0": 1, "net1/0": 1}}
	end := w.run(t, s)
	if end.Ended != plan.EndedResolved {
		t.Errorf("ended %q", end.Ended)
	}
	// net0 needs three builds more, and net1, which was missing from the third, four.
	if w.builds["net0/0"] != 3 || w.builds["net1/0"] != 4 {
		t.Errorf("net0 had %d builds more, net1 %d", w.builds["net0/0"], w.builds["net1/0"])
	}
	if first := w.steps[0]; first.Build != 3 || first.Rounds != 40 {
		t.Errorf("goes on with build %d of %d rounds", first.Build, first.Rounds)
	}
}

func TestSchedulerDropsWhatFails(t *testing.T) {
	cells := settings(2, 2)
	s := plan.NewScheduler(cells, rules(time.Minute), costs())
	s.Next(0)
	s.Built(time.Second)
	s.Drop("net1/0")
	if n := len(s.Next(time.Second).Cells); n != 7 {
		t.Errorf("the round goes on with %d cells", n)
	}
	s.Drop("host/1") // the baseline: all of its setting go
	if n := len(s.Next(time.Second).Cells); n != 3 {
		t.Errorf("the round goes on with %d cells", n)
	}
	s.Drop("host/0")
	if step := s.Next(time.Second); step.Kind != plan.StepCollect {
		t.Errorf("a round of nothing: %+v", step)
	}
	s.Collected(time.Second)
	if step := s.Next(time.Second); step.Kind != plan.StepEnd || step.Ended != plan.EndedFailed {
		t.Errorf("want the end, failed, have %+v", step)
	}
}

func TestSchedulerTellsTheNextBuildAhead(t *testing.T) {
	cells := settings(1, 2)
	s := plan.NewScheduler(cells, rules(time.Minute), costs())
	now := time.Duration(0)
	for build := range 7 {
		s.Next(now)
		s.Built(now)
		if build == 5 {
			s.Resolve(map[string]bool{"net0/0": true})
		}
		ahead, ok := s.Ahead()
		if want := map[bool]int{true: 3, false: 4}[build >= 5]; !ok || len(ahead) != want {
			t.Errorf("build %d: the next is foreseen with %d cells, %v", build, len(ahead), ok)
		}
		for s.Next(now).Kind == plan.StepRound {
			now += 40 * time.Millisecond
			s.Measured(now, nil)
		}
		s.Collected(now)
		if step := s.Next(now); len(step.Cells) != len(ahead) {
			t.Errorf("build %d has %d cells, and %d were foreseen", build+1, len(step.Cells), len(ahead))
		}
	}
}

func TestSchedulerNumberOfBuildsGiven(t *testing.T) {
	for _, n := range []int{1, 4, 8} {
		r := rules(time.Minute)
		r.Builds, r.MinBuilds, r.MaxBuilds = n, min(6, n), n
		w := &world{burst: 7 * time.Millisecond, resolves: map[string]int{}}
		if end := w.run(t, plan.NewScheduler(settings(1, 1), r, costs())); end.Ended != plan.EndedBuilds || len(w.steps) != n {
			t.Errorf("%d blocks: ended %q after %d", n, end.Ended, len(w.steps))
		}
	}
	r := rules(time.Minute)
	r.Rounds, r.MinRounds = 25, 25
	w := &world{burst: 7 * time.Millisecond, resolves: map[string]int{}}
	w.run(t, plan.NewScheduler(settings(1, 1), r, costs()))
	for _, b := range w.steps {
		if b.Rounds != 25 {
			t.Errorf("build %d has %d rounds, want 25", b.Build, b.Rounds)
		}
	}
}

// TestSchedulerNullCheckAlone: a run of the baseline alone is about the A/A control.
func TestSchedulerNullCheckAlone(t *testing.T) {
	w := &world{burst: 7 * time.Millisecond, resolves: map[string]int{"host+twin/0": 8}}
	end := w.run(t, plan.NewScheduler(settings(1, 0), rules(time.Minute), costs()))
	if end.Ended != plan.EndedResolved || len(w.steps) != 8 {
		t.Errorf("ended %q after %d builds", end.Ended, len(w.steps))
	}
}

// TestSchedulerLearns: the rounds of the first build rest on what rounds cost, not on the estimate.
func TestSchedulerLearns(t *testing.T) {
	for _, factor := range []float64{0.2, 1, 5} {
		c := costs()
		c.Burst = time.Duration(float64(c.Burst) * factor)
		w := &world{burst: 7 * time.Millisecond, setup: 50 * time.Millisecond, perCell: 10 * time.Millisecond, resolves: map[string]int{}}
		w.run(t, plan.NewScheduler(settings(1, 3), rules(time.Minute), c))
		if n := len(w.steps); n < 10 || n > 14 {
			t.Errorf("estimates off by %g: %d builds, planned were 12", factor, n)
		}
	}
	// Also where so few rounds were planned that the first build is nearly over by then.
	few := rules(time.Minute)
	few.MinRounds = 2
	w := &world{burst: 40 * time.Millisecond, resolves: map[string]int{}}
	w.run(t, plan.NewScheduler(settings(1, 3), few, plan.Costs{Burst: 400 * time.Millisecond}))
	if n := len(w.steps); n < 10 || n > 14 {
		t.Errorf("builds of two rounds that take a tenth of what was guessed: %d builds, planned were 12", n)
	}
}

// TestSchedulerKeepsTheLeastBuilds: when everything becomes dearer after the first build, the others have fewer rounds, and
// there are still six of them.
func TestSchedulerKeepsTheLeastBuilds(t *testing.T) {
	w := &world{burst: 7 * time.Millisecond, resolves: map[string]int{}}
	first := true
	w.noise = func() float64 {
		if len(w.steps) == 0 {
			return 1
		}
		first = false
		return 4
	}
	w.run(t, plan.NewScheduler(settings(1, 3), rules(30*time.Second), costs()))
	if first || len(w.steps) < 6 {
		t.Errorf("%d builds", len(w.steps))
	}
	if last := w.steps[len(w.steps)-1]; last.Rounds >= w.steps[0].Rounds {
		t.Errorf("%d rounds at first, and %d when they are four times as dear", w.steps[0].Rounds, last.Rounds)
	}
}

// TestSchedulerLearnsTheSetUp: a set-up that takes ten times what was thought must not push builds over the budget.
func TestSchedulerLearnsTheSetUp(t *testing.T) {
	c := plan.Costs{Build: 50 * time.Millisecond, Cell: 10 * time.Millisecond, Burst: time.Millisecond}
	for budget := 15 * time.Second; budget < 25*time.Second; budget += 250 * time.Millisecond {
		w := &world{burst: time.Millisecond, setup: 500 * time.Millisecond, perCell: 100 * time.Millisecond, resolves: map[string]int{}}
		w.run(t, plan.NewScheduler(settings(1, 3), rules(budget), c))
		if w.now > budget+w.longest {
			t.Errorf("budget %v: took %v", budget, w.now)
		}
		for _, b := range w.steps {
			if b.Rounds < 10 {
				t.Errorf("budget %v: build %d was begun though only %d rounds were left for it", budget, b.Build, b.Rounds)
			}
		}
	}
}

// TestSchedulerMeasuresMoreThanItSetsUp: where set-ups are dear, later builds have more rounds, so that at least half of the
// time goes into measuring.
func TestSchedulerMeasuresMoreThanItSetsUp(t *testing.T) {
	w := &world{burst: time.Millisecond, setup: time.Second, resolves: map[string]int{}}
	r := rules(2 * time.Minute)
	r.Builds = 100 // many short ones
	w.run(t, plan.NewScheduler(settings(1, 3), r, plan.Costs{Build: time.Second, Burst: time.Millisecond}))
	for _, b := range w.steps[6 : len(w.steps)-1] {
		if measured := time.Duration(b.Rounds*len(b.Cells)) * time.Millisecond; measured < time.Second {
			t.Errorf("build %d measures for %v after a set-up of 1s", b.Build, measured)
		}
	}
}
