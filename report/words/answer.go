package words

import (
	"fmt"
	"strings"

	"netdelta/experiment/plan"
	"netdelta/insight"
	"netdelta/result"
	"netdelta/stats"
)

// Summary is the first screen of a run, a sentence each: goals that failed, what the study is about and was not measured, what its load
// says in each placement, and how much is open. It is empty of a run that compared nothing.
func Summary(run result.Run) []string {
	lines := append(Urgent(run), answers(run)...)
	if open := Open(run); open != "" {
		lines = append(lines, open)
	}
	return lines
}

// Urgent is what a reader must know before the answer: goals that failed, and what the study is about and was not measured.
func Urgent(run result.Run) []string {
	var lines []string
	if failed := FailedGoals(run); failed != "" {
		lines = append(lines, "Failed: "+failed+".")
	}
	if missing := NotMeasured(run); missing != "" {
		lines = append(lines, missing)
	}
	return lines
}

// NotMeasured says that nothing was measured of the workload that a study is about, why, and how to have it measured; "" where some was.
func NotMeasured(run result.Run) string {
	a, missing := insight.OwnMissing(run)
	if !missing {
		return ""
	}
	return fmt.Sprintf("Not measured: %s, the workload of this study: %s.", insight.Own(run), strings.TrimSuffix(a.Why, "."))
}

// answers say of each placement which network costs the least and which the most.
func answers(run result.Run) []string {
	var all []string
	for _, part := range insight.Answered(run) {
		if says := Answer(part); says != "" {
			all = append(all, says)
		}
	}
	if len(all) == 0 {
		all = Indirect(run)
	}
	return all
}

// Indirect is the answer of a run that has none for any setting: its first change, or the first of its effects.
func Indirect(run result.Run) []string {
	for _, a := range run.Advice {
		if a.Kind == KindChange {
			return []string{a.Says}
		}
	}
	for _, t := range insight.EffectTables(run) {
		return []string{Effect(t)} // it is about factors: the first of them stands for all
	}
	return nil
}

// Answer says of one setting which network costs the least and which the most: Conclusion with the load before it (Title), without
// demonstrations and without ties; "" where nothing was compared.
func Answer(part insight.Part) string {
	c := insight.ConcludeChoice(part)
	if c.Outcome != insight.Compared {
		return ""
	}
	c.Slower.Ties = nil
	return Title(c.Setting) + ": " + strings.Join(clauses(c), "; ") + "."
}

// Open says how many headline deltas have no verdict, "" of a run that has none.
func Open(run result.Run) string {
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
		return ""
	}
	says := "Every delta is resolved"
	switch {
	case early == headlines:
		says = fmt.Sprintf("No verdict yet: too few builds for all %d deltas", headlines)
	case open+early > 0:
		says = fmt.Sprintf("%d of %d deltas are inconclusive", open+early, headlines)
	}
	if n := unknownGoals(run); n > 0 {
		says += "; " + agree(n, "a goal is", fmt.Sprintf("%d goals are", n)) + " unknown"
	}
	return says + "."
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
