package experiment

import (
	"netdelta/insight"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/workload"
)

// Analyse fills in all that follows from the trials: deltas, the null check, checks, advice.
func Analyse(run *result.Run, trials []result.Trial, workloads []workload.Workload) {
	run.Deltas, run.Null, run.Checks = insight.Deltas(run.Cells, trials, options(*run, workloads))
	run.Advice = insight.Advise(*run)
}

func options(run result.Run, workloads []workload.Workload) insight.Options {
	o := insight.Options{Confidence: run.Confidence, Margin: run.Margin, Seed: run.Seed, Headlines: map[string]string{}}
	for _, w := range workloads {
		o.Headlines[w.Name] = w.Headline
	}
	return o
}

// verdicts tells which cells have their verdict. Only headlines count, so the histograms need not be unpacked. The number
// of cells without a verdict is -1 while none can have one.
func verdicts(run result.Run, trials []result.Trial, workloads []workload.Workload) (resolved map[string]bool, unresolved int) {
	light := make([]result.Trial, len(trials))
	for i, t := range trials {
		t.Histogram = ""
		light[i] = t
	}
	deltas, _, _ := insight.Deltas(run.Cells, light, options(run, workloads))
	resolved = map[string]bool{}
	intervals := false
	for _, d := range deltas {
		if !d.Headline {
			continue
		}
		resolved[d.Cell] = d.Verdict != string(stats.Unresolved)
		intervals = intervals || insight.HasInterval(d)
		if !resolved[d.Cell] {
			unresolved++
		}
	}
	if !intervals {
		unresolved = -1
	}
	return resolved, unresolved
}
