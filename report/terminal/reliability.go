package terminal

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
)

// listMost is how many failed trials and the like are named one by one; the rest are counted.
const listMost = 5

// reliability says how reliable the figures are, what was left out of them and what could not be measured.
func (p *page) reliability() {
	p.title("Reliability", "")
	p.entry("null check", p.nullCheck())
	p.entry("spread", p.spread())
	p.entry("intervals", p.intervals())
	p.entry("seeds", p.seeds())
	p.entry("left out", words.LeftOut(p.run.Account))
	p.list("failed", p.failed())
	p.list("misrouted", p.misrouted())
	p.entry("path", words.Proved(p.run.Paths))
	p.entry("services", words.Services(p.run.Services))
	p.list("clients", words.Clients(p.run.Clients))
	p.list("checks", p.otherChecks())
	p.list("unsupported", p.absent(true))
	p.list("skipped", p.absent(false))
	p.list("warning", p.warnings())
	p.list("doctor", words.Findings(p.run.Environment.Findings))
	p.usedBy()
	p.list("note", p.run.Notes)
}

// labelWidth is the room for the labels of entries.
const labelWidth = 13

// entry prints a labelled paragraph unless it is empty.
func (p *page) entry(label, text string) {
	if text != "" {
		p.paragraph(piece{fmt.Sprintf("%-*s", labelWidth, label), ui.Dim}, text)
	}
}

// list prints entries under one label, the first few of them.
func (p *page) list(label string, texts []string) {
	for i, text := range texts {
		if i == listMost && len(texts) > listMost+1 {
			p.entry("", fmt.Sprintf("and %d more, in %s", len(texts)-i, result.ResultFile))
			return
		}
		p.entry(label, text)
		label = ""
	}
}

// nullCheck is the noise floor of the run: what the baseline differs by from itself.
func (p *page) nullCheck() string {
	var floors, points []float64 // of metrics with a ratio, and of those without
	var failed []string
	unknown, baseline := 0, "the baseline"
	for _, n := range p.run.Null {
		if !n.Headline {
			continue
		}
		baseline = n.Baseline
		if insight.Differs(n) {
			failed = append(failed, fmt.Sprintf("%s %s (%s)", words.Load(n.Setting), words.At(n.Placement), words.Percent(n.Ratio)))
		}
		switch {
		case n.Floor == nil:
			unknown++
		case n.Ratio > 0:
			floors = append(floors, *n.Floor)
		default:
			points = append(points, *n.Floor)
		}
	}
	switch {
	case len(floors)+len(points) == 0 && unknown == 0:
		return "the baseline was not held against itself: there is no noise floor"
	case len(floors)+len(points) == 0:
		return fmt.Sprintf("too few builds to hold %s against itself: the noise floor is unknown", baseline)
	}
	var within []string
	if len(floors) > 0 {
		within = append(within, p.share(slices.Max(floors)))
	}
	if len(points) > 0 {
		within = append(within, fmt.Sprintf("%.2f points of loss", 100*slices.Max(points)))
	}
	text := fmt.Sprintf("%s, set up twice, differs from itself by at most %s", baseline, strings.Join(within, " or "))
	if len(floors) > 1 {
		text += fmt.Sprintf(" in each of %d settings (median %s)", len(floors), p.share(stats.Median(floors)))
	}
	text += ": a change below the floor of its setting is never called real"
	if len(failed) > 0 {
		text += fmt.Sprintf(". It failed in %s: there %s differs from itself by more than chance, so take changes of that size with doubt",
			strings.Join(failed, "; "), baseline)
	}
	return text
}

// spread is how the delta of a single round scatters, and where that comes from: the median over all headline deltas.
func (p *page) spread() string {
	if p.run.Exact != nil {
		return "" // there is one round in each build, and nothing random in it
	}
	var builds, rounds, bursts []float64
	var worst result.Delta
	for _, d := range p.run.Deltas {
		if d.Headline && d.Variance != nil {
			builds = append(builds, d.Variance.Builds)
			rounds = append(rounds, d.Variance.Rounds)
			bursts = append(bursts, d.Variance.Bursts)
			if worst.Variance == nil || d.Variance.Rounds > worst.Variance.Rounds {
				worst = d
			}
		}
	}
	if len(builds) == 0 {
		return ""
	}
	text := fmt.Sprintf("%.2f%% between builds, %.2f%% between rounds", 100*stats.Median(builds), 100*stats.Median(rounds))
	if within := stats.Median(bursts); within > 0 {
		text += fmt.Sprintf(", %.2f%% within bursts", 100*within)
	}
	text += " (standard deviation of one round's delta"
	if worst.Variance.Rounds > stats.Median(rounds) {
		text += fmt.Sprintf("; median of %d deltas, at worst %.2f%% between builds and %.2f%% between rounds, of %s",
			len(rounds), 100*slices.Max(builds), 100*worst.Variance.Rounds, worst.Cell)
	}
	return text + ")"
}

// intervals says what the intervals are of.
func (p *page) intervals() string {
	if p.spread() == "" {
		return ""
	}
	return words.Repeating(p.run)
}

// found are the failed checks for which wanted holds, by key.
func (p *page) found(wanted func(check string) bool, key func(c result.Check) string) iter.Seq2[string, []result.Check] {
	return insight.By(slices.DeleteFunc(slices.Clone(p.run.Checks), func(c result.Check) bool { return c.OK || !wanted(c.Check) }), key)
}

// failed names the trials that did not run to their end: of those with the same cause the first, and how many they are.
func (p *page) failed() []string {
	var all []string
	finished := func(check string) bool { return check == insight.CheckFinished }
	for root, own := range p.found(finished, func(c result.Check) string { return cause(c.Observed) }) {
		text := own[0].Trial + ": " + own[0].Observed
		if n := len(own) - 1; n > 0 {
			text += fmt.Sprintf(" (and %s:%s)", unit.Counted(n, "more trial"), root)
		}
		all = append(all, text)
	}
	return all
}

// misrouted names the trials whose packets went another way, those with the same finding together.
func (p *page) misrouted() []string {
	var all []string
	path := func(check string) bool { return check == insight.CheckPath }
	for observed, own := range p.found(path, func(c result.Check) string { return c.Observed }) {
		text := own[0].Trial + ": " + observed
		if n := len(own) - 1; n > 0 {
			text += fmt.Sprintf(" (and %s)", unit.Counted(n, "more trial"))
		}
		all = append(all, text+"; in no delta")
	}
	return all
}

// otherCheck reports whether a check has no entry of its own.
func otherCheck(check string) bool {
	return !slices.Contains([]string{insight.CheckFinished, insight.CheckMeasured, insight.CheckPath, insight.CheckNull}, check)
}

// otherChecks counts the checks of each kind that found something, with the first of them.
func (p *page) otherChecks() []string {
	var all []string
	for name, own := range p.found(otherCheck, func(c result.Check) string { return c.Check }) {
		text := fmt.Sprintf("%s in %s: %s where %s was expected", name, own[0].Trial, own[0].Observed, own[0].Expected)
		if n := len(own) - 1; n > 0 {
			text += fmt.Sprintf(", and in %d more", n)
		}
		all = append(all, text)
	}
	slices.Sort(all) // by the names of the checks
	return all
}

// absent lists why cells were not measured, each reason once: of what is unsupported with the networks, else with the number
// of cells.
func (p *page) absent(unsupported bool) []string {
	var all []string
	for _, a := range insight.Absences(p.run.Cells) {
		if a.Unsupported == unsupported {
			all = append(all, words.Absent(a)+": "+a.Why)
		}
	}
	return all
}

// warnings are the warnings of the headline deltas, each once.
func (p *page) warnings() []string {
	var all []string
	for _, d := range append(slices.Clone(p.run.Null), p.run.Deltas...) {
		for _, w := range d.Warnings {
			if text := d.Cell + ": " + w; d.Headline && !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

// seeds says how far the seeds of an exact run lie apart: the widest range over its headline deltas, and the median.
func (p *page) seeds() string {
	if p.run.Exact == nil {
		return ""
	}
	var widths []float64
	for _, d := range p.run.Deltas {
		if d.Headline && d.RatioLow != nil && d.RatioHigh != nil {
			widths = append(widths, (*d.RatioHigh-*d.RatioLow)/d.Ratio)
		}
	}
	if len(widths) == 0 {
		return ""
	}
	return fmt.Sprintf("the same network in guests of other seeds differs by %s at most, by %s in the median", p.share(slices.Max(widths)), p.share(stats.Median(widths)))
}

// share prints a small share in percent, of an exact run to where its digits end.
func (p *page) share(x float64) string {
	if p.run.Exact != nil {
		return fmt.Sprintf("%.3f%%", 100*x)
	}
	return fmt.Sprintf("%.1f%%", 100*x)
}
