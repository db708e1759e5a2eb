package words

import (
	"fmt"
	"slices"
	"strings"

	"netdelta/experiment/plan"
	"netdelta/insight"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
)

// Summary is the answer of a run in two sentences: which network costs least and most, and what is open. It is empty of a run
// that compared nothing.
func Summary(run result.Run) []string {
	var lines []string
	if answer := answer(run); answer != "" {
		lines = append(lines, answer)
	}
	if failed := FailedGoals(run); failed != "" {
		lines = append([]string{"Failed: " + failed + "."}, lines...)
	}
	open, headlines, early := 0, 0, 0
	for _, d := range run.Deltas {
		if !d.Headline {
			continue
		}
		headlines++
		switch {
		case !insight.HasInterval(d):
			early++
		case d.Verdict == string(stats.Unresolved):
			open++
		}
	}
	if headlines == 0 {
		return lines
	}
	var parts []string
	switch {
	case early == headlines:
		parts = append(parts, fmt.Sprintf("No verdict yet: too few builds for all %d deltas", headlines))
	case open+early > 0:
		parts = append(parts, fmt.Sprintf("%d of %d inconclusive", open+early, headlines))
	default:
		parts = append(parts, "Every delta is resolved")
	}
	if n := unknownGoals(run); n > 0 {
		parts = append(parts, agree(n, "a goal is", fmt.Sprintf("%d goals are", n))+" unknown")
	}
	changes := 0
	for _, a := range run.Advice {
		if a.Kind == KindChange {
			changes++
		}
	}
	if changes > 0 {
		parts = append(parts, unit.Counted(changes, "change")+" would gain something (What to do)")
	}
	return append(lines, strings.Join(parts, "; ")+".")
}

// littleKnown names the networks of which too little is known to hold them against the best, "" where there are none.
func littleKnown(c insight.Choice) string {
	if len(c.Open) == 0 {
		return ""
	}
	return "; too little is known of " + List(c.Open)
}

// mostTied is how many networks a sentence names as tied with the best.
const mostTied = 2

// tiedWith says which networks can't be told from the best, "" where there are none. Many are counted.
func tiedWith(tied []string) string {
	switch n := len(tied); {
	case n == 0:
		return ""
	case n > mostTied:
		return fmt.Sprintf(", tied with %d other networks", n)
	}
	return ", tied with " + List(tied)
}

// answer is the first sentence of a summary.
func answer(run result.Run) string {
	if c, ok := insight.Choose(run); ok {
		best, many := append([]string{c.Best}, c.Tied...), ""
		if len(c.Tied) > mostTied {
			best, many = best[:1], tiedWith(c.Tied)
		}
		if c.Settings == 1 && c.Unknown == 0 {
			least := agree(len(best), "costs", "cost") + " least (%s)%s, %s most (%s)"
			if c.Least.Verdict == string(stats.Faster) {
				least = agree(len(best), "is", "are") + " fastest (%s)%s, %s costs most (%s)"
			}
			return fmt.Sprintf("%s "+least+": %s%s.", List(best), amount(c.Least), many, c.Worst, amount(c.Most), Title(c.Most.Setting), littleKnown(c))
		}
		says := agree(len(best), "costs", "cost") + " least over %s: %s at worst"
		if c.Least.Verdict == string(stats.Faster) {
			says = agree(len(best), "is", "are") + " faster over %s: %s at least"
		}
		return fmt.Sprintf("%s "+says+"%s; %s costs most: %s, %s%s.", List(best), known(c), amount(c.Least), many, c.Worst, amount(c.Most), Title(c.Most.Setting), littleKnown(c))
	}
	for _, a := range run.Advice {
		if a.Kind == KindChange {
			return a.Says
		}
	}
	var all []string
	for _, part := range insight.Parts(run) {
		if says := Conclusion(insight.Conclude(part)); says != "" && len(part.Headlines()) > 0 && insight.HasInterval(part.Headlines()[0]) {
			all = append(all, says)
		}
	}
	// On one node and across nodes there are two answers; of more settings the first stands for all.
	if len(all) > 2 {
		all = all[:1]
	}
	return strings.Join(all, " ")
}

// amount is a delta's change, with its metric where more of it is better.
func amount(d result.Delta) string {
	if insight.HigherBetter(d) {
		return change(d) + " of " + d.Metric
	}
	return change(d)
}

// unknownGoals counts the goals that the run can't tell.
func unknownGoals(run result.Run) int {
	n := 0
	for _, g := range run.Goals {
		if g.Verdict == result.GoalUnknown {
			n++
		}
	}
	return n
}

// Next is the command that would tell the most after this run; "" where there is none.
func Next(run result.Run) string {
	if run.Ended == "interrupted" || run.Ended == "running" {
		return Resume(run)
	}
	if unknownGoals(run) > 0 && run.Ended == plan.EndedBudget {
		for _, a := range run.Advice {
			if len(a.How) > 0 && strings.HasPrefix(a.How[0], Resume(run)) {
				return a.How[0] // that asks for more time, too: one figure for it
			}
		}
		return Resume(run) + " --time-budget " + longer(insight.Advice{Run: run})
	}
	for _, a := range run.Advice {
		if a.Kind == KindMeasure && len(a.How) > 0 {
			return a.How[0]
		}
	}
	return ""
}

// RequestLine is what a network is of a request, in words.
type RequestLine struct {
	Name, Added string
	// Share is what part of the request is added, with its interval where there is one.
	Share, Verdict string
	// Class is the verdict's: same where it does not matter, faster where it saves, slower where it matters, else unresolved.
	Class string
}

// Request puts a share of a request in words. A share within the margin does not matter. The page does the same for what its reader
// chooses (request.js), and a test holds the two equal.
func Request(s insight.RequestShare, margin float64) RequestLine {
	line := RequestLine{
		Name: insight.Name(s.Delta.Network, s.Delta.Path), Added: Difference("ns", s.Added), Share: fmt.Sprintf("%+.1f%%", 100*s.Share),
		Verdict: "can't be told yet", Class: "unresolved",
	}
	if s.Known {
		line.Share += fmt.Sprintf(" [%+.1f, %+.1f]", 100*s.Low, 100*s.High)
	}
	switch yes, no := s.Matters(margin); {
	case no:
		line.Verdict, line.Class = fmt.Sprintf("no: within %g%%", 100*margin), "same"
	case yes && s.Share < 0:
		line.Verdict, line.Class = "yes, it saves", "faster"
	case yes:
		line.Verdict, line.Class = "yes", "slower"
	}
	return line
}

// Caveats are at most two lines on what could overturn a choice that is made by a run's figures: they stand with its first table.
func Caveats(run result.Run) []string {
	switch {
	case run.Testbed == result.Imported:
		return []string{"Measured elsewhere: netdelta saw neither the packets' paths nor what else ran."}
	case run.Environment.Cluster != nil:
		return []string{"These nodes, their cards and kernels, the load of this hour: others may differ."}
	}
	if len(run.Environment.Servers) > 0 {
		return []string{"These servers, their cards and kernels, the load of this hour: others may differ."}
	}
	all := []string{"One machine, nodes joined in memory: no card, no wire. Others may well differ."}
	if n := run.Environment.CPU.Count; n > 0 {
		all[0] = fmt.Sprintf("One machine of %s, nodes joined in memory: no card, no wire.", unit.Counted(n, "processor"))
	}
	loopback := func(d result.Delta) bool { return d.Baseline == "host" && d.Placement == result.SameNode }
	if slices.ContainsFunc(run.Deltas, loopback) {
		all = append(all, "On one node host is loopback, whose MTU of 65,535 favours it in large messages.")
	}
	return all
}
