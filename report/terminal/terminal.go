// Package terminal prints a run for a person: a table for each setting with the conclusion in a sentence, then the
// reliability of the figures, then what to change. The end of the output is what stands on the screen, so the answer in two lines and
// the next command come last.
package terminal

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
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
	if !v.Advice {
		p.figures()
	}
	p.request()
	p.advice()
	p.goals()
	p.summary()
	return buffer.Flush()
}

// figures prints the tables, and what they rest on.
func (p *page) figures() {
	p.settings(insight.Parts(p.run))
	p.exactComparison()
	p.effects()
	p.links()
	p.breakdown()
	if p.view.Verbose {
		p.claims()
		p.reliability()
		return
	}
	p.brief()
}

// page is a report being printed. Errors of its writer are kept there until the end.
type page struct {
	w        *bufio.Writer
	terminal ui.Terminal
	view     View
	run      result.Run
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
	e := p.run.Environment
	var facts []string
	add := func(given bool, format string, a ...any) {
		if given {
			facts = append(facts, fmt.Sprintf(format, a...))
		}
	}
	add(p.run.Testbed != "", "%s", p.run.Testbed)
	if c := e.Cluster; c != nil {
		add(c.Version != "", "Kubernetes %s", c.Version)
		add(c.Network != "", "%s", c.Network)
		add(len(c.Nodes) > 0, "%s", unit.Counted(len(c.Nodes), "node"))
	}
	add(e.Kernel != "", "Linux %s", strings.TrimPrefix(e.Kernel, "Linux "))
	add(e.CPU.Count > 0, "%d CPUs", e.CPU.Count)
	add(e.Virtual != "", "virtual machine (%s)", e.Virtual)
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
