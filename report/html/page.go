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
	"slices"
	"strings"
	"sync"

	"netdelta/insight"
	where "netdelta/insight/hops"
	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/report/flame"
	"netdelta/report/hops"
	pages "netdelta/report/page"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
)

// Limits that keep the page of a large run quick: it draws less of each and says so.
const (
	// inlineMost is how many folded settings are part of the page as it opens; what more there is a browser reads when it is unfolded.
	inlineMost = 8
	// figuresMost is how many settings have charts of distributions and series.
	figuresMost = 20
	// figuresOpen is how many charts of a kind are unfolded when the page opens.
	figuresOpen = 2
	// everyMetricMost is how many deltas may be drawn in all metrics; beyond, only the headlines have forest plots.
	everyMetricMost = 3000
	// saysFirst is how many effects stand on top of a run that is about them alone.
	saysFirst = 4
	// listMost is how many entries a list of checks or trials names one by one.
	listMost = 40
	// checksOpenMost is how many failed checks of a kind are unfolded when the page opens.
	checksOpenMost = 8
)

// page is a report: what its template shows, in the order in which it shows it. What takes work is computed once, by newPage.
type page struct {
	Run   result.Run
	Study string // study.yaml as run, "" if it was not given
	where []where.Way
	Flame *flame.Summary
	// Part is a section of the run's strategy, "" without one.
	Part                 template.HTML
	PartTitle, partStyle string

	account insight.Account
	palette palette
	stalls  map[string]bool   // the trials in which traffic stood still
	reasons map[string]string // why a cell has no delta
	// inOrder are the settings, of which the first so many are answered: those that the answer is about.
	inOrder  []*setting
	answered int

	Banners  []banner
	Rankings []ranking
	Pictures []picture // the rankings seen otherwise
	Cards    []card
	Filters  []filter
	Networks []string // the names of all series, for the filter of networks
	Glance   grid
	Settings []*setting
	// OthersElsewhere says that the page is too large to hold the other metrics of settings that are folded.
	OthersElsewhere bool
	// Axes are the marks that all rows of a metric share.
	Axes template.HTML
	// Absent are the networks and cells that were not measured, by reason.
	Absent []absence

	// Effects are what the study's factors do, and MoreEffects how many tables of them the page leaves out.
	Effects     []effect
	MoreEffects int

	Distributions, Series, CPU []figure
	// NotDrawn is how many settings have no charts for the size of the page.
	NotDrawn int
	Ways     []place
	Groups   []checks
}

// setting is what is shown of a setting.
type setting struct {
	ID     string
	Key    result.Setting
	Load   string // "tcp-rr, 300B"
	Where  string // "across nodes"
	Inline bool   // not left in a noscript element until it is unfolded
	// Reference is what the baseline measures, such as "host: p50 6.42 µs".
	Reference string
	Regime    string // what its regime is, in a sentence
	Says      string
	Bounded   string // what bounded the networks
	Forests   []forest
	Others    grid
	Missing   []absence

	part insight.Part
}

// newPage makes a page of a run.
func newPage(run result.Run, trials *insight.Summaries) *page {
	if trials == nil {
		trials = insight.Summarize(result.List(nil))
	}
	p := &page{Run: run, account: trials.Audit(), palette: newPalette(run.Cells)}
	p.Settings = settings(run)
	p.inOrder, p.answered = p.answeredFirst()
	p.stalls, p.reasons = p.stalled(), reasons(run.Checks)
	p.forests()
	p.effects()
	for _, s := range p.Settings {
		s.Missing = p.missing(s)
	}
	p.Banners, p.Cards, p.Absent, p.Groups = p.banners(), p.cards(), p.absences(), p.checks()
	p.Rankings, p.Filters, p.Networks = p.rankings(), p.filters(), p.networks()
	p.Pictures = p.pictures()
	p.Glance = p.glance()
	evidence := insight.Gather(run.Cells, trials)
	drawn := 0
	for _, s := range p.inOrder {
		if len(s.part.Null)+len(s.part.Deltas) == 0 && trials.Len() == 0 {
			continue
		}
		if drawn == figuresMost {
			p.NotDrawn++
			continue
		}
		if p.figures(s, evidence) {
			drawn++
		}
	}
	p.Ways = p.ways(evidence.Ways(run.Cells, network.Catalogue()))
	return p
}

// settings splits a run by setting, in the order of its cells; those that were not to be measured are left out.
func settings(run result.Run) []*setting {
	run.Cells = slices.DeleteFunc(slices.Clone(run.Cells), func(c result.Cell) bool { return c.Unsupported != "" || c.Skipped != "" })
	var all []*setting
	for i, part := range insight.Parts(run) {
		s := &setting{
			ID: "s" + number(float64(i)), Key: part.Setting, Load: words.Load(part.Setting), Regime: words.RegimeSays(part.Setting.Regime()),
			Where: words.At(part.Setting.Placement), Inline: i < inlineMost, part: part,
		}
		s.Says, s.Bounded = words.Conclusion(insight.Conclude(part)), spaced(words.Across(part.Headlines()), words.Bounded(part.Bounds()),
			words.Reasons(insight.Reasons(run, part)), words.ByState(run.Checks, part.Cells))
		all = append(all, s)
	}
	return all
}

// headlines are the deltas of the setting's headline metric, the cheapest first.
func (s *setting) headlines() []result.Delta { return s.part.Shown() }

// null is the null check of a metric, nil if there is none.
func (s *setting) null(metric string) *result.Delta {
	for i, n := range s.part.Null {
		if n.Metric == metric {
			return &s.part.Null[i]
		}
	}
	return nil
}

// headline is the name of the setting's headline metric, "" if nothing was measured.
func (s *setting) headline() string {
	for _, all := range [][]result.Delta{s.part.Deltas, s.part.Null} {
		for _, d := range all {
			if d.Headline {
				return d.Metric
			}
		}
	}
	return ""
}

// Title names the setting.
func (s *setting) Title() string { return s.Load + " · " + s.Where }

// palette gives each network of a run a colour and a dash, the same in all charts.
type palette map[string]string

// colours is how many colours there are; beyond them networks differ by their dashes.
const colours = 8

// newPalette takes networks in the order of a run's cells. The baseline has a colour of its own.
func newPalette(cells []result.Cell) palette {
	p := palette{}
	n := 0
	for _, c := range cells {
		name := insight.Name(c.Network, c.Path)
		if _, known := p[name]; known || c.Role != result.RoleCell {
			continue
		}
		p[name] = "k" + number(float64(n%colours)) + " d" + number(float64(n/colours%3))
		n++
	}
	return p
}

// of is the class of a series.
func (p palette) of(s insight.Series) string {
	class, known := p[s.Name]
	if s.Role == result.RoleBaseline || !known && s.Role != result.RoleControl {
		return "kb"
	}
	if s.Role == result.RoleControl {
		return "kb d1"
	}
	return class
}

// again is what a series is called: the baseline's A/A control is the baseline again.
func again(s insight.Series) string {
	if s.Role == result.RoleControl {
		return s.Name + " again"
	}
	return s.Name
}

// networks are the names of all that was measured but the baseline, in the order of the cells; none where there are too many to choose
// from.
func (p *page) networks() []string {
	const most = 30
	var all []string
	for _, s := range p.Settings {
		for _, name := range insight.Names(s.headlines()) {
			all = gather.Once(all, name)
		}
	}
	if len(all) < 2 || len(all) > most {
		return nil
	}
	return all
}

// Caveats could overturn a choice, or explain surprising figures.
func (p *page) Caveats() []string { return slices.Concat(words.Caveats(p.Run), words.Surprises(p.Run)) }

// Hops draws the ways of WithHops, "" without.
func (p *page) Hops() (template.HTML, error) {
	if len(p.where) == 0 {
		return "", nil
	}
	return hops.Section(p.where...)
}

// spaced joins sentences, of which some may be empty.
func spaced(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(s string) bool { return s == "" }), " ")
}

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
		"repeating": words.RepeatingSentence, "exactSays": words.ExactSays, "exactComparison": words.ExactComparison, "exactRows": words.ExactRows,
		"spreads": words.Spreads, "splitParts": words.SplitParts, "replication": words.Replication, "services": words.Services, "clients": words.Clients,
		"join": strings.Join, "load": words.Load, "title": words.Title, "where": words.Where, "name": insight.Name, "claimClass": claimClass, "thousands": unit.Thousands[uint64],
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

// cleaner takes control characters, and others that are not seen, out of all that goes through it, line by line. A template writes whole strings, so no character is cut in two between writes.
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
