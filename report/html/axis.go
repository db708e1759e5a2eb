package html

import (
	"cmp"
	"html/template"
	"math"
	"slices"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
)

// metricKey is a metric: deltas of the same one share an axis.
type metricKey struct {
	name, unit string
	linear     bool
}

func keyOf(d result.Delta) metricKey { return metricKey{d.Metric, d.Unit, d.Ratio == 0} }

// axis is what the rows of a metric are drawn on.
type axis struct {
	id     string
	scale  scale
	margin float64 // as a ratio below 1 or, for linear metrics, as a difference
	key    metricKey
	// name labels a place, nil for changes.
	name func(unit string, v float64) string
}

// fit makes the axis show the margin, every centre that is not far off from all others (insight.Cut), and intervals as far as
// they don't squeeze the rest.
func (a *axis) fit(deltas []result.Delta, margin float64) {
	a.margin = 1 / (1 + margin)
	centres := []float64{a.margin, 1, 1 + margin}
	if a.key.linear {
		a.margin = insight.LossMargin
		centres = []float64{-a.margin, 0, a.margin}
	}
	cut := insight.Cut(deltas)
	for _, d := range deltas {
		_, at, _, _ := change(d)
		switch {
		case a.key.linear:
			at = min(max(at, -cut), cut)
		case at > 0:
			at = min(max(at, math.Exp(-cut)), math.Exp(cut))
		}
		centres = append(centres, at)
	}
	s, _ := spanOf(centres, !a.key.linear)
	a.scale = s.holding(deltas).room(0.03)
}

// holding widens a scale so that it shows intervals as far as they don't squeeze the rest.
func (s scale) holding(deltas []result.Delta) scale {
	roomy := s.room(0.25)
	for _, d := range deltas {
		if low, _, high, ok := change(d); ok {
			s.low, s.high = min(s.low, max(low, roomy.low)), max(s.high, min(high, roomy.high))
		}
	}
	return s
}

// none is where no change stands.
func (a *axis) none() float64 {
	if a.key.linear {
		return 0
	}
	return 1
}

// ticks are the round places of the axis.
func (a *axis) ticks() []float64 {
	if a.key.linear {
		return a.scale.linearTicks(4)
	}
	return a.scale.changeTicks(7)
}

// Sizes of a row's drawing, in pixels.
const (
	rowHeight = 30
	rowCentre = rowHeight / 2
)

// define writes what all rows of the axis have in common: the margin, the lines of round places, the line of no change; and the labels
// of the heads of its tables.
func (a *axis) define(d *drawing) {
	low, high := a.margin, 1/a.margin
	if a.key.linear {
		low, high = -a.margin, a.margin
	}
	d.put(`<g id="%s">`, a.id)
	d.rect("mg", a.scale, low, high)
	for _, t := range a.ticks() {
		x := percent(a.scale.within(t))
		d.put(`<line class="tick" x1="%s" x2="%s" y2="%d"/>`, x, x, rowHeight)
	}
	x := percent(a.scale.within(a.none()))
	d.put(`<line class="none" x1="%s" x2="%s" y2="%d"/></g>`, x, x, rowHeight)
	d.put(`<g id="%sh">`, a.id)
	for i, m := range a.marks() {
		class := "al"
		if i%2 == 1 {
			class = "al odd"
		}
		d.text(`class="`+class+`" text-anchor="`+m.anchor()+`" x="`+percent(m.share)+`" y="13"`, m.text)
	}
	d.put("</g>")
}

// rect is a band over the whole height of a row.
func (d *drawing) rect(class string, s scale, low, high float64) {
	from, to := s.within(low), s.within(high)
	d.put(`<rect class="%s" x="%s" width="%s"/>`, class, percent(from), percent(to-from))
}

// head is the axis with its labels, every other one of which a narrow screen leaves out.
func (a *axis) head() template.HTML {
	var d drawing
	d.put(`<svg class="axis" height="18" aria-hidden="true"><use href="#%sh"/></svg>`, a.id)
	return d.html()
}

// mark is a label of an axis.
type mark struct {
	share float64
	text  string
}

// Sizes by which labels of an axis are kept apart: the least width of a forest plot on a desk, and of a character.
const (
	plotLeast      = 360
	characterWidth = 8.5
)

// marks are the labels that the axis has room for, first of all the label of no change.
func (a *axis) marks() []mark {
	name := changeLabel
	switch {
	case a.name != nil:
		name = func(v float64) string { return a.name(a.key.unit, v) }
	case a.key.linear:
		name = func(v float64) string { return words.Difference(a.key.unit, v) }
	}
	chosen := []mark{{a.scale.at(a.none()), name(a.none())}}
	for _, t := range a.ticks() {
		m := mark{a.scale.at(t), name(t)}
		if !slices.ContainsFunc(chosen, m.touches) {
			chosen = append(chosen, m)
		}
	}
	slices.SortFunc(chosen, func(x, y mark) int { return cmp.Compare(x.share, y.share) })
	return chosen
}

// anchor is how the label is aligned to its place: at the ends of the axis it begins or ends there.
func (m mark) anchor() string {
	switch {
	case m.share < 0.04:
		return "start"
	case m.share > 0.96:
		return "end"
	}
	return "middle"
}

// ends are where the label begins and ends, in pixels.
func (m mark) ends() (from, to float64) {
	width := characterWidth * float64(len(m.text))
	from = m.share*plotLeast - width/2
	switch m.anchor() {
	case "start":
		from += width / 2
	case "end":
		from -= width / 2
	}
	return from, from + width
}

// touches says whether two labels have no gap between them.
func (m mark) touches(o mark) bool {
	from, to := m.ends()
	oFrom, oTo := o.ends()
	return from < oTo+characterWidth && oFrom < to+characterWidth
}
