package html

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

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
	title  string // what it is an axis of
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

// roomBeyond widens a scale for the arrows of deltas that lie beyond its ends.
func (s scale) roomBeyond(deltas []result.Delta) scale {
	wide, old := s.room(0.08), s
	for _, d := range deltas {
		switch _, at, _, _ := change(d); {
		case at < old.low:
			s.low = wide.low
		case at > old.high:
			s.high = wide.high
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
	for _, m := range a.marks() {
		d.text(`class="al" text-anchor="`+m.anchor()+`" x="`+percent(m.share)+`" y="27"`, m.text)
	}
	d.text(`class="al" y="11"`, a.titled())
	d.put("</g>")
}

// rect is a band over the whole height of a row.
func (d *drawing) rect(class string, s scale, low, high float64) {
	from, to := s.within(low), s.within(high)
	d.put(`<rect class="%s" x="%s" width="%s"/>`, class, percent(from), percent(to-from))
}

// titled is the axis' title, with its kind of scale where that is not the usual one.
func (a *axis) titled() string {
	if a.scale.log {
		return a.title + logScale
	}
	return a.title
}

// logScale ends the title of a logarithmic axis.
const logScale = " (log scale)"

// head is the axis with its title and its labels.
func (a *axis) head() template.HTML {
	var d drawing
	d.put(`<svg class="axis" height="32" aria-hidden="true"><use href="#%sh"/></svg>`, a.id)
	return d.html()
}

// mark is a label of an axis.
type mark struct {
	share float64
	text  string
}

// Sizes by which labels of an axis are kept apart: the least width of a plot, which is that on a phone, and of a character.
const (
	plotLeast      = 300
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

// scale maps values to an axis: 0 is its beginning, 1 its end.
type scale struct {
	low, high float64
	log       bool
}

// at is where a value stands; it may be off the axis.
func (s scale) at(v float64) float64 {
	if s.log {
		return math.Log(v/s.low) / math.Log(s.high/s.low)
	}
	return (v - s.low) / (s.high - s.low)
}

// within is at, kept on the axis: what has no place on it stands at its beginning.
func (s scale) within(v float64) float64 {
	at := s.at(v)
	if math.IsNaN(at) {
		return 0
	}
	return min(max(at, 0), 1)
}

// room widens the axis by a share of itself on both sides, and makes one of a single value.
func (s scale) room(share float64) scale {
	if s.log {
		by := math.Pow(s.high/s.low, share)
		if by-1 < 1e-9 {
			by = 1.05
		}
		return scale{s.low / by, s.high * by, true}
	}
	by := share * (s.high - s.low)
	if by <= 1e-12*max(math.Abs(s.low), math.Abs(s.high)) {
		by = max(0.05*math.Abs(s.low), 1e-9)
	}
	return scale{s.low - by, s.high + by, false}
}

// drawable says whether a value can be on an axis: figures that nothing can measure would leave no room for any other.
func drawable(v float64, log bool) bool {
	const most = 1e30
	return math.Abs(v) < most && (!log || v > 1/most)
}

// spanOf is the axis that holds all values that can be drawn; ok is false if there is none.
func spanOf(values []float64, log bool) (s scale, ok bool) {
	s = scale{math.Inf(1), math.Inf(-1), log}
	for _, v := range values {
		if !drawable(v, log) {
			continue
		}
		s.low, s.high = min(s.low, v), max(s.high, v)
	}
	return s, s.low <= s.high
}

// step is the roundest number, of 1, 2 and 5 times a power of ten, that cuts a length into at most so many parts.
func step(length float64, parts int) float64 {
	least := length / float64(parts)
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= least*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// linearTicks are the multiples of a round number on an axis.
func (s scale) linearTicks(parts int) []float64 {
	by := step(s.high-s.low, parts)
	first := math.Ceil(s.low/by - 1e-9)
	var all []float64
	for i := range parts + 1 {
		if v := (first + float64(i)) * by; v <= s.high+1e-9*by {
			all = append(all, v)
		}
	}
	return all
}

// logTicks are round values on a log axis that spans more than its own beginning; on a shorter one they are linear.
func (s scale) logTicks(parts int) []float64 {
	if s.high/s.low < 3 {
		return s.linearTicks(parts)
	}
	for _, digits := range [][]float64{{1, 1.5, 2, 3, 5, 7}, {1, 2, 5}, {1, 3}, {1}} {
		if all := s.decades(digits, 1); len(all) <= parts+1 {
			return all
		}
	}
	decades := math.Log10(s.high / s.low)
	return s.decades([]float64{1}, int(math.Ceil(decades/float64(parts))))
}

// decades are the given digits in each every-th power of ten.
func (s scale) decades(digits []float64, every int) []float64 {
	var all []float64
	for k := int(math.Floor(math.Log10(s.low))); math.Pow(10, float64(k)) <= s.high; k++ {
		if k%every != 0 {
			continue
		}
		for _, d := range digits {
			if v := d * math.Pow(10, float64(k)); v >= s.low*(1-1e-9) && v <= s.high*(1+1e-9) {
				all = append(all, v)
			}
		}
	}
	return all
}

// changeTicks are round ratios, no change among them if it is on the axis.
func (s scale) changeTicks(parts int) []float64 {
	if s.high/s.low < 3 {
		shifted := scale{s.low - 1, s.high - 1, false}
		all := shifted.linearTicks(parts)
		for i := range all {
			all[i]++
		}
		return all
	}
	all := s.logTicks(parts)
	if s.low < 1 && s.high > 1 && !slices.Contains(all, 1) {
		all = append(all, 1)
		slices.Sort(all)
	}
	return all
}

// changeLabel prints a ratio on an axis: as a change up to three times as much, from there on as a multiple.
func changeLabel(ratio float64) string {
	if ratio >= 3-1e-9 || ratio <= 1.0/3 {
		return "×" + strconv.FormatFloat(ratio, 'g', 3, 64)
	}
	text := fmt.Sprintf("%+.4g%%", math.Round(1e4*(ratio-1))/100)
	if strings.Trim(text, "+-0.%") == "" {
		return "0"
	}
	return text
}

// valueLabel prints a round value on an axis, without digits that say nothing.
func valueLabel(unitName string, v float64) string { return rounded(words.Value(unitName, v)) }

// differenceLabel prints a round difference on an axis in the same way.
func differenceLabel(unitName string, v float64) string {
	return rounded(words.Difference(unitName, v))
}

// rounded is a figure with its unit, without zeros behind its point.
func rounded(text string) string {
	number, rest, _ := strings.Cut(text, " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return strings.TrimSpace(number + " " + rest)
}
