package terminal

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
)

// WriteComparison prints what changed between two runs on w, which is the terminal t: first what differs between their
// environments, then a table for each setting, last the outcome in a sentence, for whoever reads only the end of a log.
func WriteComparison(w io.Writer, c result.Comparison, t ui.Terminal) error {
	buffer := bufio.NewWriter(w)
	p := &page{w: buffer, terminal: t}
	p.line(piece{"compare", ui.Bold})
	p.entry("old", comparedRun(c.Old))
	p.entry("new", comparedRun(c.New))
	p.differences(c)
	for _, g := range insight.Groups(c) {
		p.changes(c, g)
	}
	if len(c.Unpaired)+len(c.Notes) > 0 || len(comparisonWarnings(c)) > 0 {
		p.title("What else to know", "")
		p.list("only in", lonely(c))
		p.list("note", c.Notes)
		p.list("warning", comparisonWarnings(c))
	}
	p.line()
	style := map[string]ui.Style{
		string(stats.Regressed): ui.Red, string(stats.Improved): ui.Green, string(stats.Same): ui.Blue,
	}[c.Verdict]
	for _, line := range ui.Wrap(p.terminal.Text(c.Says), p.terminal.Width) {
		p.line(piece{line, style})
	}
	return buffer.Flush()
}

// comparedRun is a run in a line.
func comparedRun(r result.ComparedRun) string {
	builds := fmt.Sprintf("%d builds", r.Builds)
	if r.Builds == 1 {
		builds = "1 build"
	}
	parts := []string{r.Run, r.Started.UTC().Format("2006-01-02 15:04 UTC"), r.Testbed, builds, ended(r.Ended)}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " · ")
}

// arrow stands between what was and what is.
func (p *page) arrow() string {
	if p.terminal.Unicode {
		return "→"
	}
	return "->"
}

// whereMost is how many devices a difference names.
const whereMost = 3

// differences says what the runs' environments have not in common.
func (p *page) differences(c result.Comparison) {
	p.title("What differs between the runs", "")
	if words.Elsewhere(c) == "" {
		p.paragraph(piece{}, words.Alike(c))
	}
	label := ""
	for _, d := range c.Differences {
		text := d.What + ": " + words.Recorded(d.Old) + " " + p.arrow() + " " + words.Recorded(d.New)
		if n := len(d.Where); n > whereMost {
			text += fmt.Sprintf(" (%s and %d more)", strings.Join(d.Where[:whereMost], ", "), n-whereMost)
		} else if n > 0 {
			text += " (" + strings.Join(d.Where, ", ") + ")"
		}
		shown := d.Group
		if shown == label {
			shown = ""
		}
		label = d.Group
		p.entry(shown, text)
	}
	if words.Elsewhere(c) != "" {
		p.paragraph(piece{}, "So only deltas are compared, each against the baseline of its own run.")
	}
}

// changes prints the table of a group.
func (p *page) changes(c result.Comparison, g insight.Group) {
	first := g.Changes[0]
	title := words.Load(first.Setting()) + " · " + words.At(first.Placement) + " · " + first.Metric
	if !first.Headline {
		title += " (reported, not judged)"
	}
	context := words.Context(g, c, p.arrow())
	if ui.Columns(p.terminal.Text(title+context))+2 <= p.terminal.Width {
		p.title(title, context)
	} else {
		p.title(title, "")
		p.paragraph(piece{}, context)
	}
	drawn := make([]result.Delta, len(g.Changes))
	for i, change := range g.Changes {
		drawn[i] = asDelta(change)
	}
	p.grid(p.comparisonLayout(c, g, drawn), drawn, insight.MarginOf(c, first), func(row int) ui.Style { return verdictStyle(g.Changes[row].Verdict) })
}

// asDelta is a change as the bars draw it: no change is the baseline's place.
func asDelta(c result.Change) result.Delta {
	return result.Delta{
		Ratio: c.Change, RatioLow: c.ChangeLow, RatioHigh: c.ChangeHigh, Difference: c.Shift, DifferenceLow: c.ShiftLow,
		DifferenceHigh: c.ShiftHigh, Unit: c.Unit, Blocks: min(c.Old.Blocks, c.New.Blocks), Need: c.Need,
	}
}

// verdictStyle is the colour of a verdict on a change.
func verdictStyle(verdict string) ui.Style {
	switch stats.Verdict(verdict) {
	case stats.Regressed:
		return ui.Red
	case stats.Improved:
		return ui.Green
	case stats.Same:
		return ui.Blue
	}
	return ui.Yellow
}

// moved is how far a delta moved.
func moved(drawn result.Delta) string {
	if drawn.Ratio == 0 {
		return words.Added(drawn)
	}
	return percent(drawn.Ratio, drawn) + "%"
}

// movedBetween is the interval of a change, or how many builds it takes.
func movedBetween(c result.Change, drawn result.Delta) string {
	switch {
	case !insight.HasInterval(drawn):
		return fmt.Sprintf("%d and %d of %d builds", c.Old.Blocks, c.New.Blocks, c.Need)
	case drawn.Ratio == 0:
		return fmt.Sprintf("[%+.2f, %+.2f]", 100**drawn.DifferenceLow, 100**drawn.DifferenceHigh)
	}
	return "[" + percent(*drawn.RatioLow, drawn) + ", " + percent(*drawn.RatioHigh, drawn) + "]"
}

// lonely names the deltas that only one of the runs has, those with the same reason together.
func lonely(c result.Comparison) []string {
	type group struct{ in, why string }
	var order []group
	names := map[group][]string{}
	for _, u := range c.Unpaired {
		g := group{u.In, u.Why}
		if names[g] == nil {
			order = append(order, g)
		}
		names[g] = append(names[g], fmt.Sprintf("%s (%s, %s)", insight.Name(u.Network, u.Path), words.Load(u.Setting()), words.At(u.Placement)))
	}
	all := make([]string, len(order))
	for i, g := range order {
		named := names[g]
		if len(named) > listMost {
			named = append(slices.Clone(named[:listMost]), fmt.Sprintf("%d more", len(named)-listMost))
		}
		all[i] = fmt.Sprintf("the %s run: %s: %s", g.in, strings.Join(named, ", "), g.why)
	}
	return all
}

// comparisonWarnings are those of the judged changes, each once.
func comparisonWarnings(c result.Comparison) []string {
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

// comparisonLayout chooses the columns before and after the bar.
func (p *page) comparisonLayout(c result.Comparison, g insight.Group, drawn []result.Delta) layout {
	cells := func(title string, right bool, text func(i int) string) column {
		made := column{title: title, right: right}
		for i := range g.Changes {
			made.cells = append(made.cells, piece{text(i), ui.Plain})
		}
		return made
	}
	name := cells("", false, func(i int) string {
		return ui.Shorten(p.terminal.Text(insight.Name(g.Changes[i].Network, g.Changes[i].Path)), nameMost)
	})
	moved := cells("change", true, func(i int) string { return moved(drawn[i]) })
	title := fmt.Sprintf("%.4g%% interval", 100*c.Confidence)
	if c.Exact {
		title = "range over seeds"
	}
	interval := cells(title, true, func(i int) string { return movedBetween(g.Changes[i], drawn[i]) })
	baseline := ui.Shorten(p.terminal.Text(g.Changes[0].Baseline), nameMost/2)
	was := cells("old vs "+baseline, true, func(i int) string { return words.Against(g.Changes[i].Old, g.Changes[i].Unit) })
	is := cells("new vs "+baseline, true, func(i int) string { return words.Against(g.Changes[i].New, g.Changes[i].Unit) })
	verdict := cells("verdict", false, func(i int) string { return g.Changes[i].Verdict })
	for i := range verdict.cells {
		verdict.cells[i].style = verdictStyle(g.Changes[i].Verdict)
	}
	head, last := []column{name, moved, interval}, []column{verdict}
	return p.choose(
		layout{before: head, after: []column{was, is, verdict}, least: barLeast}, layout{before: head, after: last, least: barLeast},
		layout{before: head, after: last}, layout{before: []column{name, moved}, after: last, least: never},
	)
}
