package serve

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"net/http"
	"strings"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/report/page"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
)

// comparedPage is what the page of a comparison is filled in from. All texts are clean.
type comparedPage struct {
	Old, New      string // names of run folders
	Says, Verdict string
	Interval      string      // what intervals are called
	Runs          []sideOf    // none where the two can't be compared
	Groups        []changedBy // a table each
	Alike         string
	Differences   []result.Difference
	Other         []string
}

// sideOf is one of the two runs.
type sideOf struct{ Which, Run, When, Testbed, Builds, Ended string }

// changedBy is the table of one metric in one setting.
type changedBy struct {
	Title, Context, Baseline string
	Axis                     template.HTML
	Rows                     []changedRow
}

// changedRow is the change of one network.
type changedRow struct {
	Network, Change, Interval, Old, New, Verdict string
	Plot                                         template.HTML
}

// compare shows what changed.
func (s *server) compare(w io.Writer, _ http.Header, r *http.Request) error {
	names := [2]string{r.FormValue("old"), r.FormValue("new")}
	var folders [2]string
	for i, name := range names {
		var err error
		if folders[i], err = s.folder(name); err != nil {
			return err
		}
	}
	c, err := s.Compare(folders[0], folders[1])
	if err != nil {
		return err
	}
	return page.New(compareLayout, page.Palette+style+navStyle, "").Write(w, "a comparison", compared(c, names[0], names[1]))
}

// compared puts a comparison in the words that netdelta compare has.
func compared(c result.Comparison, before, after string) comparedPage {
	p := comparedPage{Old: before, New: after, Says: ui.Clean(c.Says), Verdict: c.Verdict, Interval: fmt.Sprintf("%.4g%% interval", 100*c.Confidence)}
	if c.Exact {
		p.Interval = "range over seeds"
	}
	if c.Old.Run == "" {
		return p
	}
	for _, run := range []struct {
		which string
		of    result.ComparedRun
	}{{"old", c.Old}, {"new", c.New}} {
		p.Runs = append(p.Runs, sideOf{
			run.which, ui.Clean(run.of.Run), run.of.Started.UTC().Format("2006-01-02 15:04"), ui.Clean(run.of.Testbed), fmt.Sprint(run.of.Builds), ui.Clean(run.of.Ended),
		})
	}
	for _, g := range insight.Groups(c) {
		p.Groups = append(p.Groups, changes(c, g))
	}
	p.Alike = words.Alike(c)
	if words.Elsewhere(c) != "" {
		p.Alike = "Only deltas are compared, each against the baseline of its own run."
	}
	for _, d := range c.Differences {
		d.Group, d.What, d.Old, d.New = ui.Clean(d.Group), ui.Clean(d.What), ui.Clean(words.Recorded(d.Old)), ui.Clean(words.Recorded(d.New))
		if len(d.Where) > 0 {
			d.What += " (" + ui.Clean(strings.Join(d.Where, ", ")) + ")"
		}
		p.Differences = append(p.Differences, d)
	}
	for _, list := range [][]string{words.OnlyIn(c), c.Notes, words.ComparisonWarnings(c)} {
		p.Other = append(p.Other, gather.Each(list, ui.Clean)...)
	}
	return p
}

// changes is the table of a group, whose rows share an axis.
func changes(c result.Comparison, g insight.Group) changedBy {
	first := g.Changes[0]
	t := changedBy{Title: ui.Clean(words.ChangesTitle(first)), Context: ui.Clean(words.Context(g, c, "→")), Baseline: ui.Clean(first.Baseline)}
	a := axisOf(g.Changes, insight.MarginOf(c, first))
	t.Axis = a.head()
	for _, change := range g.Changes {
		t.Rows = append(t.Rows, changedRow{
			Network: ui.Clean(insight.Name(change.Network, change.Path)), Change: words.Amount(change), Interval: words.ChangeInterval(change),
			Old: words.Against(change.Old, change.Unit), New: words.Against(change.New, change.Unit), Verdict: ui.Clean(change.Verdict), Plot: a.draw(change),
		})
	}
	return t
}

// axis is where changes are drawn: shares of none, from low to high. Ratios stand on a logarithmic scale.
type axis struct {
	low, high, margin float64
	ratio             bool
	unit              string
}

// How many steps an axis of percentages has at most, and one of differences, whose values are longer: a phone has room for them.
const (
	ticksMost  = 6
	ticksFewer = 3
)

// axisOf has room for all changes with their intervals, and for the margin on both sides.
func axisOf(all []result.Change, margin float64) axis {
	a := axis{margin: margin, ratio: all[0].Change != 0, unit: all[0].Unit, low: -1.5 * margin, high: 1.5 * margin}
	for _, c := range all {
		at, low, high := shares(c)
		a.low, a.high = min(a.low, at, low), max(a.high, at, high)
	}
	if a.ratio {
		a.low = max(a.low, -0.99)
	}
	return a
}

// shares are a change and its interval as shares, or as differences where it has no ratio; the interval is the change without one.
func shares(c result.Change) (at, low, high float64) {
	d := insight.ChangeAsDelta(c)
	at = d.Difference
	if d.Ratio != 0 {
		at = d.Ratio - 1
	}
	low, high = at, at
	switch {
	case d.Ratio != 0 && d.RatioLow != nil && d.RatioHigh != nil:
		low, high = *d.RatioLow-1, *d.RatioHigh-1
	case d.Ratio == 0 && d.DifferenceLow != nil && d.DifferenceHigh != nil:
		low, high = *d.DifferenceLow, *d.DifferenceHigh
	}
	return at, low, high
}

// place is where a share stands, in percent of the width, with a little room at both ends.
func (a axis) place(x float64) float64 {
	const room = 4
	of := func(x float64) float64 { return x }
	if a.ratio {
		of = math.Log1p
	}
	x = min(max(x, a.low), a.high)
	return room + (100-2*room)*(of(x)-of(a.low))/max(of(a.high)-of(a.low), 1e-12)
}

// value is a share on the axis: a percentage, or a difference.
func (a axis) value(x float64) string {
	if a.ratio {
		return fmt.Sprintf("%+.4g%%", 100*x)
	}
	return words.Difference(a.unit, x)
}

// head draws the values of the axis.
func (a axis) head() template.HTML {
	var b strings.Builder
	b.WriteString(`<svg class="axis" role="img" aria-label="change" width="100%" height="16">`)
	most := ticksFewer
	if a.ratio {
		most = ticksMost
	}
	for _, x := range page.Ticks(a.low, a.high, most) {
		text := "0"
		if x != 0 {
			text = a.value(x)
		}
		anchor, at := "middle", a.place(x)
		if at < 12 {
			anchor = "start"
		} else if at > 88 {
			anchor = "end"
		}
		fmt.Fprintf(&b, `<text x="%.2f%%" y="12" text-anchor="%s">%s</text>`, at, anchor, template.HTMLEscapeString(text))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// draw draws a change with its interval, over the margin and a line at none.
func (a axis) draw(c result.Change) template.HTML {
	at, low, high := shares(c)
	from, to := a.place(-a.margin), a.place(a.margin)
	return template.HTML(fmt.Sprintf(`<svg width="100%%" height="18" aria-hidden="true"><rect class="margin" x="%.2f%%" width="%.2f%%" height="18"/>`+
		`<line class="none" x1="%.2f%%" x2="%.2f%%" y2="18"/><line class="interval" x1="%.2f%%" x2="%.2f%%" y1="9" y2="9"/><circle cx="%.2f%%" cy="9" r="4"/></svg>`,
		from, to-from, a.place(0), a.place(0), a.place(low), a.place(high), a.place(at)))
}
