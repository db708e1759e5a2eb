package insight

import (
	"cmp"
	"slices"

	"netdelta/result"
)

// EffectTable is what one step of a factor does to each network in one setting.
type EffectTable struct {
	Factor, From, To string
	// Setting is the one at the level To; Open is the same without the factor.
	Setting, Open result.Setting
	// Deltas are the effects as deltas against the level From: those of the headline first, the cheapest network first.
	Deltas []result.Delta
	Margin float64
}

// EffectTables sorts a run's effects: factor by factor, in the order of the run's settings. A table without any effect in
// its headline metric is left out.
func EffectTables(run result.Run) []EffectTable {
	type key struct {
		factor, from, to string
		setting          result.Setting
	}
	var all []EffectTable
	at := map[key]int{}
	for _, e := range run.Effects {
		k := key{e.Factor, e.From, e.To, e.Setting()}
		i, known := at[k]
		if !known {
			i = len(all)
			at[k] = i
			open := e.Setting()
			open.Params = open.Params.Without(e.Factor)
			all = append(all, EffectTable{Factor: e.Factor, From: e.From, To: e.To, Setting: e.Setting(), Open: open, Margin: run.Margin})
		}
		all[i].Deltas = append(all[i].Deltas, AsDelta(e))
	}
	all = slices.DeleteFunc(all, func(t EffectTable) bool {
		return !slices.ContainsFunc(t.Deltas, func(d result.Delta) bool { return d.Headline })
	})
	for _, t := range all {
		slices.SortStableFunc(t.Deltas, func(a, b result.Delta) int {
			switch {
			case a.Headline == b.Headline:
				return cmp.Compare(Cost(a), Cost(b))
			case a.Headline:
				return -1
			}
			return 1
		})
	}
	return all
}

// AsDelta is an effect as a delta whose baseline is the level that it is compared with.
func AsDelta(e result.Effect) result.Delta {
	return result.Delta{
		Cell: e.Cell, Network: e.Network, Baseline: e.From, Workload: e.Workload, Params: e.Params, Placement: e.Placement, Path: e.Path,
		Metric: e.Metric, Headline: e.Headline, Unit: e.Unit, Better: e.Better, BaselineValue: e.FromValue, Value: e.Value,
		Ratio: e.Ratio, RatioLow: e.RatioLow, RatioHigh: e.RatioHigh,
		Difference: e.Difference, DifferenceLow: e.DifferenceLow, DifferenceHigh: e.DifferenceHigh, P: e.P, PAdjusted: e.PAdjusted,
		Blocks: e.Blocks, Rounds: e.Rounds, Need: e.Need, Verdict: e.Verdict, Excluded: e.Excluded, Warnings: e.Warnings,
	}
}

// Headlines are the deltas of the headline metric.
func (t EffectTable) Headlines() []result.Delta {
	return slices.DeleteFunc(slices.Clone(t.Deltas), func(d result.Delta) bool { return !d.Headline })
}
