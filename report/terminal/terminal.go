// Package terminal prints a run for a person: first the answer and what to change, then a table for each placement of the load that the
// study is about, then what the figures rest on and the next command. A verbose view has all tables, and all that was checked.
package terminal

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
)

// View is how a run is to be shown.
type View struct {
	ui.Terminal
	// Verbose shows what the figures rest on, each claim, and every opportunity; else they are summed up in a line each.
	Verbose bool
	// Pairs shows each two networks of a setting, held directly against one another.
	Pairs bool
	// Advice leaves the tables out: what to change alone.
	Advice bool
	// Request is a request of the user's own, whose share each network is said to be; the zero Request is none.
	Request insight.Request
	// Folder is the run folder as commands name it, "" where it is not known.
	Folder string
	// Program is how the user calls netdelta, "" by its name.
	Program string
}

// Write prints a run on w. Deltas, null check, checks, claims and advice must be filled in.
func Write(w io.Writer, run result.Run, v View) error {
	buffer := bufio.NewWriter(w)
	p := &page{w: buffer, terminal: v.Terminal, view: v, run: run}
	p.head()
	switch {
	case v.Advice:
		p.advice()
	case v.Verbose:
		p.summary()
		p.figures()
		p.advice()
	default:
		p.summary()
		p.briefAdvice()
		p.answered()
		p.basis()
	}
	p.request()
	p.goals()
	p.next()
	return buffer.Flush()
}

// figures prints all tables, and what they rest on.
func (p *page) figures() {
	p.settings(insight.Parts(p.run))
	p.exactComparison()
	p.effects()
	p.links()
	p.breakdown()
	p.claims()
	p.reliability()
}

// page is a report being printed. Errors of its writer are kept there until the end.
type page struct {
	w        *bufio.Writer
	terminal ui.Terminal
	view     View
	run      result.Run
	// explained are the regimes that the page has explained.
	explained []string
	// unnamed are the networks whose products a table has no room for.
	unnamed []string
}

// line prints pieces as a line, without blanks at its end.
func (p *page) line(pieces ...piece) {
	var b strings.Builder
	for i, piece := range pieces {
		text := p.terminal.Text(piece.text)
		if i == len(pieces)-1 {
			text = strings.TrimRight(text, " ")
		}
		b.WriteString(p.terminal.Paint(piece.style, text))
	}
	p.w.WriteString(b.String())
	p.w.WriteByte('\n')
}

// piece is text in one style. It need not be clean.
type piece struct {
	text  string
	style ui.Style
}

// paragraph prints text over as many lines as it takes, the later ones indented like what follows the lead.
func (p *page) paragraph(lead piece, text string) {
	indent := ui.Columns(lead.text)
	for i, line := range ui.Wrap(p.terminal.Text(text), max(p.terminal.Width-indent, 20)) {
		if i > 0 {
			lead = piece{strings.Repeat(" ", indent), ui.Plain}
		}
		p.line(lead, piece{text: line})
	}
}

// title prints a heading after an empty line, with something at the right end if there is room for it.
func (p *page) title(text, right string) {
	p.line()
	text, right = p.terminal.Text(text), p.terminal.Text(right)
	gap := p.terminal.Width - ui.Columns(text) - ui.Columns(right)
	if right == "" || gap < 2 {
		p.line(piece{ui.Shorten(text, p.terminal.Width), ui.Bold})
		if right != "" {
			p.line(piece{ui.Shorten(right, p.terminal.Width), ui.Dim})
		}
		return
	}
	p.line(piece{text, ui.Bold}, piece{strings.Repeat(" ", gap), ui.Plain}, piece{right, ui.Dim})
}

// head says what was asked and how it was run.
func (p *page) head() {
	lead := piece{p.run.Study + "  ", ui.Bold}
	if p.run.Question == "" {
		p.line(piece{p.run.Study, ui.Bold})
	} else {
		p.paragraph(lead, p.run.Question)
	}
	p.paragraph(piece{}, strings.Join(p.facts(), " · "))
	if says := words.ExactSays(p.run); says != "" {
		p.line()
		p.paragraph(piece{}, says)
	}
	if len(p.run.Deltas)+len(p.run.Effects) == 0 {
		p.line()
		p.paragraph(piece{}, "Nothing could be compared: no cell was measured together with the baseline.")
	}
}

// facts are how the run was made.
func (p *page) facts() []string {
	facts := words.Machine(p.run)
	add := func(given bool, format string, a ...any) {
		if given {
			facts = append(facts, fmt.Sprintf(format, a...))
		}
	}
	builds := 0
	for _, d := range p.run.Deltas {
		builds = max(builds, d.Blocks)
	}
	for _, e := range p.run.Effects {
		builds = max(builds, e.Blocks)
	}
	add(builds == 1, "1 build")
	add(builds > 1, "%d builds", builds)
	took := p.run.Took().Round(time.Second)
	add(took > 0, "%s", took)
	add(p.run.Ended != "", "%s", ended(p.run.Ended))
	add(p.run.Seed != 0, "seed %d", p.run.Seed)
	return facts
}

// ended says how a run ended.
func ended(how string) string {
	return cmp.Or(map[string]string{
		"resolved":         "ended with every delta resolved",
		"resolved in part": "ended with every delta resolved but those that were given up",
		"budget":           "ended by the time budget",
		"builds":           "ended after the builds that were asked for",
		"interrupted":      "interrupted",
		"failed":           "failed before its end",
		"running":          "not finished",
	}[how], how)
}

// WriteComparison prints what changed between two runs on w, which is the terminal t: first what differs between their
// environments, then a table for each setting, last the outcome in a sentence, for readers of the end of a log.
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
	if len(c.Unpaired)+len(c.Notes) > 0 || len(words.ComparisonWarnings(c)) > 0 {
		p.title("What else to know", "")
		p.list("only in", words.OnlyIn(c))
		p.list("note", c.Notes)
		p.list("warning", words.ComparisonWarnings(c))
	}
	p.line()
	style := verdictStyle(c.Verdict)
	if style == ui.Yellow { // nothing is known
		style = ui.Plain
	}
	for _, line := range ui.Wrap(p.terminal.Text(c.Says), p.terminal.Width) {
		p.line(piece{line, style})
	}
	return buffer.Flush()
}

// comparedRun is a run in a line.
func comparedRun(r result.ComparedRun) string {
	parts := []string{r.Run, r.Started.UTC().Format("2006-01-02 15:04 UTC"), r.Testbed, unit.Counted(r.Builds, "build"), ended(r.Ended)}
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

// differences says how the runs' environments differ.
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
	title := words.ChangesTitle(first)
	context := words.Context(g, c, p.arrow())
	if ui.Columns(p.terminal.Text(title+context))+2 <= p.terminal.Width {
		p.title(title, context)
	} else {
		p.title(title, "")
		p.paragraph(piece{}, context)
	}
	t := table{confidence: c.Confidence, exact: c.Exact}
	for _, change := range g.Changes {
		t.deltas = append(t.deltas, insight.ChangeAsDelta(change))
	}
	p.grid(p.comparisonLayout(t, g), t.deltas, insight.MarginOf(c, first), t.style)
}

// comparisonLayout chooses the columns before and after the bar.
func (p *page) comparisonLayout(t table, g insight.Group) layout {
	cells := func(title string, right bool, text func(c result.Change) string) column {
		made := column{title: title, right: right}
		for _, c := range g.Changes {
			made.cells = append(made.cells, piece{text(c), ui.Plain})
		}
		return made
	}
	interval := t.intervalColumn()
	for i, c := range g.Changes {
		if !insight.HasInterval(t.deltas[i]) {
			interval.cells[i].text = words.ChangeInterval(c)
		}
	}
	against := p.against(g.Changes[0].Baseline)
	was := cells("old "+against, true, func(c result.Change) string { return words.Against(c.Old, c.Unit) })
	is := cells("new "+against, true, func(c result.Change) string { return words.Against(c.New, c.Unit) })
	name, moved, last := p.nameColumn(t), t.costColumn("change"), []column{t.verdictColumn()}
	head := []column{name, moved, interval}
	return p.choose(
		layout{before: head, after: []column{was, is, last[0]}, least: barLeast}, layout{before: head, after: last, least: barLeast},
		layout{before: head, after: last}, layout{before: []column{name, moved}, after: last, least: never},
	)
}

// WriteRepeated prints what several runs say of another one on w, which is the terminal t.
func WriteRepeated(w io.Writer, runs []insight.Measured, all []insight.Repeated, t ui.Terminal) error {
	buffer := bufio.NewWriter(w)
	p := &page{w: buffer, terminal: t}
	p.line(piece{"another run", ui.Bold})
	for i, m := range runs {
		p.entry(fmt.Sprintf("run %d", i+1), comparedRun(result.ComparedRun{Run: m.Run.Run, Started: m.Run.Started, Testbed: m.Run.Testbed, Ended: m.Run.Ended, Builds: builds(m.Run)}))
	}
	type key struct {
		setting result.Setting
		metric  string
	}
	for k, group := range insight.By(all, func(r insight.Repeated) key { return key{r.Delta.Setting, r.Delta.Metric} }) {
		p.title(words.Load(k.setting)+" · "+words.At(k.setting.Placement)+" · "+k.metric, "")
		width := 0
		for _, r := range group {
			width = max(width, ui.Columns(insight.Name(r.Delta.Network, r.Delta.Path)))
		}
		p.line(piece{fmt.Sprintf("%-*s  %6s  %-18s  %-18s  %s", width, "", "mean", "its 95% interval", "another run, 95%", "the runs"), ui.Dim})
		for _, r := range group {
			mean, next, figures := words.Repeated(r)
			p.line(piece{text: fmt.Sprintf("%-*s  %6s  %-18s  %-18s  %s", width, insight.Name(r.Delta.Network, r.Delta.Path),
				words.Share(r, r.Prediction.Center), mean, next, strings.Join(figures, " "))})
		}
	}
	p.line()
	p.paragraph(piece{}, words.RepeatedSays(all, len(runs), insight.Boots(runs)))
	return buffer.Flush()
}

// builds is the largest number of builds behind any delta of a run.
func builds(run result.Run) int {
	n := 0
	for _, d := range run.Deltas {
		n = max(n, d.Blocks)
	}
	return n
}
