package insight

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"netdelta/result"
	"netdelta/stats"
)

// NothingCompared is the verdict on two runs of which no delta could be compared.
const NothingCompared = "nothing"

// Moved reports whether a change has an interval, and on which side of no change the whole of it lies: -1 better, 1 worse, 0
// on both.
func Moved(c result.Change) (known bool, side int) {
	low, high, none := c.ChangeLow, c.ChangeHigh, 1.0
	if c.Change == 0 {
		low, high, none = c.ShiftLow, c.ShiftHigh, 0
	}
	if low == nil || high == nil {
		return false, 0
	}
	switch {
	case *low > none:
		side = 1
	case *high < none:
		side = -1
	}
	if c.Better == string(stats.HigherBetter) {
		side = -side
	}
	return true, side
}

// ByVerdict are the judged changes of a comparison with this verdict.
func ByVerdict(c result.Comparison, verdict stats.Verdict) []result.Change {
	return slices.DeleteFunc(Judged(c), func(d result.Change) bool { return d.Verdict != string(verdict) })
}

// Judged are the changes that decide the outcome.
func Judged(c result.Comparison) []result.Change {
	var all []result.Change
	for _, d := range c.Changes {
		if d.Headline {
			all = append(all, d)
		}
	}
	return all
}

// overall is the verdict on all changes together.
func overall(changes []result.Change) string {
	found, compared := map[string]bool{}, false
	for _, c := range changes {
		if c.Headline {
			found[c.Verdict] = true
			known, _ := Moved(c)
			compared = compared || known
		}
	}
	if !compared {
		return NothingCompared
	}
	for _, v := range []stats.Verdict{stats.Regressed, stats.Unresolved, stats.Improved} {
		if found[string(v)] {
			return string(v)
		}
	}
	return string(stats.Same)
}

// outcome says in a sentence what a comparison comes to.
func outcome(c result.Comparison) string {
	judged := Judged(c)
	count := fmt.Sprintf("%d deltas", len(judged))
	if len(judged) == 1 {
		count = "1 delta"
	}
	margin := marginOf(c, judged)
	regressed, improved := ByVerdict(c, stats.Regressed), ByVerdict(c, stats.Improved)
	same, unresolved := ByVerdict(c, stats.Same), ByVerdict(c, stats.Unresolved)
	switch stats.Verdict(c.Verdict) {
	case NothingCompared:
		if len(judged) == 0 {
			return "Nothing can be compared: the runs have no delta in common."
		}
		return fmt.Sprintf("Nothing can be compared: a change takes %d builds in each run, and the old run has %d, the new one %d.",
			neededBy(judged), c.Old.Builds, c.New.Builds)
	case stats.Same:
		if len(judged) == 1 {
			return fmt.Sprintf("Nothing changed: the 1 delta in both runs is the same to within %s.", margin)
		}
		return fmt.Sprintf("Nothing changed: all %s are the same to within %s.", count, margin)
	}
	var parts []string
	add := func(list []result.Change, text string) {
		if len(list) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", len(list), text))
		}
	}
	lead := "No regression was found"
	if len(regressed) > 0 {
		lead = fmt.Sprintf("REGRESSION: %d of %s became worse by more than %s: %s", len(regressed), count, margin, named(regressed))
	} else {
		lead += " in " + count
	}
	if len(improved) > 0 {
		parts = append(parts, fmt.Sprintf("%d improved by more than %s: %s", len(improved), margin, named(improved)))
	}
	add(same, "the same")
	if len(unresolved) > 0 {
		text := fmt.Sprintf("%d unresolved", len(unresolved))
		if need := neededBy(unresolved); need > 0 {
			text += fmt.Sprintf(" (about %d builds in each run would tell)", need)
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return lead + "."
	}
	return lead + "; " + strings.Join(parts, "; ") + "."
}

// MarginOf is the margin that a change was held against, as a share.
func MarginOf(c result.Comparison, change result.Change) float64 {
	if change.Change == 0 {
		return c.LossMargin
	}
	return c.Margin
}

// marginOf names the margins that changes were held against.
func marginOf(c result.Comparison, changes []result.Change) string {
	ratio, loss := fmt.Sprintf("%.4g%%", 100*c.Margin), fmt.Sprintf("%.4g points", 100*c.LossMargin)
	without := func(change result.Change) bool { return change.Change == 0 }
	switch {
	case !slices.ContainsFunc(changes, without):
		return ratio
	case slices.ContainsFunc(changes, func(change result.Change) bool { return !without(change) }):
		return ratio + " (of loss " + loss + ")"
	}
	return loss
}

// neededBy is the largest number of builds that any of the changes needs, 0 if one of them can't be settled so.
func neededBy(changes []result.Change) int {
	most := 0
	for _, c := range changes {
		if c.Need == 0 {
			return 0
		}
		most = max(most, c.Need)
	}
	return most
}

// namedMost is how many changes a sentence names; the rest are counted.
const namedMost = 3

// named lists changes with what they come to, the largest first.
func named(changes []result.Change) string {
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, func(a, b result.Change) int {
		switch x, y := extent(a), extent(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	var all []string
	for i, c := range sorted {
		if i == namedMost && len(sorted) > namedMost+1 {
			all = append(all, fmt.Sprintf("%d more", len(sorted)-i))
			break
		}
		all = append(all, fmt.Sprintf("%s %s %s (%s, %s)",
			Name(c.Network, c.Path), c.Metric, Amount(c), Load(c.Setting()), strings.ToLower(Where(c.Placement))))
	}
	return list(all)
}

// extent is how far a change lies from none.
func extent(c result.Change) float64 {
	if c.Change > 0 {
		return math.Abs(math.Log(c.Change))
	}
	return math.Abs(c.Shift)
}

// Amount prints a change: of a ratio as a percentage, else as a difference in the metric's unit.
func Amount(c result.Change) string {
	if c.Change == 0 {
		return Difference(c.Unit, c.Shift)
	}
	return Percent(c.Change)
}

// Alike says that two runs have in common what their baselines rest on: Elsewhere has nothing to say.
func Alike(c result.Comparison) string {
	if onClusters(c) {
		return "Same nodes and kernel, same testbed and settings."
	}
	return "Same machine and kernel, same testbed and settings."
}

// onClusters says whether both runs were made on clusters, whose machines are nodes.
func onClusters(c result.Comparison) bool {
	const cluster = "kubernetes"
	return c.Old.Testbed == cluster && c.New.Testbed == cluster
}

// Elsewhere says in a few words why the baselines of two runs are not to be compared, such as "another machine"; "" if machine,
// kernel and settings are the same.
func Elsewhere(c result.Comparison) string {
	words := map[string]string{
		GroupMachine: "another machine", GroupKernel: "another kernel", GroupTestbed: "another testbed", GroupSettings: "other settings",
	}
	if onClusters(c) {
		words[GroupMachine] = "other nodes"
	}
	for _, group := range []string{GroupMachine, GroupKernel, GroupTestbed, GroupSettings} {
		for _, d := range c.Differences {
			if d.Group == group {
				return words[group]
			}
		}
	}
	return ""
}

// Group is the changes of one metric in one setting: what a table shows.
type Group struct {
	Changes  []result.Change
	Baseline *result.BaselineChange // nil where the metric is not judged
}

// Groups sorts the changes of a comparison into tables, in the order in which they come.
func Groups(c result.Comparison) []Group {
	type key struct {
		setting result.Setting
		metric  string
	}
	at := map[key]int{}
	var all []Group
	for _, change := range c.Changes {
		k := key{change.Setting(), change.Metric}
		i, ok := at[k]
		if !ok {
			i = len(all)
			at[k] = i
			all = append(all, Group{})
			for b := range c.Baselines {
				if (key{c.Baselines[b].Setting(), c.Baselines[b].Metric}) == k {
					all[i].Baseline = &c.Baselines[b]
				}
			}
		}
		all[i].Changes = append(all[i].Changes, change)
	}
	return all
}

// Context says what the group's baseline measured in both runs, with an arrow between, and that it is not judged: on another
// machine it tells of the machine. It is "" where the metric is not judged.
func (g Group) Context(c result.Comparison, arrow string) string {
	b := g.Baseline
	if b == nil {
		return ""
	}
	why := "not judged"
	if elsewhere := Elsewhere(c); elsewhere != "" {
		why = elsewhere + ", not compared"
	}
	return fmt.Sprintf("%s itself: %s %s %s; %s", b.Baseline, Value(b.Unit, b.Old), arrow, Value(b.Unit, b.New), why)
}

// Against is what a network costs against the baseline of its own run.
func Against(d result.ComparedDelta, unitName string) string {
	if d.Ratio == 0 {
		return Difference(unitName, d.Difference)
	}
	return Percent(d.Ratio)
}

// Recorded is a value of an environment in words.
func Recorded(value string) string {
	if value == "" {
		return "not recorded"
	}
	return value
}
