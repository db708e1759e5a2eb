package insight

import (
	"netdelta/result"
	"netdelta/workload"
)

// Judge says what the trials of runs come to.
type Judge struct {
	headlines map[string]string        // by workload
	defaults  map[string]result.Params // by workload
}

// NewJudge makes a judge that knows the headlines and the default parameters of these workloads.
func NewJudge(workloads []workload.Workload) Judge {
	j := Judge{headlines: map[string]string{}, defaults: map[string]result.Params{}}
	for _, w := range workloads {
		j.headlines[w.Name], j.defaults[w.Name] = w.Headline, w.Defaults
	}
	return j
}

// Conclude fills in all that follows from a run's trials: deltas, the null check, checks, claims, advice.
func (j Judge) Conclude(run *result.Run, trials []result.Trial) {
	run.Deltas, run.Null, run.Checks = Deltas(run.Cells, trials, j.options(*run))
	run.Effects = Effects(run.Cells, trials, j.options(*run))
	run.Paths = Paths(run.Cells, trials)
	run.Links = Links(run.Cells, trials)
	run.Services = Services(trials)
	run.Splits, run.Replications = Splits(*run, trials), Replications(run.Cells, trials)
	run.Correlations = Correlations(*run)
	run.Claims = Claims(*run, trials, j.defaults, j.options(*run))
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
		Confidence: run.Confidence, Margin: run.Margin, Seed: run.Seed, Sequential: run.Adaptive, Headlines: j.headlines, Exact: run.Exact != nil,
	}
}
