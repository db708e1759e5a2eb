package insight_test

import (
	"math"
	"testing"

	"netdelta/insight"
	"netdelta/result"
	"netdelta/workload/catalogue"
)

// concluded is a world as a run of a strategy, in which the A/A control is a fifth faster than the baseline.
func concluded(t *testing.T, strategy string) (result.Run, insight.Findings) {
	t.Helper()
	w := usual()
	w.logs["vxlan"] = math.Log(4)
	trials := w.trials(t)
	for _, own := range trials {
		if own.Role == result.RoleControl {
			for i := range own.Bursts.P50 {
				own.Bursts.P50[i] *= 0.8
			}
		}
	}
	run := result.Run{Cells: w.cells(), Confidence: 0.95, Margin: 0.02}
	if strategy != "" {
		run.Strategy = &result.Strategy{Name: strategy}
	}
	found := insight.NewJudge(catalogue.Workloads()).Conclude(&run, insight.Summarize(result.List(trials)))
	return run, found
}

// A null check that fails is a finding of every run; in a fleet it leaves no delta that is called different, however large.
func TestFailedNullCheck(t *testing.T) {
	for strategy, verdict := range map[string]string{"": "slower", result.StrategyFleet: "unresolved"} {
		run, found := concluded(t, strategy)
		var nulls []insight.Check
		for _, c := range found.Checks {
			if c.Name == insight.CheckNull {
				nulls = append(nulls, c)
			}
		}
		if len(nulls) != 1 || nulls[0].Trial != "host-twin" || nulls[0].Null.Metric != "p50" || nulls[0].Strict != (strategy != "") {
			t.Errorf("strategy %q: found %+v", strategy, nulls)
		}
		for _, d := range run.Deltas {
			if d.Headline && d.Network == "vxlan" && d.Verdict != verdict {
				t.Errorf("strategy %q: four times the baseline is %s", strategy, d.Verdict)
			}
		}
		for _, c := range run.Contrasts {
			if strategy == result.StrategyFleet && c.Cheaper != "" {
				t.Errorf("a fleet ranks %s above another", c.Cheaper)
			}
		}
	}
}

// A null check that holds is none.
func TestNullCheckHolds(t *testing.T) {
	w := usual()
	run := result.Run{Cells: w.cells(), Confidence: 0.95, Margin: 0.02, Strategy: &result.Strategy{Name: result.StrategyFleet}}
	found := insight.NewJudge(catalogue.Workloads()).Conclude(&run, insight.Summarize(result.List(w.trials(t))))
	for _, c := range found.Checks {
		if c.Name == insight.CheckNull {
			t.Errorf("found %+v", c.Null)
		}
	}
	for _, d := range run.Deltas {
		if d.Headline && d.Network == "vxlan" && d.Verdict != "slower" {
			t.Errorf("vxlan is %s", d.Verdict)
		}
	}
}
