package terminal

import (
	"math"

	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/result"
)

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
