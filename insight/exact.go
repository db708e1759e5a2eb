package insight

import (
	"cmp"
	"fmt"
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
		if s.exact == nil {
			return 0, "not counted"
		}
		return count(s.exact), ""
	}}
}

// compare estimates a delta from its builds, and splits its variance.
func (o Options) compare(builds []stats.Build, s stats.Options) stats.Estimate {
	return o.ranged(stats.Compare(builds, s))
}

// locate is compare without the variance.
func (o Options) locate(builds []stats.Build, s stats.Options) stats.Estimate {
	return o.ranged(stats.Locate(builds, s))
}

// ranged gives an estimate of an exact run its range over the seeds.
func (o Options) ranged(e stats.Estimate) stats.Estimate {
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

// around is the range of a center and the locations: it holds the center also where rounding has put it outside of them. What is
// NaN is left out.
func around(center float64, locations []float64) (low, high float64) {
	known := slices.DeleteFunc(append([]float64{center}, locations...), math.IsNaN)
	if len(known) == 0 {
		return math.NaN(), math.NaN()
	}
	return slices.Min(known), slices.Max(known)
}

// beyondNothing is the p value of exact locations: 0 where all lie on one side of no change, else 1.
func beyondNothing(locations []float64) float64 {
	low, high := around(math.NaN(), locations)
	if low > 0 || high < 0 {
		return 0
	}
	return 1
}

// against is the p value of one comparison against the hypothesis that it is at.
func (o Options) against(e stats.Estimate, at float64) float64 {
	if !o.Exact {
		return e.PAgainst(at)
	}
	shifted := slices.Clone(e.Locations)
	for i := range shifted {
		shifted[i] -= at
	}
	return beyondNothing(shifted)
}

// family corrects the p values of comparisons that are judged together. What an exact run counts is not left to chance.
func (o Options) family(p []float64) []float64 {
	if o.Exact {
		return p
	}
	return stats.Holm(p)
}

// between is how far a delta moved from one run to another. For exact runs it is as far as the ranges leave open.
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

// CompareExact holds what a run measured in time against what an exact run counts of the same networks in the same settings. Both
// must be concluded. The error says why they can't be compared.
func CompareExact(native, exact result.Run) (result.ExactComparison, error) {
	switch {
	case exact.Exact == nil:
		return result.ExactComparison{}, fmt.Errorf("run %s counts no instructions: it was not made with --exact", exact.Run)
	case native.Exact != nil:
		return result.ExactComparison{}, fmt.Errorf("run %s counts instructions itself; name the one that measures time first", native.Run)
	}
	b := result.ExactComparison{Run: exact.Run, Exact: *exact.Exact}
	counted := deltasByKey(exact)
	var all []float64
	for _, s := range result.Settings(native.Cells) {
		part := exactSetting(native, s, counted)
		if len(part.Networks) == 0 {
			continue
		}
		if part.Correlation != nil {
			all = append(all, *part.Correlation)
		}
		b.Settings = append(b.Settings, part)
	}
	if len(b.Settings) == 0 {
		return b, fmt.Errorf("the runs %s and %s have no network in the same setting against the same baseline", native.Run, exact.Run)
	}
	if len(all) > 0 {
		b.Correlation = finite(stats.Median(all))
	}
	return b, nil
}

// exactKey finds a delta of another run.
type exactKey struct {
	setting                         result.Setting
	network, path, baseline, metric string
}

func keyOf(d result.Delta, metric string) exactKey {
	s := d.Setting
	s.Params = meant(s.Params)
	return exactKey{s, d.Network, cmp.Or(d.Path, "pod"), d.Baseline, metric}
}

func deltasByKey(run result.Run) map[exactKey]result.Delta {
	all := map[exactKey]result.Delta{}
	for _, d := range run.Deltas {
		all[keyOf(d, d.Metric)] = d
	}
	return all
}

// exactSetting is what both runs say of one setting.
func exactSetting(native result.Run, s result.Setting, counted map[exactKey]result.Delta) result.ExactSetting {
	part := result.ExactSetting{Setting: s}
	var times, instructions []float64
	for _, d := range Headlines(native.Deltas, s) {
		e, found := counted[keyOf(d, d.Metric)]
		if !found || d.Ratio <= 0 || e.Ratio <= 0 {
			continue
		}
		part.Baseline, part.Metric = d.Baseline, d.Metric
		times, instructions = append(times, d.Ratio), append(instructions, e.Ratio)
		part.Networks = append(part.Networks, result.ExactNetwork{
			Network: Name(d.Network, d.Path), Native: d.Ratio, Exact: e.Ratio, NativeVerdict: d.Verdict, ExactVerdict: e.Verdict,
			Request: counted[keyOf(d, metricRequest)].Difference, Response: counted[keyOf(d, metricResponse)].Difference,
		})
	}
	native1, exact1 := stats.Ranks(times), stats.Ranks(instructions)
	for i := range part.Networks {
		part.Networks[i].NativeRank, part.Networks[i].ExactRank = native1[i], exact1[i]
	}
	slices.SortStableFunc(part.Networks, func(a, b result.ExactNetwork) int { return cmp.Compare(a.ExactRank, b.ExactRank) })
	part.Correlation = finite(stats.Spearman(times, instructions))
	return part
}
