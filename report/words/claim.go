package words

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"netdelta/experiment/studies"
	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/result"
)

// Measured says what a run measured of a claim: for each placement the comparison on which the verdict hangs. Where the parts of a
// claim come out differently, each has its own verdict.
func Measured(a insight.Answer) string {
	switch {
	case a.Unread != nil:
		return fmt.Sprintf("the statement can't be read: %v", a.Unread)
	case a.OfTime:
		return "it is about time, and this run counts instructions: ask a run that measures time"
	case a.TooMany:
		return fmt.Sprintf("too many comparisons: it takes more than %d; narrow it by conditions", insight.MostComparisons)
	case len(a.Parts) == 0:
		return missing(a.Missing, "%[2]s: %[1]s", "; ")
	}
	whole := a.Verdict
	if whole == insight.ConfirmedInPart {
		whole = insight.Confirmed
	}
	mixed := a.Differs == "" && slices.ContainsFunc(a.Parts, func(p insight.ClaimPart) bool { return p.Verdict != whole })
	texts := make([]string, len(a.Parts))
	for i, p := range a.Parts {
		var label []string
		if mixed {
			label = append(label, p.Verdict)
		}
		if a.Metrics {
			label = append(label, p.Clause.Metric)
		}
		texts[i] = strings.Join(append(label, At(p.Placement)), " ") + ": " + figures(p)
	}
	text := strings.Join(texts, "; ")
	if a.Verdict == insight.ConfirmedInPart {
		text = tested(a.Extent) + ": " + text
	}
	if len(a.Missing) > 0 {
		text += ". Not tested: " + missing(a.Missing, "%s (%s)", ", ")
	}
	if a.Differs != "" {
		text += ". What differs: " + a.Differs
	}
	return text
}

// tested says how much of a claim was put to the test: "3 of 10 networks, 1 of 2 placements".
func tested(e insight.Extent) string {
	var parts []string
	for _, p := range []struct {
		share insight.Share
		what  string
	}{{e.Networks, "network"}, {e.Placements, "placement"}, {e.Settings, "setting"}} {
		if p.share.Tested < p.share.Of {
			parts = append(parts, fmt.Sprintf("%d of %d %s", p.share.Tested, p.share.Of, agree(p.share.Of, p.what, p.what+"s")))
		}
	}
	return strings.Join(parts, ", ")
}

// missing lists what a claim was judged without by reason, in the order in which they come.
func missing(all []insight.Missing, format, separator string) string {
	var texts []string
	for why, own := range insight.By(all, func(m insight.Missing) string { return m.Why }) {
		var what []string
		for _, m := range own {
			what = gather.Once(what, m.What)
		}
		texts = append(texts, fmt.Sprintf(format, List(what), why))
	}
	return strings.Join(texts, separator)
}

// figures are the figures of a part's decisive comparison, and which one that is where the part makes several.
func figures(p insight.ClaimPart) string {
	var about []string
	if p.Settings > 1 {
		about = append(about, Load(p.Decisive.A.Setting()))
	}
	if p.Alike < p.Of {
		about = append(about, fmt.Sprintf("%d of %d comparisons", p.Alike, p.Of))
	}
	var text string
	if p.Correlation != nil {
		text = Correlation(*p.Correlation)
	} else {
		text = phrase(p.Clause, p.Decisive, p.Verdict)
	}
	if len(about) > 0 {
		text += " (" + strings.Join(about, "; ") + ")"
	}
	return text
}

// phrase gives the figures of one comparison, in the terms of its clause.
func phrase(clause *study.Clause, c insight.ClaimComparison, verdict string) string {
	name, against := insight.Name(c.A.Network, c.A.Path), insight.Name(c.B.Network, c.B.Path)
	bare := clause.Low == study.Amount{} && clause.High == study.Amount{}
	switch {
	case clause.OfEffect():
		return fmt.Sprintf("%s %s from %s to %s", name, figure(clause, c, 1), clause.From, clause.To)
	case clause.Relation == study.Changes:
		return fmt.Sprintf("%s %s at %s, %s at %s", name, share(c.DeltaA), clause.From, share(c.DeltaB), clause.To)
	case bare && c.DeltaA.Ratio > 0 && c.DeltaB.Ratio > 0:
		next := ""
		if verdict == insight.Confirmed {
			next = "next "
		}
		return fmt.Sprintf("%s %s, %s%s %s", name, share(c.DeltaA), next, against, share(c.DeltaB))
	case clause.Relation == study.EachOther && c.Estimate.Center < 0:
		return fmt.Sprintf("%s %s against %s", against, figure(clause, c, -1), name)
	}
	return fmt.Sprintf("%s %s against %s", name, figure(clause, c, 1), against)
}

// share is a delta with its interval: "+2.5% [2.0, 2.9]".
func share(d result.Delta) string {
	if d.RatioLow == nil || d.RatioHigh == nil {
		return spanned("%", 100*(d.Ratio-1), nil, fmt.Sprintf("%d of %d builds", d.Blocks, max(d.Need, d.Blocks)))
	}
	return spanned("%", 100*(d.Ratio-1), []float64{100 * (*d.RatioLow - 1), 100 * (*d.RatioHigh - 1)}, "")
}

// figure is a comparison with its interval, in the unit of the claim; sign -1 sees it from the other side.
func figure(clause *study.Clause, c insight.ClaimComparison, sign float64) string {
	e := c.Estimate
	in, unit := func(x float64) float64 { return 100 * math.Expm1(sign*x) }, "%"
	switch {
	case clause.InTime():
		in, unit = func(x float64) float64 { return 1e6 * sign * x }, " µs"
	case c.Linear:
		in, unit = func(x float64) float64 { return 100 * sign * x }, " points"
	}
	if !e.HasInterval {
		return spanned(unit, in(e.Center), nil, fmt.Sprintf("%d of %d builds", e.Builds, e.Need))
	}
	low, high := in(e.Low), in(e.High)
	return spanned(unit, in(e.Center), []float64{min(low, high), max(low, high)}, "")
}

// spanned prints a figure with its interval, or with what stands in for one, to a decimal that the interval bears.
func spanned(unit string, center float64, interval []float64, instead string) string {
	decimals := 1
	if interval != nil && interval[1]-interval[0] > 20 || math.Abs(center) >= 100 {
		decimals = 0
	} else if math.Abs(center) < 1 && unit != "%" {
		decimals = 2
	}
	number := func(x float64) string {
		text := strconv.FormatFloat(x, 'f', decimals, 64)
		if strings.Trim(text, "-0.") == "" {
			return strings.TrimPrefix(text, "-")
		}
		return text
	}
	text := number(center)
	if !strings.HasPrefix(text, "-") && strings.Trim(text, "0.") != "" {
		text = "+" + text
	}
	if interval == nil {
		return text + unit + " (" + instead + ")"
	}
	return text + unit + " [" + number(interval[0]) + ", " + number(interval[1]) + "]"
}

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

// OwnClaims says whether a run's claims are its user's: those of the built-in studies were published by others, and are for who asks.
func OwnClaims(run result.Run) bool {
	_, builtin := studies.Find(run.Study)
	return !builtin && len(run.Claims) > 0
}
