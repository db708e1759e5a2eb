package insight_test

import (
	"math"
	"testing"

	"netdelta/insight"
	"netdelta/result"
)

// stepped multiplies the latencies of a cell's trial from a round on.
func stepped(trials []result.Trial, cell string, build, round int, by float64) {
	for _, t := range trials {
		if t.Cell != cell || t.Build != build {
			continue
		}
		for i, r := range t.Bursts.Round {
			if r >= round {
				t.Bursts.P50[i] *= by
			}
		}
	}
}

// A step in one trial is named with its round and size, and no other trial is; a step of the baseline is said once, of it.
func TestStepIsNamed(t *testing.T) {
	w := usual()
	for name, test := range map[string]struct {
		cell     string
		by       float64
		trial    string
		baseline bool
	}{
		"none": {"", 1, "", false}, "network, 5 times": {"vxlan", 5, "vxlan#3", false}, "network, a tenth less": {"macvlan", 0.9, "macvlan#3", false},
		"baseline": {"host", 2, "host-twin#3", true}, "control": {"host-twin", 0.5, "host-twin#3", true},
	} {
		t.Run(name, func(t *testing.T) {
			trials := w.trials(t)
			stepped(trials, test.cell, 3, 25, test.by)
			_, _, checks := insight.Deltas(w.cells(), trials, insight.Options{})
			var steps []insight.Check
			for _, c := range checks {
				if c.Name == insight.CheckStep {
					steps = append(steps, c)
				}
			}
			if test.trial == "" {
				if len(steps) > 0 {
					t.Errorf("found %+v", steps[0].Step)
				}
				return
			}
			if len(steps) != 1 || steps[0].Trial != test.trial {
				t.Fatalf("found %d steps: %+v", len(steps), steps)
			}
			s := steps[0].Step
			ratio := test.by
			if test.cell == "host" { // the control is held against it
				ratio = 1 / ratio
			}
			if s.Baseline != test.baseline || math.Abs(float64(s.Before-25)) > 1 || s.After != s.Before-1 || math.Abs(math.Log(s.Ratio/ratio)) > 0.05 || s.Metric != "p50" {
				t.Errorf("got %+v, want a step to %g at round 25", s, ratio)
			}
		})
	}
}
