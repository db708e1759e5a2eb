package experiment

import (
	"netdelta/insight"
	"netdelta/result"
	"netdelta/workload"
)

// Analyse fills in all that follows from the trials: deltas, the null check, checks, advice.
func Analyse(run *result.Run, trials []result.Trial, workloads []workload.Workload) {
	run.Deltas, run.Null, run.Checks = insight.Deltas(run.Cells, trials, options(*run, workloads))
	run.Advice = insight.Advise(*run)
}

func options(run result.Run, workloads []workload.Workload) insight.Options {
	o := insight.Options{
		Confidence: run.Confidence, Margin: run.Margin, Seed: run.Seed, Sequential: run.Adaptive, Headlines: map[string]string{},
	}
	for _, w := range workloads {
		o.Headlines[w.Name] = w.Headline
	}
	return o
}

// settled tells which cells need no further builds. Only headlines count, so the histograms need not be unpacked. open is the
// number of cells that do need more.
func settled(run result.Run, trials []result.Trial, workloads []workload.Workload) (known map[string]bool, open int) {
	light := make([]result.Trial, len(trials))
	for i, t := range trials {
		t.Histogram = ""
		light[i] = t
	}
	known = insight.Settled(run.Cells, light, options(run, workloads))
	for _, k := range known {
		if !k {
			open++
		}
	}
	return known, open
}
