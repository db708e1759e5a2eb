package insight

import (
	"cmp"
	"fmt"
	"slices"

	"netdelta/result"
	"netdelta/stats"
)

// SetBeside holds what a run measured in time against what an exact run counts of the same networks in the same settings. Both
// must be concluded. The error says why they can't be set beside each other.
func SetBeside(native, exact result.Run) (result.Beside, error) {
	switch {
	case exact.Exact == nil:
		return result.Beside{}, fmt.Errorf("run %s counts no instructions: it was not made with --exact", exact.Run)
	case native.Exact != nil:
		return result.Beside{}, fmt.Errorf("run %s counts instructions itself; name the one that measures time first", native.Run)
	}
	b := result.Beside{Run: exact.Run, Exact: *exact.Exact}
	counted := besideDeltas(exact)
	var all []float64
	for _, s := range result.Settings(native.Cells) {
		part := besideSetting(native, s, counted)
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

// besideKey finds a delta of another run.
type besideKey struct {
	setting                         result.Setting
	network, path, baseline, metric string
}

func keyOf(d result.Delta, metric string) besideKey {
	s := d.Setting()
	s.Params = meant(s.Params)
	return besideKey{s, d.Network, cmp.Or(d.Path, "pod"), d.Baseline, metric}
}

func besideDeltas(run result.Run) map[besideKey]result.Delta {
	all := map[besideKey]result.Delta{}
	for _, d := range run.Deltas {
		all[keyOf(d, d.Metric)] = d
	}
	return all
}

// besideSetting is what both runs say of one setting.
func besideSetting(native result.Run, s result.Setting, counted map[besideKey]result.Delta) result.BesideSetting {
	part := result.BesideSetting{Workload: s.Workload, Params: s.Params, Placement: s.Placement}
	var times, instructions []float64
	for _, d := range Headlines(native.Deltas, s) {
		e, found := counted[keyOf(d, d.Metric)]
		if !found || d.Ratio <= 0 || e.Ratio <= 0 {
			continue
		}
		part.Baseline, part.Metric = d.Baseline, d.Metric
		times, instructions = append(times, d.Ratio), append(instructions, e.Ratio)
		part.Networks = append(part.Networks, result.BesideNetwork{
			Network: Name(d.Network, d.Path), Native: d.Ratio, Exact: e.Ratio, NativeVerdict: d.Verdict, ExactVerdict: e.Verdict,
			Request: counted[keyOf(d, metricRequest)].Difference, Response: counted[keyOf(d, metricResponse)].Difference,
		})
	}
	native1, exact1 := stats.Ranks(times), stats.Ranks(instructions)
	for i := range part.Networks {
		part.Networks[i].NativeRank, part.Networks[i].ExactRank = native1[i], exact1[i]
	}
	slices.SortStableFunc(part.Networks, func(a, b result.BesideNetwork) int { return cmp.Compare(a.ExactRank, b.ExactRank) })
	part.Correlation = finite(stats.Spearman(times, instructions))
	return part
}
