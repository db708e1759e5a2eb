package insight

import (
	"netdelta/result"
	"netdelta/workload"
)

// Judge says what the trials of runs come to.
type Judge struct {
	headlines map[string]string // by workload
}

// NewJudge makes a judge that knows the headlines of these workloads.
func NewJudge(workloads []workload.Workload) Judge {
	j := Judge{headlines: map[string]string{}}
	for _, w := range workloads {
		j.headlines[w.Name] = w.Headline
	}
	return j
}

// Conclude fills in all that follows from a run's trials: deltas, the null check, checks, advice.
func (j Judge) Conclude(run *result.Run, trials []result.Trial) {
	run.Deltas, run.Null, run.Checks = Deltas(run.Cells, trials, j.options(*run))
	run.Paths = Paths(run.Cells, trials)
	run.Advice = Advise(*run)
}

// Settled tells which cells of a run that is under way need no further builds. Only headlines count, so the histograms need
// not be unpacked.
func (j Judge) Settled(run result.Run, trials []result.Trial) map[string]bool {
	light := make([]result.Trial, len(trials))
	for i, t := range trials {
		t.Histogram = ""
		light[i] = t
	}
	return Settled(run.Cells, light, j.options(run))
}

func (j Judge) options(run result.Run) Options {
	return Options{
		Confidence: run.Confidence, Margin: run.Margin, Seed: run.Seed, Sequential: run.Adaptive, Headlines: j.headlines,
	}
}
