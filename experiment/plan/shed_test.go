package plan_test

import (
	"strings"
	"testing"
	"time"

	"netdelta/experiment/plan"
)

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
			if w.builds[c.ID] != 1 {
				t.Errorf("%s was left out after %d builds, want the first", c.ID, w.builds[c.ID])
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
	if !strings.Contains(shed.Note, "were left out after 1 build,") || !strings.Contains(shed.Why, "time budget of 1m") {
		t.Errorf("it is said: %q, %q", shed.Note, shed.Why)
	}
	for _, c := range shed.Mark(cells) {
		if (c.Skipped != "") != left[c.ID] {
			t.Errorf("%s is marked %q", c.ID, c.Skipped)
		}
	}
	t.Log(shed.Note)
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
