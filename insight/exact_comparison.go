package insight

import (
	"cmp"
	"fmt"
	"slices"

	"netdelta/result"
	"netdelta/stats"
)

// CompareExact holds what a run measured in time against what an exact run counts of the same networks in the same settings. Both
// must be concluded. The error says why they can't be set beside each other.
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
	s := d.Setting()
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
	part := result.ExactSetting{Workload: s.Workload, Params: s.Params, Placement: s.Placement}
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
