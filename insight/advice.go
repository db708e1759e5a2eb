package insight

import (
	"fmt"
	"strings"

	"netdelta/result"
	"netdelta/stats"
)

// Advise says what to change, as far as headline deltas speak for it: which network to take where several were measured,
// where host networking buys nothing, and what a run lacked. It speaks of costs alone; what else a network is chosen for
// is the reader's to weigh.
func Advise(run result.Run) []result.Advice {
	var all []result.Advice
	parts := Parts(run)
	for _, p := range []result.Placement{result.SameNode, result.CrossNode} {
		for _, load := range workloads(run.Cells) {
			all = append(all, choose(parts, p, load)...)
		}
	}
	all = append(all, boundAdvice(parts)...)
	return append(all, more(run)...)
}

// workloads are the names of a run's workloads in the order of its cells.
func workloads(cells []result.Cell) []string {
	var names []string
	seen := map[string]bool{}
	for _, c := range cells {
		if !seen[c.Workload] {
			seen[c.Workload] = true
			names = append(names, c.Workload)
		}
	}
	return names
}

// choose compares the networks of a workload over all settings of it in one placement: advice is given only where all of
// them agree.
func choose(parts []Part, p result.Placement, load string) []result.Advice {
	var free, best, worst map[string]bool
	var sample []result.Delta
	margin := 0.0
	for _, part := range parts {
		if s := part.Setting; s.Placement != p || s.Workload != load || len(part.Run.Cells) == 0 {
			continue
		}
		margin = part.Run.Margin
		deltas := Headlines(part.Run.Deltas, part.Setting)
		var intervals []result.Delta
		for _, d := range deltas {
			if HasInterval(d) && d.Ratio > 0 {
				intervals = append(intervals, d)
			}
		}
		if len(intervals) == 0 {
			return nil
		}
		least, most, _ := extremes(intervals)
		if len(least) == len(intervals) {
			least = nil
		}
		free = both(free, verdicts(intervals, stats.Same))
		best, worst = both(best, set(least)), both(worst, set(most))
		if len(sample) == 0 {
			sample = intervals
		}
	}
	var all []result.Advice
	where := strings.ToLower(Where(p))
	if names := inOrder(sample, free); len(names) > 0 {
		all = append(all, result.Advice{
			Says: fmt.Sprintf("For %s %s, use %s where it suits you: %s networking would gain nothing that matters.",
				load, where, list(names), sample[0].Baseline),
			Why: fmt.Sprintf("The cost is inside the margin of %g%% in every setting measured.", margin*100),
		})
	}
	if from, to := single(sample, worst), single(sample, best); from != nil && to != nil {
		gain := "saves"
		if higherBetter(*from) {
			gain = "gains"
		}
		all = append(all, result.Advice{
			Says: fmt.Sprintf("For %s %s, %s rather than %s %s %s of %s.", load, where, Name(to.Network, to.Path),
				Name(from.Network, from.Path), gain, strings.TrimLeft(Difference(Unit(*from), from.Difference-to.Difference), "+-"), from.Metric),
			Why: fmt.Sprintf("%s has %s and %s %s against %s, in intervals that do not overlap; at %s.",
				Name(to.Network, to.Path), Percent(to.Ratio), Name(from.Network, from.Path), Percent(from.Ratio), to.Baseline, Load(to.Setting())),
		})
	}
	return all
}

// more says what a run lacked for the verdicts that it leaves open.
func more(run result.Run) []result.Advice {
	open, need, headlines := 0, 0, 0
	for _, d := range run.Deltas {
		if !d.Headline {
			continue
		}
		headlines++
		if d.Verdict == string(stats.Unresolved) {
			open++
			need = max(need, d.Need)
		}
	}
	if open == 0 {
		return nil
	}
	why := fmt.Sprintf("%d of %d headline deltas %s unresolved", open, headlines, agree(open, "is", "are"))
	if need > 0 {
		why += fmt.Sprintf("; about %d builds would settle %s what %s",
			need, agree(open, "it if it is", "them if they are"), agree(open, "it looks like", "they look like"))
	}
	says := "Give the run more time: a larger --time-budget, or --resume to go on with this one."
	switch {
	case run.Exact != nil:
		says = "Count in more guests: a larger --builds."
	case run.Testbed == result.Imported:
		says = "Measure more, the networks in turn: each file of a network is a build."
	}
	return []result.Advice{{Says: says, Why: why + "."}}
}

// set holds the names of deltas.
func set(deltas []result.Delta) map[string]bool {
	s := map[string]bool{}
	for _, name := range names(deltas) {
		s[name] = true
	}
	return s
}

// verdicts holds the names of the deltas with a verdict.
func verdicts(deltas []result.Delta, v stats.Verdict) map[string]bool {
	var own []result.Delta
	for _, d := range deltas {
		if d.Verdict == string(v) {
			own = append(own, d)
		}
	}
	return set(own)
}

// both is the intersection; nil stands for everything.
func both(a, b map[string]bool) map[string]bool {
	if a == nil {
		return b
	}
	common := map[string]bool{}
	for name := range a {
		if b[name] {
			common[name] = true
		}
	}
	return common
}

// inOrder are the names of those deltas that are in s.
func inOrder(deltas []result.Delta, s map[string]bool) []string {
	var own []string
	for _, name := range names(deltas) {
		if s[name] {
			own = append(own, name)
		}
	}
	return own
}

// single is the one delta whose name is in s, nil unless there is exactly one.
func single(deltas []result.Delta, s map[string]bool) *result.Delta {
	if len(s) != 1 {
		return nil
	}
	for i, name := range names(deltas) {
		if s[name] {
			return &deltas[i]
		}
	}
	return nil
}
