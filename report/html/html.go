// Package html writes a run as one web page that needs nothing but itself: no network, no other file, and no script to be
// read. Charts are drawn here, as SVG; the script only adds readouts, filters and the choice of a theme. The page begins with
// the verdicts, for readers who have to decide, and goes on with the evidence, for readers who want to check.
//
// Nothing that comes from a study or a record can become markup: text goes through html/template, or through the same
// escaping where it stands in a drawing, and control characters are taken out of the page as a whole.
package html

import (
	"bufio"
	"cmp"
	_ "embed" // the parts of the page
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"

	"netdelta/insight"
	where "netdelta/insight/hops"
	"netdelta/report/flame"
	"netdelta/report/hops"
	pages "netdelta/report/page"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
)

//go:embed report.tmpl
var layout string

//go:embed style.css
var style string

//go:embed script.js
var script string

//go:embed view.js
var viewScript string

//go:embed request.js
var requestScript string

// scripts are the page's one script.
func scripts() string { return script + requestScript + viewScript }

// Option adds to a report what is not in the run's records.
type Option func(*page)

// WithStudy adds the study file as run, which says how to repeat the run.
func WithStudy(text []byte) Option { return func(p *page) { p.Study = string(text) } }

// WithHops adds where the time of a round trip goes on the way of each network: the others are compared with the first.
func WithHops(ways []where.Way) Option { return func(p *page) { p.where = ways } }

// WithFlame adds what a flame graph says, nil for nothing.
func WithFlame(s *flame.Summary) Option { return func(p *page) { p.Flame = s } }

// WithPart adds a section that a strategy has of its own, with its style.
func WithPart(title, style string, body template.HTML) Option {
	return func(p *page) { p.Part, p.PartTitle, p.partStyle = body, title, style }
}

// Text is text as a terminal shows it.
func Text(text string) template.HTML {
	return template.HTML(`<div class="scroll"><pre>` + template.HTMLEscapeString(text) + `</pre></div>`)
}

// Write writes the report of a run. Deltas, null check, checks, claims and advice must be filled in; There
// may be no trials: the page then lacks what only they show. A report of many cells draws its
// charts for some of them only and says so. The error is w's.
func Write(w io.Writer, run result.Run, trials *insight.Summaries, options ...Option) error {
	p := newPage(run, trials)
	for _, option := range options {
		option(p)
	}
	t, err := parsed()
	if err != nil {
		return err
	}
	buffer := bufio.NewWriterSize(w, 1<<16)
	if err := cmp.Or(t.Execute(&cleaner{buffer}, p), buffer.Flush()); err != nil {
		return fmt.Errorf("write the report of %s: %w", ui.Clean(run.Run), err)
	}
	return nil
}

// parsed is the page's template.
var parsed = sync.OnceValues(func() (*template.Template, error) {
	return template.New("report").Funcs(template.FuncMap{
		"exactSays": words.ExactSays, "exactComparison": words.ExactComparison, "exactRows": words.ExactRows,
		"spreads": words.Spreads, "splitParts": words.SplitParts, "replication": words.Replication, "services": words.Services,
		"load": words.Load, "title": words.Title, "where": words.Where, "name": insight.Name, "claimClass": claimClass, "thousands": unit.Thousands[uint64],
		"fixed":     func(x float64) string { return fmt.Sprintf("%.2f", x) },
		"goalClass": goalClass, "upper": strings.ToUpper,
		"spaced": func(text string) string { return strings.ReplaceAll(text, "-", " ") },
	}).Parse(layout)
})

// Style and Script are the page's own, as its template wants them.
func (p *page) Style() template.CSS { return template.CSS(p.styles()) }

func (p *page) styles() string { return pages.Palette + style + hops.Style + p.partStyle }

// Script is what the page can do beyond being read.
func (p *page) Script() template.JS { return template.JS(scripts()) }

// Policy is the page's content security policy.
func (p *page) Policy() string { return pages.Policy(scripts(), p.styles()) }

// cleaner takes control characters, and marks that turn the direction of writing, out of all that goes through it, line by
// line. A template writes whole strings, so no character is cut in two between writes.
type cleaner struct{ w *bufio.Writer }

// Write implements io.Writer.
func (c *cleaner) Write(text []byte) (int, error) {
	// The template escapes a plus, which half of the figures begin with, for the sake of documents that say no encoding.
	for line := range strings.Lines(strings.ReplaceAll(string(text), "&#43;", "+")) {
		line, ended := strings.CutSuffix(line, "\n")
		c.w.WriteString(ui.Clean(line))
		if ended {
			c.w.WriteByte('\n')
		}
	}
	_, err := c.w.Write(nil) // the first error of this writer stays
	return len(text), err
}
