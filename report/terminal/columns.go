package terminal

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
)

// nameMost is the widest name that is shown whole.
const nameMost = 24

// isNull says whether a row is the baseline against itself.
func (t table) isNull(row int) bool { return t.null && row == 0 }

// style is the colour of a row's verdict.
func (t table) style(row int) ui.Style {
	if t.isNull(row) {
		return ui.Dim
	}
	return verdictStyle(t.deltas[row].Verdict)
}

// verdictStyle is the colour of a verdict on a delta or a change.
func verdictStyle(verdict string) ui.Style {
	switch stats.Verdict(verdict) {
	case stats.Slower, stats.Regressed:
		return ui.Red
	case stats.Faster, stats.Improved:
		return ui.Green
	case stats.Same:
		return ui.Blue
	}
	return ui.Yellow
}

// column makes a column of a text for each row.
func (t table) column(title string, right bool, text func(d result.Delta) string) column {
	c := column{title: title, right: right}
	for i, d := range t.deltas {
		style := ui.Plain
		if t.isNull(i) {
			style = ui.Dim
		}
		c.cells = append(c.cells, piece{text(d), style})
	}
	return c
}

func (p *page) nameColumn(t table) column {
	return t.column("", false, func(d result.Delta) string {
		name := insight.Name(d.Network, d.Path)
		if mechanism := words.StandIn(p.run, d.Network); mechanism != "" {
			name += " (" + mechanism + ")"
		}
		return ui.Shorten(p.terminal.Text(name), nameMost)
	})
}

func (t table) costColumn(title string) column {
	return t.column(title, true, func(d result.Delta) string {
		if d.Ratio == 0 {
			return words.Added(d)
		}
		return words.Change(d.Ratio, d) + "%"
	})
}

// against is the title of a column of costs.
func (p *page) against(baseline string) string {
	return "vs " + ui.Shorten(p.terminal.Text(baseline), nameMost/2)
}

func (t table) intervalColumn() column {
	title := "interval"
	switch {
	case t.exact:
		title = "range over seeds"
	case t.confidence > 0:
		title = fmt.Sprintf("%.4g%% interval", 100*t.confidence)
	}
	return t.column(title, true, func(d result.Delta) string {
		if !insight.HasInterval(d) {
			return fmt.Sprintf("%d of %d builds", d.Blocks, d.Need)
		}
		return words.Interval(d)
	})
}

// addedColumn is the change in the metric's unit.
func (t table) addedColumn() column {
	if t.deltas[0].Ratio == 0 {
		return column{}
	}
	title := "added"
	if t.deltas[0].Better == "higher" {
		title = "change"
	}
	return t.column(title, true, words.Added)
}

// addedIntervalColumn is the interval of the change in the metric's unit. There is none of an exact run, which counts.
func (t table) addedIntervalColumn() column {
	if t.deltas[0].Ratio == 0 || t.exact {
		return column{}
	}
	return t.column(fmt.Sprintf("%.4g%% interval", 100*t.confidence), true, words.AddedInterval)
}

// withinColumn is the interval of the run alone. There is none where no other is printed.
func (t table) withinColumn() column {
	c := t.column("in this run", true, words.WithinRun)
	if !slices.ContainsFunc(c.cells, func(p piece) bool { return p.text != "" }) {
		return column{}
	}
	return c
}

func (t table) valueColumn() column {
	return t.column(t.deltas[0].Metric, true, func(d result.Delta) string { return words.Value(words.Unit(d), d.Value) })
}

// Metrics that are shown next to the headline where there is room.
const (
	tailMetric   = "p99"
	cpuMetric    = "cpu"
	loadedMetric = "p50_at_50" // in place of the tail where rates were searched for
)

// secondColumn is the change of another metric than the headline, in brackets where it is unresolved.
func (t table) secondColumn(metric string) column {
	others := map[string]result.Delta{}
	for _, d := range t.all {
		if d.Metric == metric && !d.Headline {
			others[d.Cell] = d
		}
	}
	found := false
	c := t.column(metric, true, func(d result.Delta) string {
		other, ok := others[d.Cell]
		if !ok {
			return ""
		}
		found = true
		text := words.Change(other.Ratio, other) + "%"
		if other.Verdict == "unresolved" {
			return "(" + text + ")"
		}
		return text + " "
	})
	if !found {
		return column{}
	}
	return c
}

// Widths of the lists of products next to networks: at most, and where there is little room.
const (
	usersMost  = 34
	usersLeast = 22
)

// usersColumn names the products of which networks have the datapath. There is none in a table without any.
func (p *page) usersColumn(t table, most int) column {
	users, found := words.Users(p.run), false
	c := t.column("used by", false, func(d result.Delta) string {
		names := users[d.Network]
		found = found || len(names) > 0 && d.Network != d.Baseline
		return wholeNames(names, most)
	})
	if !found {
		return column{}
	}
	for i := range c.cells {
		c.cells[i].style = ui.Dim
	}
	return c
}

// wholeNames joins as many names as fit; of the first as much as fits is shown.
func wholeNames(names []string, columns int) string {
	all := strings.Join(names, ", ")
	if ui.Columns(all) <= columns {
		return all
	}
	for n := len(names) - 1; n > 0; n-- {
		if kept := strings.Join(names[:n], ", "); ui.Columns(kept) < columns {
			return kept + "…"
		}
	}
	return ui.Shorten(all, columns)
}

// unseenLegend explains the verdict "~".
const unseenLegend = "~: no change seen; in brackets the smallest that would have been."

// unseen is the smallest change that would have been seen where none was: half the interval, or the noise floor where that is larger. It
// is 0 where a change was seen, or where too little is known.
func unseen(d result.Delta) float64 {
	if d.Verdict != string(stats.Unresolved) || d.RatioLow == nil || d.RatioHigh == nil || *d.RatioLow > 1 || *d.RatioHigh < 1 || *d.RatioLow <= 0 {
		return 0
	}
	least := math.Sqrt(*d.RatioHigh / *d.RatioLow) - 1
	if d.Floor != nil {
		least = max(least, *d.Floor)
	}
	return least
}

// withUnseen is a column of verdicts in which "~" stands where no change was seen, with the smallest that would have been.
func (t table) withUnseen(c column) column {
	for i, d := range t.deltas {
		if least := unseen(d); least > 0 && !t.isNull(i) {
			c.cells[i].text = "~ (" + strings.TrimPrefix(words.Percent(1+least), "+") + ")"
		}
	}
	return c
}

func (t table) verdictColumn() column {
	c := t.column("verdict", false, func(d result.Delta) string { return d.Verdict })
	for i := range c.cells {
		c.cells[i].style = t.style(i)
		if t.isNull(i) {
			c.cells[i].text = "null check"
			if v := t.deltas[i].Verdict; v == "slower" || v == "faster" {
				c.cells[i] = piece{"null failed", ui.Yellow}
			}
		}
	}
	return c
}

// axis maps changes against the baseline (0 is none, 0.1 is 10% more; for metrics without a ratio the difference itself)
// to the columns of a bar. All bars of a table share one.
type axis struct {
	low, high float64
	margin    float64 // the band about 0 that counts as no change
	columns   int
}

// glyphs are what bars are made of.
type glyphs struct {
	center, open, line, none, band, left, right string
}

func (p *page) glyphs() glyphs {
	if p.terminal.Unicode {
		return glyphs{center: "●", open: "○", line: "━", none: "│", band: "░", left: "◂", right: "▸"}
	}
	return glyphs{center: "O", open: "o", line: "=", none: "|", band: ".", left: "<", right: ">"}
}

// change is where a delta lies on an axis, with its interval, which is without bounds if there is none.
func change(d result.Delta) (low, at, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	if d.Ratio == 0 {
		if d.DifferenceLow != nil && d.DifferenceHigh != nil {
			low, high = *d.DifferenceLow, *d.DifferenceHigh
		}
		return low, d.Difference, high
	}
	if d.RatioLow != nil && d.RatioHigh != nil {
		low, high = *d.RatioLow-1, *d.RatioHigh-1
	}
	return low, d.Ratio - 1, high
}

// newAxis is an axis that shows the margin, every center that is not far off from all others (insight.Cut), and intervals as
// far as they don't squeeze the rest: beyond that they end in an arrow.
func newAxis(deltas []result.Delta, margin float64, columns int) axis {
	a := axis{low: -1.5 * margin, high: 1.5 * margin, margin: margin, columns: columns}
	cut := insight.Cut(deltas)
	for _, d := range deltas {
		_, at, _ := change(d)
		if d.Ratio == 0 {
			at = min(max(at, -cut), cut)
		} else {
			at = min(max(at, math.Expm1(-cut)), math.Expm1(cut))
		}
		a.low, a.high = min(a.low, at), max(a.high, at)
	}
	room := (a.high - a.low) / 4
	low, high := a.low, a.high
	for _, d := range deltas {
		if l, _, h := change(d); insight.HasInterval(d) {
			low, high = min(low, max(l, a.low-room)), max(high, min(h, a.high+room))
		}
	}
	a.low, a.high = low, high
	return a
}

// column is where a change stands; it may be out of the bar.
func (a axis) column(x float64) int {
	return int(math.Floor((x - a.low) / (a.high - a.low) * (float64(a.columns) - 1e-9)))
}

// bar draws a delta: its interval and center, the margin's band and the line of no change. The pieces together are as wide
// as the axis.
func (p *page) bar(a axis, d result.Delta, style ui.Style) []piece {
	g := p.glyphs()
	cells := make([]piece, a.columns)
	for i := range cells {
		cells[i] = piece{text: " "}
	}
	put := func(column int, text string, style ui.Style) {
		if column >= 0 && column < a.columns {
			cells[column] = piece{text, style}
		}
	}
	for i := a.column(-a.margin); i <= a.column(a.margin); i++ {
		put(i, g.band, ui.Dim)
	}
	put(a.column(0), g.none, ui.Dim)
	low, at, high := change(d)
	mark := g.open
	if insight.HasInterval(d) {
		mark = g.center
		from, to := a.column(low), a.column(high)
		for i := max(from, 0); i <= min(to, a.columns-1); i++ {
			put(i, g.line, style)
		}
		if from < 0 {
			put(0, g.left, style)
		}
		if to >= a.columns {
			put(a.columns-1, g.right, style)
		}
	}
	switch column := a.column(at); { // of a center beyond the axis there are two arrows in its place
	case column < 0:
		put(0, g.left, style)
		put(1, g.left, style)
	case at > a.high:
		put(a.columns-2, g.right, style)
		put(a.columns-1, g.right, style)
	default:
		put(min(column, a.columns-1), mark, style)
	}
	return merged(cells)
}

// merged joins neighbours of one style.
func merged(cells []piece) []piece {
	var all []piece
	for _, c := range cells {
		if last := len(all) - 1; last >= 0 && all[last].style == c.style {
			all[last].text += c.text
			continue
		}
		all = append(all, c)
	}
	return all
}
