package insight

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"netdelta/experiment/study"
	"netdelta/result"
)

// part is what a claim says in one placement, by one of its clauses.
type part struct {
	clause    *study.Clause
	placement result.Placement
	answers   []answer
}

// parts sorts answers by clause and placement, in the order in which they come.
func parts(answers []answer) []part {
	var all []part
	for _, a := range answers {
		i := slices.IndexFunc(all, func(p part) bool { return p.clause == a.clause && p.placement == a.a.Placement })
		if i < 0 {
			i, all = len(all), append(all, part{clause: a.clause, placement: a.a.Placement})
		}
		all[i].answers = append(all[i].answers, a)
	}
	return all
}

// measured tells a run's figures for a claim: for each placement those of the comparison on which the verdict hangs. Where
// the parts of a claim come out differently, each has its own verdict.
func (d *docket) measured(clauses []study.Clause, answers []answer, verdict string, missing []lack) string {
	all := parts(answers)
	mixed := slices.ContainsFunc(all, func(p part) bool { return conjunction(p.answers) != verdict })
	metrics := slices.ContainsFunc(clauses, func(c study.Clause) bool { return c.Metric != clauses[0].Metric })
	texts := make([]string, len(all))
	for i, p := range all {
		own := conjunction(p.answers)
		var label []string
		if mixed {
			label = append(label, own)
		}
		if metrics {
			label = append(label, p.clause.Metric)
		}
		label = append(label, strings.ToLower(Where(p.placement)))
		texts[i] = strings.Join(label, " ") + ": " + d.figures(p, own)
	}
	text := strings.Join(texts, "; ")
	if len(missing) > 0 {
		text += ". Not tested: " + leftOut(missing)
	}
	return text
}

// figures are those of a part's comparison that is nearest to another verdict, or furthest against the claim.
func (d *docket) figures(p part, verdict string) string {
	var shown *answer
	count := 0
	settings := map[result.Setting]bool{}
	for i := range p.answers {
		a := &p.answers[i]
		settings[a.a.Setting()] = true
		if a.verdict != verdict {
			continue
		}
		if count++; shown == nil || a.ease() < shown.ease() {
			shown = a
		}
	}
	var about []string
	if len(settings) > 1 {
		about = append(about, Load(shown.a.Setting()))
	}
	if count < len(p.answers) {
		about = append(about, fmt.Sprintf("%d of %d comparisons", count, len(p.answers)))
	}
	text := d.phrase(shown, verdict)
	if len(about) > 0 {
		text += " (" + strings.Join(about, "; ") + ")"
	}
	return text
}

// ease is how far an estimate lies inside of what its clause allows; it is negative outside.
func (a *answer) ease() float64 {
	x := a.estimate.Center
	if a.changes() {
		return math.Abs(x)
	}
	return min(x-a.low, a.high-x)
}

// phrase gives the figures of one comparison, in the terms of its clause.
func (d *docket) phrase(a *answer, verdict string) string {
	one, another := d.deltas[measure{a.a.ID, a.metric.name}], d.deltas[measure{a.b.ID, a.metric.name}]
	name, against := Name(a.a.Network, a.a.Path), Name(a.b.Network, a.b.Path)
	bare := a.clause.Low == study.Amount{} && a.clause.High == study.Amount{}
	switch {
	case a.clause.OfEffect():
		return fmt.Sprintf("%s %s from %s to %s", name, a.figure(), a.clause.From, a.clause.To)
	case a.changes():
		return fmt.Sprintf("%s %s at %s, %s at %s", name, share(one), a.clause.From, share(another), a.clause.To)
	case bare && one.Ratio > 0 && another.Ratio > 0:
		next := ""
		if verdict == Confirmed {
			next = "next "
		}
		return fmt.Sprintf("%s %s, %s%s %s", name, share(one), next, against, share(another))
	}
	if a.clause.Relation == study.EachOther && a.estimate.Center < 0 {
		swapped := *a
		swapped.meeting = a.reversed()
		return fmt.Sprintf("%s %s against %s", against, swapped.figure(), name)
	}
	return fmt.Sprintf("%s %s against %s", name, a.figure(), against)
}

// share is a delta with its interval: "+2.5% [2.0, 2.9]".
func share(d result.Delta) string {
	if d.RatioLow == nil || d.RatioHigh == nil {
		return spanned("%", 100*(d.Ratio-1), nil, fmt.Sprintf("%d of %d builds", d.Blocks, max(d.Need, d.Blocks)))
	}
	return spanned("%", 100*(d.Ratio-1), []float64{100 * (*d.RatioLow - 1), 100 * (*d.RatioHigh - 1)}, "")
}

// figure is the comparison itself with its interval, in the unit of the claim.
func (a *answer) figure() string {
	e := a.estimate
	in, unit := func(x float64) float64 { return 100 * math.Expm1(x) }, "%"
	switch {
	case a.clause.InTime():
		in, unit = func(x float64) float64 { return 1e6 * x }, " µs"
	case a.metric.linear:
		in, unit = func(x float64) float64 { return 100 * x }, " points"
	}
	if !e.HasInterval {
		return spanned(unit, in(e.Center), nil, fmt.Sprintf("%d of %d builds", e.Builds, e.Need))
	}
	return spanned(unit, in(e.Center), []float64{in(e.Low), in(e.High)}, "")
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

// byReason sorts what a claim speaks of in vain by the reasons, in the order in which they come.
func byReason(missing []lack) (reasons []string, whats map[string][]string) {
	whats = map[string][]string{}
	for _, l := range missing {
		if whats[l.why] == nil {
			reasons = append(reasons, l.why)
		}
		if !slices.Contains(whats[l.why], l.what) {
			whats[l.why] = append(whats[l.why], l.what)
		}
	}
	return reasons, whats
}

// leftOut lists what a claim was judged without: "ipip and ovs (not in this run), vxlan (unsupported here)".
func leftOut(missing []lack) string {
	reasons, whats := byReason(missing)
	texts := make([]string, len(reasons))
	for i, why := range reasons {
		texts[i] = list(whats[why]) + " (" + why + ")"
	}
	return strings.Join(texts, ", ")
}

// notTested says why a claim could not be judged at all, each reason with what it is about behind a colon: "not in this
// run: ipip and ovs; unsupported here: vxlan".
func notTested(missing []lack) string {
	reasons, whats := byReason(missing)
	texts := make([]string, len(reasons))
	for i, why := range reasons {
		texts[i] = why + ": " + list(whats[why])
	}
	return strings.Join(texts, "; ")
}
