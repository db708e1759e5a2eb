package insight

import (
	"math"
	"slices"

	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/stats"
)

// Exact runs are judged by the same questions as all others, with other answers to what uncertainty is. A guest gives the same
// count of instructions however often it is asked, so its builds are no sample of anything random but as many places for the
// kernel's code and data: the interval is the range over the seeds, and there is no chance to correct for. What lies beyond
// the range is real, whatever its size.

// Metrics of exact runs alone.
const (
	metricRequest  = "request"
	metricResponse = "response"
)

// exactBuilds is how many seeds a range takes.
const exactBuilds = 3

// exactMetrics are the instructions of either direction.
func exactMetrics() []metric {
	return []metric{
		instructions(metricRequest, func(e *result.ExactTrial) float64 { return e.Request }),
		instructions(metricResponse, func(e *result.ExactTrial) float64 { return e.Response }),
	}
}

func instructions(name string, count func(*result.ExactTrial) float64) metric {
	return metric{name: name, unit: "instructions", better: string(stats.LowerBetter), trial: func(s *summary) (float64, string) {
		if s.trial.Exact == nil {
			return 0, "not counted"
		}
		return count(s.trial.Exact), ""
	}}
}

// counts says whether a trial counted instructions.
func counts(t *result.Trial) bool { return t.Exact != nil }

// compare estimates a delta from its builds.
func (o Options) compare(builds []stats.Build, s stats.Options) stats.Estimate {
	e := stats.Compare(builds, s)
	if !o.Exact || e.Builds == 0 {
		return e
	}
	e.Need, e.Warnings = exactBuilds, nil
	e.Low, e.High, e.HasInterval = math.NaN(), math.NaN(), e.Builds >= exactBuilds
	e.P = 1
	if e.HasInterval {
		e.Low, e.High = around(e.Center, e.Locations)
		e.P = beyondNothing(e.Locations)
	}
	return e
}

// around is the range of the locations, which holds their center also where rounding has put it beside them.
func around(center float64, locations []float64) (low, high float64) {
	low, high = center, center
	for _, x := range locations {
		if !math.IsNaN(x) {
			low, high = min(low, x), max(high, x)
		}
	}
	return low, high
}

// beyondNothing is the p value of exact locations: 0 where all lie on one side of no change, else 1.
func beyondNothing(locations []float64) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, x := range locations {
		if !math.IsNaN(x) {
			low, high = min(low, x), max(high, x)
		}
	}
	if low <= high && (low > 0 || high < 0) {
		return 0
	}
	return 1
}

// alone is the p value of one comparison.
func (o Options) alone(locations []float64) float64 {
	if o.Exact {
		return beyondNothing(locations)
	}
	return stats.SignFlip(locations, o.Seed)
}

// family are the p values of comparisons that are judged together.
func (o Options) family(rows [][]float64) []float64 {
	if !o.Exact {
		return stats.StepDown(rows, o.Seed)
	}
	all := make([]float64, len(rows))
	for i, row := range rows {
		all[i] = beyondNothing(row)
	}
	return all
}

// between is how far a delta moved from one run to another. That of exact runs is as far as the ranges leave open.
func (o Options) between(before, after stats.Estimate, s stats.Options) stats.Change {
	c := stats.Between(before, after, s)
	if !o.Exact {
		return c
	}
	c.Need, c.Warnings, c.Low, c.High, c.P = exactBuilds, nil, math.NaN(), math.NaN(), 1
	c.HasInterval = before.HasInterval && after.HasInterval
	if !c.HasInterval {
		return c
	}
	c.Low, c.High = min(c.Center, after.Low-before.High), max(c.Center, after.High-before.Low)
	if margin := math.Log1p(s.Margin); c.Low > margin || c.High < -margin {
		c.P = 0
	}
	return c
}

// ofTime says whether a claim speaks of microseconds or processor time while the run's clock counts instructions.
func (o Options) ofTime(clauses []study.Clause) bool {
	return o.Exact && slices.ContainsFunc(clauses, func(c study.Clause) bool { return c.InTime() || c.Metric == metricCPU })
}
