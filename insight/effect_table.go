package insight

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"netdelta/result"
	"netdelta/stats"
)

// EffectTable is what one step of a factor does to each network in one setting.
type EffectTable struct {
	Factor, From, To string
	// Setting is that at the level To; Load names it without the factor.
	Setting result.Setting
	Load    string
	// Effects are the step's, in every metric. Deltas are the same as deltas against the level From, so that they are shown as
	// these are: those of the headline first, the cheapest network first.
	Effects []result.Effect
	Deltas  []result.Delta
	Says    string
}

// Title names the step: "policy from none to nftables:1000".
func (t EffectTable) Title() string { return FactorName(t.Factor) + " from " + t.From + " to " + t.To }

// Heading is the title for a line of its own, with the load and the placement.
func (t EffectTable) Heading() string {
	title := []rune(t.Title())
	if len(title) > 0 {
		title[0] = unicode.ToUpper(title[0])
	}
	return string(title) + " · " + t.Load + " · " + strings.ToLower(Where(t.Setting.Placement))
}

// FactorName is what a factor is called in a sentence.
func FactorName(factor string) string {
	switch factor {
	case "link.rate":
		return "link rate"
	case "link.delay":
		return "link delay"
	case "link.loss":
		return "link loss"
	case "bond":
		return "links"
	case "rps", "mtu":
		return strings.ToUpper(factor)
	case "qos":
		return "QoS"
	case "from":
		return "client's place"
	case "family":
		return "version of IP"
	case "cpu":
		return "processors"
	case "nagle":
		return "Nagle"
	}
	if offload, ok := strings.CutPrefix(factor, "offload."); ok {
		return strings.ToUpper(offload)
	}
	return strings.ReplaceAll(factor, "_", " ")
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
			all = append(all, EffectTable{Factor: e.Factor, From: e.From, To: e.To, Setting: e.Setting(), Load: Load(open)})
		}
		all[i].Effects = append(all[i].Effects, e)
	}
	all = slices.DeleteFunc(all, func(t EffectTable) bool {
		return !slices.ContainsFunc(t.Effects, func(e result.Effect) bool { return e.Headline })
	})
	for i := range all {
		t := &all[i]
		for _, e := range t.Effects {
			t.Deltas = append(t.Deltas, asDelta(e))
		}
		slices.SortStableFunc(t.Deltas, func(a, b result.Delta) int {
			switch {
			case a.Headline == b.Headline:
				return cmp.Compare(Cost(a), Cost(b))
			case a.Headline:
				return -1
			}
			return 1
		})
		t.Says = t.says(run.Margin)
	}
	return all
}

// asDelta is an effect as a delta whose baseline is the level that it is held against.
func asDelta(e result.Effect) result.Delta {
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

// says is the table in a sentence. Networks are sorted by their verdicts and not ranked: the intervals are for that.
func (t EffectTable) says(margin float64) string {
	by := map[string][]result.Delta{}
	for _, d := range t.Headlines() {
		verdict := d.Verdict
		if !HasInterval(d) {
			verdict = "too few"
		}
		by[verdict] = append(by[verdict], d)
	}
	within := fmt.Sprintf("%g%%%%", math.Round(margin*1e4)/100) // part of a format
	var parts []string
	for _, group := range []struct {
		verdict, singular, plural string
	}{
		{string(stats.Slower), "%s is slower for it", "%s are slower for it"},
		{string(stats.Faster), "%s is faster for it", "%s are faster for it"},
		{string(stats.Same), "%s stays the same to within " + within, "%s stay the same to within " + within},
		{string(stats.Unresolved), "what it does to %s can't be told at this budget", "what it does to %s can't be told at this budget"},
		{"too few", "there are too few builds for a verdict on %s", "there are too few builds for a verdict on %s"},
	} {
		deltas := by[group.verdict]
		if len(deltas) == 0 {
			continue
		}
		named := names(deltas)
		if group.verdict == string(stats.Slower) || group.verdict == string(stats.Faster) {
			named = sized(deltas)
		}
		parts = append(parts, fmt.Sprintf(agree(len(deltas), group.singular, group.plural), list(named)))
	}
	return Where(t.Setting.Placement) + ", with " + t.Title() + ", " + strings.Join(parts, "; ") + "."
}
