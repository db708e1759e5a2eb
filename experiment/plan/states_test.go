package plan_test

import (
	"errors"
	"fmt"
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

// inParts is a study of three states of a cluster: as it was found (pod, clusterip), and changed in two ways.
func inParts() ([]result.Cell, plan.Rules, plan.Costs) {
	s := &study.Study{
		Baseline: "host", Networks: []string{"host", "pod", "clusterip", "vxlan", "gw"},
		Placement: []result.Placement{result.SameNode, result.CrossNode}, Workloads: []study.Workload{{Name: "tcp-rr"}},
		Changes: []testbed.Change{{Network: "vxlan", Kept: true}, {Network: "gw"}},
		Design:  study.Design{TimeBudget: 10 * time.Minute, Builds: 8, Seed: 3},
	}
	rules := plan.RulesOf(s.Design)
	return plan.Expand(s), rules, plan.Costs{Build: 2 * time.Second, Cell: 10 * time.Millisecond, Burst: 5 * time.Millisecond}
}

// ofPart is the part that a build's cells are of.
func ofPart(t *testing.T, cells []result.Cell) string {
	t.Helper()
	var networks []string
	roles := map[result.Role]int{}
	for _, c := range cells {
		roles[c.Role]++
		if c.Role == result.RoleCell && !slices.Contains(networks, c.Network) {
			networks = append(networks, c.Network)
		}
	}
	if roles[result.RoleBaseline] != 2 || roles[result.RoleControl] != 2 {
		t.Errorf("a build has the roles %v, and wants each placement's baseline and A/A control", roles)
	}
	return strings.Join(networks, "+")
}

// played are the parts of the builds of a run.
func played(t *testing.T, s *plan.Scheduler, built func(build int, cells []result.Cell)) (parts []string, rounds []int, end plan.Step, now time.Duration) {
	t.Helper()
	var done int
	for range 1_000_000 {
		switch step := s.Next(now); step.Kind {
		case plan.StepBuild:
			parts = append(parts, ofPart(t, step.Cells))
			done, now = 0, now+2*time.Second
			s.Built(now)
			if _, ok := s.Ahead(); ok {
				t.Error("a build is set up ahead of its turn")
			}
		case plan.StepRound:
			done, now = done+1, now+time.Duration(len(step.Cells))*5*time.Millisecond
			s.Measured(now, nil)
		case plan.StepCollect:
			rounds = append(rounds, done)
			if built != nil {
				built(step.Build, step.Cells)
			}
			s.Collected(now)
		case plan.StepEnd:
			return parts, rounds, step, now
		}
	}
	t.Fatal("the run does not end")
	return nil, nil, plan.Step{}, 0
}

// Each part has its turn before one has its next, in orders that differ; each has the least number of builds, and the same rounds.
func TestPartsTakeTurns(t *testing.T) {
	cells, rules, costs := inParts()
	parts, rounds, end, now := played(t, plan.NewScheduler(cells, rules, costs), nil)
	if end.Ended != plan.EndedBudget || now > rules.Budget || now < rules.Budget-10*time.Second {
		t.Errorf("ended by %s after %v", end.Ended, now)
	}
	orders := map[string]bool{}
	for i := 0; i+3 <= len(parts); i += 3 {
		block := slices.Clone(parts[i : i+3])
		orders[fmt.Sprint(block)] = true
		if slices.Sort(block); !slices.Equal(block, []string{"gw", "pod+clusterip", "vxlan"}) {
			t.Errorf("builds %d to %d have %v", i, i+2, block)
		}
	}
	if len(parts) < 24 || len(orders) < 3 {
		t.Errorf("%d builds in %d orders", len(parts), len(orders))
	}
	if first := rounds[:3*plan.MinBuilds]; slices.Max(first) > slices.Min(first)+1 {
		t.Errorf("builds have %v rounds", first)
	}
}

func TestPartsEndWhenKnown(t *testing.T) {
	cells, rules, costs := inParts()
	s := plan.NewScheduler(cells, rules, costs)
	known := map[string]int{"vxlan": 0, "pod+clusterip": 0}
	parts, _, end, _ := played(t, s, func(_ int, cells []result.Cell) {
		// All but gw is known after six builds, and gw after nine.
		part := ofPart(t, cells)
		if known[part]++; known[part] >= 6 && part != "gw" || known[part] >= 9 {
			for _, c := range cells {
				s.Resolve(map[string]bool{c.ID: true})
			}
		}
	})
	if end.Ended != plan.EndedResolved || len(parts) != 6+6+9 {
		t.Errorf("%s after %v", end.Ended, parts)
	}
	if last := parts[18:]; !slices.Equal(last, []string{"gw", "gw", "gw"}) {
		t.Errorf("the last builds are %v", last)
	}
}

func TestPartsEndByNumber(t *testing.T) {
	cells, rules, costs := inParts()
	rules.Builds, rules.MinBuilds, rules.MaxBuilds, rules.Rounds = 2, 2, 2, 5
	s := plan.NewScheduler(cells, rules, costs)
	parts, _, end, _ := played(t, s, nil)
	if end.Ended != plan.EndedBuilds || len(parts) != 6 {
		t.Errorf("%s after %v", end.Ended, parts)
	}
	// One that is given up gives the others no more builds than were asked for.
	s = plan.NewScheduler(cells, rules, costs)
	parts, _, end, _ = played(t, s, func(_ int, cells []result.Cell) {
		if ofPart(t, cells) == "vxlan" {
			for _, c := range cells {
				if c.Role == result.RoleCell {
					s.Drop(c.ID)
				}
			}
		}
	})
	if end.Ended != plan.EndedBuilds || len(parts) != 5 {
		t.Errorf("%s after %v", end.Ended, parts)
	}
}

// A resumed run goes on with the parts that were not measured yet.
func TestPartsAreResumed(t *testing.T) {
	cells, rules, costs := inParts()
	var finished []plan.Finished
	whole, _, _, _ := played(t, plan.NewScheduler(cells, rules, costs), func(build int, cells []result.Cell) {
		if build < 7 {
			f := plan.Finished{Build: build, Rounds: 10}
			for _, c := range cells {
				f.Cells = append(f.Cells, c.ID)
			}
			finished = append(finished, f)
		}
	})
	s := plan.NewScheduler(cells, rules, costs)
	s.Resume(finished)
	rest, _, _, _ := played(t, s, nil)
	if !slices.Equal(rest[:2], whole[7:9]) {
		t.Errorf("after %v a resumed run has %v", whole[:7], rest[:2])
	}
}

// The budget is held against what the parts take together, each with the baseline.
func TestPartsFit(t *testing.T) {
	cells, rules, costs := inParts()
	rules.Budget = 30 * time.Second
	_, err := plan.Fit(cells, costs, rules)
	var least *plan.BudgetError
	if !errors.As(err, &least) || least.Least < 6*3*2*time.Second {
		t.Errorf("in 30 s: %v", err)
	}
	rules.Budget = 2 * time.Minute
	if f, err := plan.Fit(cells, costs, rules); err != nil || len(plan.Measured(f.Cells)) != len(cells) {
		t.Errorf("in 2 minutes: %v, %v", f.Note, err)
	}
}

// acrossStates is a study whose baseline is one state of a cluster; the nodes' own network stands in each.
func acrossStates(blocks int) ([]result.Cell, plan.Rules, plan.Costs) {
	s := &study.Study{
		Baseline: "gw", Networks: []string{"gw", "pod", "clusterip", "vxlan", "host"},
		Placement: []result.Placement{result.CrossNode}, Workloads: []study.Workload{{Name: "tcp-rr"}},
		Changes: []testbed.Change{{Network: "vxlan", Kept: true}, {Network: "gw"}},
		Design:  study.Design{TimeBudget: 10 * time.Minute, Builds: 8, Rounds: 5, Blocks: blocks, Seed: 3},
	}
	return plan.Expand(s), plan.RulesOf(s.Design), plan.Costs{Build: 2 * time.Second, Cell: 10 * time.Millisecond, Burst: 5 * time.Millisecond}
}

// Each block visits every state once, and the baseline's twice: in its own name, and as its A/A control. The nodes' network stands in each.
func TestBlocksOfStates(t *testing.T) {
	cells, rules, costs := acrossStates(4)
	if want := []string{"gw", "gw+twin", "as found", "vxlan"}; !slices.Equal(plan.States(cells), want) {
		t.Errorf("the states are %q, want %q", plan.States(cells), want)
	}
	for name, settle := range map[string]bool{"not known": false, "known after the third visit": true} {
		s := plan.NewScheduler(cells, rules, costs)
		visits, ids := visited(t, s, func(visit int, cells []result.Cell) {
			for _, c := range cells {
				s.Resolve(map[string]bool{c.ID: settle && visit >= 2})
			}
		})
		for i := 0; i < len(visits); i += 4 {
			block := slices.Sorted(slices.Values(visits[i:min(i+4, len(visits))]))
			if !slices.Equal(block, []string{"as found", "gw", "gw+twin", "vxlan"}) {
				t.Errorf("%s: block %d visits %q", name, i/4, block)
			}
		}
		if len(visits) != 16 {
			t.Errorf("%s: %d visits", name, len(visits))
		}
		for state, want := range map[string]string{
			"gw": "gw host", "gw+twin": "gw+twin host@gw+twin", "as found": "pod clusterip host@as-found", "vxlan": "vxlan host@vxlan",
		} {
			if ids[state] != want {
				t.Errorf("%s: %s has %s, want %s", name, state, ids[state], want)
			}
		}
	}
}

// visited are the states of a run's builds, and the cells of each.
func visited(t *testing.T, s *plan.Scheduler, built func(visit int, cells []result.Cell)) (visits []string, ids map[string]string) {
	t.Helper()
	ids = map[string]string{}
	var now time.Duration
	count := map[string]int{}
	for range 100_000 {
		switch step := s.Next(now); step.Kind {
		case plan.StepBuild:
			state := plan.States(step.Cells)
			if len(state) != 1 {
				t.Fatalf("a build is of the states %q", state)
			}
			var names []string
			for _, c := range step.Cells {
				name, _, _ := strings.Cut(c.ID, "/")
				names = append(names, name)
			}
			visits, ids[state[0]] = append(visits, state[0]), strings.Join(names, " ")
			now += 2 * time.Second
			s.Built(now)
		case plan.StepRound:
			now += 20 * time.Millisecond
			s.Measured(now, nil)
		case plan.StepCollect:
			state := visits[len(visits)-1]
			built(count[state], step.Cells)
			count[state]++
			s.Collected(now)
		case plan.StepEnd:
			return visits, ids
		}
	}
	t.Fatal("the run does not end")
	return nil, nil
}

// Levels that are changes have states of their own, in which a baseline of host stands together with the networks.
func TestStatesOfLevels(t *testing.T) {
	s := &study.Study{
		Baseline: "host", Networks: []string{"host", "pod"}, Placement: []result.Placement{result.CrossNode}, Workloads: []study.Workload{{Name: "tcp-rr"}},
		Factors: study.Levels{"mtu": {unit.Bytes(1500), unit.Bytes(9000)}}, Changes: []testbed.Change{{Network: "mtu=9000"}},
		Design: study.Design{TimeBudget: 10 * time.Minute, Builds: 8, Rounds: 5, Blocks: 2, Seed: 3},
	}
	_, ids := visited(t, plan.NewScheduler(plan.Expand(s), plan.RulesOf(s.Design), plan.Costs{Build: time.Second}), func(int, []result.Cell) {})
	if len(ids) != 2 || ids["as found"] != "host host+twin pod" || ids["mtu=9000"] != ids["as found"] {
		t.Errorf("the states have %q", ids)
	}
	s.Baseline, s.Networks = "pod", []string{"pod"}
	_, ids = visited(t, plan.NewScheduler(plan.Expand(s), plan.RulesOf(s.Design), plan.Costs{Build: time.Second}), func(int, []result.Cell) {})
	if len(ids) != 4 || ids["mtu=9000+twin"] != "pod+twin" || ids["as found"] != "pod" {
		t.Errorf("with a baseline of one state, the states have %q", ids)
	}
}
