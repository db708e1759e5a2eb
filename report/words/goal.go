package words

import (
	"fmt"
	"strings"

	"netdelta/insight"
	"netdelta/result"
)

// Goal puts what a run says of a goal in words.
func Goal(text string, a insight.GoalAnswer) result.Goal {
	g := result.Goal{Goal: text, Verdict: a.Verdict}
	switch {
	case a.Unread != nil:
		g.Measured = a.Unread.Error()
	case a.Settings == 0:
		g.Measured = fmt.Sprintf("%s of %s was not measured", a.Goal.Metric, a.Goal.Network)
	case a.Early == a.Settings:
		g.Measured = "too few builds for an interval"
	default:
		d := a.Delta
		amount := fmt.Sprintf("%s [%s, %s]", Percent(d.Ratio), Percent(1+a.Low), Percent(1+a.High))
		if a.Goal.InTime || d.Ratio == 0 {
			amount = fmt.Sprintf("%s [%s, %s]", Added(d), Difference(Unit(d), a.Low), Difference(Unit(d), a.High))
		}
		g.Measured = fmt.Sprintf("%s %s, %s", insight.Name(d.Network, d.Path), amount, Title(d.Setting))
		if a.Settings > 1 {
			g.Measured += fmt.Sprintf("; the worst of %d settings", a.Settings)
		}
		if a.Early > 0 {
			g.Measured += fmt.Sprintf("; too few builds in %d", a.Early)
		}
	}
	return g
}

// Goals judges a run's goals anew and puts them in words.
func Goals(run *result.Run) {
	answers := insight.Goals(*run)
	goals := make([]result.Goal, len(answers))
	for i, a := range answers {
		goals[i] = Goal(run.Goals[i].Goal, a)
	}
	if len(goals) > 0 {
		run.Goals = goals
	}
}

// FailedGoals names the goals that a run fails, "" where there are none.
func FailedGoals(run result.Run) string {
	var failed []string
	for _, g := range run.Goals {
		if g.Verdict == result.GoalFail {
			failed = append(failed, g.Goal)
		}
	}
	return strings.Join(failed, "; ")
}
