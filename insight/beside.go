package insight

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

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

// BesideSays is what the rank correlation comes to, in a sentence.
func BesideSays(b result.Beside) string {
	if b.Correlation == nil {
		return "Too few networks are in both runs for a rank correlation."
	}
	settings := fmt.Sprintf("over %d settings", len(b.Settings))
	if len(b.Settings) == 1 {
		settings = "in the one setting of both"
	}
	how := "orders the networks much as time does"
	switch rho := *b.Correlation; {
	case rho < 0.5:
		how = "does not explain the order that time gives: what it leaves out decides here"
	case rho < 0.8:
		how = "explains a part of the order that time gives"
	}
	return fmt.Sprintf("The rank correlation (Spearman) is %.2f, the median %s: the length of the kernel's path %s.", *b.Correlation, settings, how)
}

// Interval is what the intervals of a run are: "95% interval", or of one that counts instructions "range over 3 seeds".
func Interval(run result.Run) string {
	if run.Exact != nil {
		return fmt.Sprintf("range over %d seeds", len(run.Exact.Seeds))
	}
	return fmt.Sprintf("%.4g%% interval", 100*run.Confidence)
}

// ExactSays is what a run that counts instructions counts, and what not; "" for any other.
func ExactSays(run result.Run) string {
	if run.Exact == nil {
		return ""
	}
	e := run.Exact
	seeds := make([]string, len(e.Seeds))
	for i, s := range e.Seeds {
		seeds[i] = fmt.Sprint(s)
	}
	return fmt.Sprintf("This run counts instructions: those that one emulated processor (%s, QEMU %s) carries out from a request to its response, in the kernel and in "+
		"the two programs. Each takes %g ns of the guest's clock, so times here are counts, and nothing the machine did meanwhile is in them: equal guests "+
		"give equal figures. What is not counted: caches and memory, branches that are guessed wrong, network cards and their offloads, and work that runs in parallel. "+
		"Intervals are ranges over seeds (%s), which decide where code and data lie in memory.", e.Processor, e.Emulator, e.PerInstruction, strings.Join(seeds, ", "))
}

// Decimals are how many of a percentage a ratio of the delta is printed with, as its interval bears: none for what is twice as much
// or more, or not known to a tenth, two for a count of instructions that is known to a hundredth of a percent.
func Decimals(ratio float64, d result.Delta) int {
	known := d.RatioLow != nil && d.RatioHigh != nil
	large := math.Abs(ratio-1) >= 1
	counted := d.Rounds == d.Blocks // one round in each build, as only counts have
	switch {
	case known && counted && *d.RatioHigh-*d.RatioLow < 1e-3 && !large:
		return 2
	case large || known && *d.RatioHigh-*d.RatioLow > 0.2:
		return 0
	}
	return 1
}
