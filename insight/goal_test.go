package insight_test

import (
	"fmt"
	"math"
	"testing"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
)

func TestGoals(t *testing.T) {
	run := runOf(measured("vxlan", "slower", 30, 31, 32), measured("bridge", "slower", 8, 12, 16), hasty("routed", 5), stream(measured("macvlan", "slower", -6, -5, -4)))
	run.Confidence = 0.95
	for goal, want := range map[string]string{
		"vxlan.p50 < +35%": result.GoalPass, "vxlan.p50 < +20%": result.GoalFail, "vxlan.p50 < +31%": result.GoalUnknown,
		"vxlan.p50 > +20%": result.GoalPass, "bridge.p50 < +10%": result.GoalUnknown, "routed.p50 < +90%": result.GoalUnknown,
		"ipip.p50 < +90%": result.GoalUnknown, "vxlan.p50 < +5us": result.GoalFail, "vxlan.p50 < +12us": result.GoalPass,
		"macvlan.throughput > -10%": result.GoalPass, "macvlan.throughput > -2%": result.GoalFail,
		"*.p50 < +20%": result.GoalFail, "*.p50 < +99%": result.GoalUnknown, // routed has no interval
	} {
		run.Goals = []result.Goal{{Goal: goal}}
		words.Goals(&run)
		if g := run.Goals[0]; g.Verdict != want || g.Measured == "" {
			t.Errorf("%s: %s (%s), want %s", goal, g.Verdict, g.Measured, want)
		}
	}
}

// A run goes on with a cell whose headline is resolved while a goal about it can't be told, in whatever metric.
func TestGoalsKeepCellsOpen(t *testing.T) {
	w := usual()
	run := result.Run{Cells: w.cells(), Confidence: 0.95, Margin: 0.02, Adaptive: true}
	deltas, _, _ := insight.Deltas(run.Cells, w.trials(t), insight.Options{Sequential: true})
	at := 100 * (find(t, deltas, "vxlan", "p90").Ratio - 1)
	for goal, want := range map[string]bool{
		fmt.Sprintf("vxlan.p90 < %+.3f%%", at): false, fmt.Sprintf("*.p90 < %+.3f%%", at): false,
		"vxlan.p90 < +900%": true, "vxlan.p90 < +0.001%": true, "ipip.p90 < +5%": true,
	} {
		run.Goals = []result.Goal{{Goal: goal}}
		settled := insight.NewJudge(nil).Settled(run, w.trials(t))
		if settled["vxlan"] != want || !settled["bridge"] || !settled["macvlan"] {
			t.Errorf("with the goal %s settled are %v, want vxlan %v and all others", goal, settled, want)
		}
	}
}

// A goal that the run can't tell is in the summary, and the next command is the one that would tell.
func TestUnknownGoalGoesOn(t *testing.T) {
	run := runOf(measured("vxlan", "slower", 30, 31, 32))
	run.Confidence, run.Ended, run.Goals = 0.95, "budget", []result.Goal{{Goal: "vxlan.p50 < +31%"}}
	words.Goals(&run)
	if got := words.Summary(run)[1]; got != "Every delta is resolved; a goal is unknown." {
		t.Error(got)
	}
	if got := words.Next(run); got != "netdelta run --resume DIR --time-budget 1m" {
		t.Error(got)
	}
}

// The setting that is shown is the one in which a goal is missed, not one of which less is known.
func TestGoalShowsWhereItFails(t *testing.T) {
	vague := measured("vxlan", "unresolved", -30, 25, 90)
	vague.Placement = result.SameNode
	run := runOf(measured("vxlan", "slower", 30, 31, 32), vague)
	run.Goals = []result.Goal{{Goal: "vxlan.p50 < +20%"}}
	if a := insight.Goals(run)[0]; a.Verdict != result.GoalFail || a.Delta.Placement != result.CrossNode {
		t.Errorf("the goal is %s by %+v", a.Verdict, a.Delta)
	}
}

// A goal that just holds in eight settings fails by chance in no more than one run of twenty, and one that is missed by far fails.
func TestGoalsByChance(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	fails, of := 0, 150
	for seed := range of {
		w := usual()
		w.networks, w.logs, w.rounds, w.seed, w.buildSD = names, map[string]float64{}, 4, uint64(1000+seed), 0.01
		for _, n := range names {
			w.logs[n] = math.Log(1.12)
		}
		run := result.Run{Cells: w.cells(), Confidence: 0.95, Margin: 0.02, Goals: []result.Goal{{Goal: "*.p50 <= +12%"}, {Goal: "*.p50 < +5%"}}}
		run.Deltas, run.Null, _ = insight.Deltas(run.Cells, w.trials(t), insight.Options{Confidence: 0.95, Margin: 0.02, HeadlinesOnly: true})
		answers := insight.Goals(run)
		if answers[0].Verdict == result.GoalFail {
			fails++
		}
		if answers[1].Verdict != result.GoalFail {
			t.Errorf("seed %d: 12%% is %s where 5%% is asked for", seed, answers[1].Verdict)
		}
	}
	if share := float64(fails) / float64(of); share > 0.07 { // 0.05 and two standard errors of 150 runs, rounded down
		t.Errorf("a goal that just holds failed in %.1f%% of runs", 100*share)
	}
}
