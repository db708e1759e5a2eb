package words

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/stats"
)

// outcome says the result of a comparison in a sentence.
func outcome(c result.Comparison) string {
	judged := insight.Judged(c)
	count := fmt.Sprintf("%d deltas", len(judged))
	if len(judged) == 1 {
		count = "1 delta"
	}
	margin := marginOf(c, judged)
	regressed, improved := insight.ByVerdict(c, stats.Regressed), insight.ByVerdict(c, stats.Improved)
	same, unresolved := insight.ByVerdict(c, stats.Same), insight.ByVerdict(c, stats.Unresolved)
	switch stats.Verdict(c.Verdict) {
	case insight.NothingCompared:
		if len(judged) == 0 {
			return "Nothing can be compared: the runs have no delta in common."
		}
		return fmt.Sprintf("Nothing can be compared: a change takes %d builds in each run, and the old run has %d, the new one %d.",
			neededBy(judged), c.Old.Builds, c.New.Builds)
	case stats.Same:
		if len(judged) == 1 {
			return fmt.Sprintf("Nothing changed: the 1 delta in both runs is the same to within %s.", margin) + findable(judged)
		}
		return fmt.Sprintf("Nothing changed: all %s are the same to within %s.", count, margin) + byTime(judged) + findable(judged)
	}
	var parts []string
	add := func(list []result.Change, text string) {
		if len(list) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", len(list), text))
		}
	}
	lead := "No regression was found"
	if len(regressed) > 0 {
		lead = fmt.Sprintf("REGRESSION: %d of %s became worse by more than %s: %s", len(regressed), count, margin, namedChanges(regressed))
	} else {
		lead += " in " + count
	}
	if len(improved) > 0 {
		parts = append(parts, fmt.Sprintf("%d improved by more than %s: %s", len(improved), margin, namedChanges(improved)))
	}
	add(same, "the same")
	if len(unresolved) > 0 {
		text := fmt.Sprintf("%d unresolved", len(unresolved))
		if need := neededBy(unresolved); need > 0 {
			text += fmt.Sprintf(" (about %d builds in each run would tell)", need)
		}
		parts = append(parts, text)
	}
	if len(parts) > 0 {
		lead += "; " + strings.Join(parts, "; ")
	}
	return lead + "." + byTime(judged) + findable(judged)
}

// byTime says how many changes are of added time, "" for none.
func byTime(changes []result.Change) string {
	n := len(slices.DeleteFunc(slices.Clone(changes), func(c result.Change) bool { return !c.ByTime }))
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" The baseline itself moved: %d of them are judged by the added time.", n)
}

// findable says how small a change the comparison could have found, "" where that is not known.
func findable(changes []result.Change) string {
	var low, high *result.Change
	for i, c := range changes {
		if c.Findable == nil {
			continue
		}
		if low == nil || *c.Findable < *low.Findable {
			low = &changes[i]
		}
		if high == nil || *c.Findable > *high.Findable {
			high = &changes[i]
		}
	}
	if low == nil {
		return ""
	}
	size := func(c *result.Change) string {
		if c.Change == 0 {
			return strings.TrimPrefix(Difference(c.Unit, *c.Findable), "+")
		}
		return roughly(*c.Findable)
	}
	text := size(low)
	if most := size(high); most != text {
		text += " (" + most + " where least is known)"
	}
	return " A change of " + text + " or more could have been found."
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

// namedChanges lists changes with their sizes, the largest first.
func namedChanges(changes []result.Change) string {
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
			insight.Name(c.Network, c.Path), c.Metric, Amount(c), Load(c.Setting), At(c.Placement)))
	}
	return List(all)
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

// ChangesTitle names the setting and the metric of changes.
func ChangesTitle(c result.Change) string {
	title := Load(c.Setting) + " · " + At(c.Placement) + " · " + c.Metric
	if !c.Headline {
		title += " (reported, not judged)"
	}
	return title
}

// ChangeInterval is a change's interval, or how many builds it lacks for one.
func ChangeInterval(c result.Change) string {
	if d := insight.ChangeAsDelta(c); insight.HasInterval(d) {
		return Interval(d)
	}
	return fmt.Sprintf("%d and %d of %d builds", c.Old.Blocks, c.New.Blocks, c.Need)
}

// onlyMost is how many deltas that only one run has are named.
const onlyMost = 5

// OnlyIn names the deltas that only one of the runs has, those with the same reason together.
func OnlyIn(c result.Comparison) []string {
	type group struct{ in, why string }
	var all []string
	for g, own := range insight.By(c.Unpaired, func(u result.Unpaired) group { return group{u.In, u.Why} }) {
		var names []string
		for i, u := range own {
			if i == onlyMost {
				names = append(names, fmt.Sprintf("%d more", len(own)-i))
				break
			}
			names = append(names, fmt.Sprintf("%s (%s, %s)", insight.Name(u.Network, u.Path), Load(u.Setting), At(u.Placement)))
		}
		all = append(all, fmt.Sprintf("the %s run: %s: %s", g.in, strings.Join(names, ", "), g.why))
	}
	return all
}

// ComparisonWarnings are the warnings of the judged changes, each once.
func ComparisonWarnings(c result.Comparison) []string {
	var all []string
	for _, change := range insight.Judged(c) {
		for _, w := range change.Warnings {
			if text := insight.Name(change.Network, change.Path) + ", " + w; !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

// Alike says that two runs have in common what their baselines rest on: Elsewhere has nothing to say.
func Alike(c result.Comparison) string {
	if c.Old.OnNodes && c.New.OnNodes {
		return "Same nodes and kernel, same testbed and settings."
	}
	return "Same machine and kernel, same testbed and settings."
}

// Elsewhere says in a few words why the baselines of two runs are not to be compared, such as "another machine"; "" if machine,
// kernel and settings are the same.
func Elsewhere(c result.Comparison) string {
	words := map[string]string{
		insight.GroupMachine: "another machine", insight.GroupKernel: "another kernel", insight.GroupTestbed: "another testbed", insight.GroupSettings: "other settings",
	}
	if c.Old.OnNodes && c.New.OnNodes {
		words[insight.GroupMachine] = "other nodes"
	}
	for _, group := range []string{insight.GroupMachine, insight.GroupKernel, insight.GroupTestbed, insight.GroupSettings} {
		for _, d := range c.Differences {
			if d.Group == group {
				return words[group]
			}
		}
	}
	return ""
}

// Context says what a group's baseline measured in both runs, with an arrow between, and that it is not judged: on another
// machine it depends on the machine. It is "" where the metric is not judged.
func Context(g insight.Group, c result.Comparison, arrow string) string {
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
	return cmp.Or(value, "not recorded")
}

// Share is a figure of a repeated delta: a percentage, or points where it has no ratio.
func Share(r insight.Repeated, x float64) string {
	if r.Linear {
		return Difference(Unit(r.Delta), x)
	}
	return Percent(x)
}

// Repeated are the intervals of a repeated delta, of the mean over runs and of another run, and the figures of the runs.
func Repeated(r insight.Repeated) (mean, next string, figures []string) {
	figures = gather.Each(r.Figures, func(x float64) string { return Share(r, x) })
	if !r.Enough {
		return fmt.Sprintf("%d of %d runs", len(r.Figures), stats.PredictRuns), "", figures
	}
	p := r.Prediction
	return fmt.Sprintf("[%s, %s]", Share(r, p.Low), Share(r, p.High)), fmt.Sprintf("[%s, %s]", Share(r, p.NextLow), Share(r, p.NextHigh)), figures
}

// RepeatedSays tells the two intervals from each other, and says in how many boots the runs were made.
func RepeatedSays(all []insight.Repeated, runs, boots int) string {
	if len(all) == 0 {
		return "No delta is in two of the runs: there is nothing to predict."
	}
	says := "The mean's interval is where many such runs lie on average. The other is where one more run will lie, on a day and after a boot like " +
		"these: take it for what you may see yourself. Both rest on the differences between the runs, and not on the builds of any one."
	switch {
	case boots == 0:
		return says + " Some run does not say in which boot it was made: whether the runs say anything of another boot is not known."
	case boots == 1:
		return says + " All were made in one boot: they say nothing of another one."
	case boots < runs:
		return says + fmt.Sprintf(" They were made in %d boots: runs of one boot may be more alike than another boot's.", boots)
	}
	return says + " Each was made in a boot of its own."
}
