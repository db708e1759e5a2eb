package html

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"netdelta/insight"
	"netdelta/result"
)

// forest is a setting's table in one metric: a row for each network, with its interval drawn on an axis that all settings
// share.
type forest struct {
	Metric string
	// Shown is false for metrics that the reader has to ask for.
	Shown  bool
	Label  string
	Axis   template.HTML
	Rows   []row
	Added  string // what the change in units is called: "added" or "change"
	// Confidence of the intervals, such as "95%".
	Confidence string
}

// row is a network against the baseline.
type row struct {
	Name, Change, Interval, Added, Value, Verdict string
	// Class is the verdict's: slower, faster, same, unresolved, or null for the null check.
	Class string
	Plot  template.HTML
}

// metricKey tells metrics apart that may share an axis.
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
}

// forests makes the tables of all settings, each metric on one axis.
func (p *page) forests() {
	axes := map[metricKey]*axis{}
	var order []*axis
	deltas := map[metricKey][]result.Delta{}
	every := len(p.Run.Deltas)+len(p.Run.Null) <= everyMetricMost
	for _, all := range [][]result.Delta{p.Run.Null, p.Run.Deltas} {
		for _, d := range all {
			if !d.Headline && !every {
				continue
			}
			key := keyOf(d)
			if axes[key] == nil {
				axes[key] = &axis{id: "a" + number(float64(len(order))), key: key}
				order = append(order, axes[key])
			}
			deltas[key] = append(deltas[key], d)
		}
	}
	var defs drawing
	for _, a := range order {
		a.fit(deltas[a.key], p.Run.Margin)
		a.define(&defs)
	}
	p.Axes = defs.html()
	for _, s := range p.Settings {
		p.forestsOf(s, axes, every)
	}
}

// forestsOf makes the tables of one setting, that of its headline first.
func (p *page) forestsOf(s *setting, axes map[metricKey]*axis, every bool) {
	head := s.headline()
	var metrics []string
	by := map[string][]result.Delta{}
	for _, d := range s.run.Deltas {
		if by[d.Metric] == nil {
			metrics = append(metrics, d.Metric)
		}
		by[d.Metric] = append(by[d.Metric], d)
	}
	if len(metrics) == 0 && head != "" {
		metrics = []string{head}
	}
	for _, metric := range metrics {
		if metric != head && !every {
			continue
		}
		rows := by[metric]
		slices.SortStableFunc(rows, func(a, b result.Delta) int { return compare(insight.Cost(a), insight.Cost(b)) })
		f := forest{Metric: metric, Shown: metric == head, Confidence: fmt.Sprintf("%.4g%%", 100*p.Run.Confidence)}
		null := s.null(metric)
		if null != nil {
			rows = append([]result.Delta{*null}, rows...)
		}
		first := rows[0]
		a := axes[keyOf(first)]
		f.Label, f.Added = metricLabel(first.Metric, first.Unit), "added"
		if first.Better == "higher" {
			f.Added = "change"
		}
		f.Axis = a.head()
		floor := floorOf(null)
		for i, d := range rows {
			f.Rows = append(f.Rows, a.row(d, null != nil && i == 0, floor))
		}
		s.Forests = append(s.Forests, f)
		if metric == head {
			s.Reference = first.Baseline + ": " + f.Label + " " + insight.Value(first.Unit, first.BaselineValue)
		}
	}
	s.Others = others(s.run.Deltas, head)
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// metricLabel is what a metric is called in a table.
func metricLabel(name, unitName string) string {
	if name != "cpu" {
		return strings.ReplaceAll(name, "_", " ")
	}
	if unitName == "ns" {
		return "CPU per transaction"
	}
	return "CPU per GB"
}

// change is where a delta stands on its axis, with its interval; ok is false for a delta without one.
func change(d result.Delta) (low, at, high float64, ok bool) {
	switch {
	case d.Ratio == 0 && d.DifferenceLow != nil && d.DifferenceHigh != nil:
		return *d.DifferenceLow, d.Difference, *d.DifferenceHigh, true
	case d.Ratio == 0:
		return d.Difference, d.Difference, d.Difference, false
	case d.RatioLow != nil && d.RatioHigh != nil:
		return *d.RatioLow, d.Ratio, *d.RatioHigh, true
	}
	return d.Ratio, d.Ratio, d.Ratio, false
}

// floorOf is the noise floor that a null check leaves: the far end of its interval, as a ratio above 1 or a difference; 0 if
// it is not known.
func floorOf(null *result.Delta) float64 {
	if null == nil {
		return 0
	}
	low, _, high, ok := change(*null)
	switch {
	case !ok:
		return 0
	case null.Ratio == 0:
		return max(math.Abs(low), math.Abs(high))
	}
	return max(high, 1/low)
}

// fit makes the axis show every centre and the margin, and intervals as far as they don't squeeze the rest.
func (a *axis) fit(deltas []result.Delta, margin float64) {
	a.margin = 1 / (1 + margin)
	centres := []float64{a.margin, 1, 1 + margin}
	if a.key.linear {
		a.margin = insight.LossMargin
		centres = []float64{-a.margin, 0, a.margin}
	}
	for _, d := range deltas {
		_, at, _, _ := change(d)
		centres = append(centres, at)
	}
	s, _ := spanOf(centres, !a.key.linear)
	roomy := s.room(0.25)
	for _, d := range deltas {
		if low, _, high, ok := change(d); ok {
			s.low, s.high = min(s.low, max(low, roomy.low)), max(s.high, min(high, roomy.high))
		}
	}
	a.scale = s.room(0.03)
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
		return a.scale.linearTicks(6)
	}
	return a.scale.changeTicks(7)
}

// Sizes of a row's drawing, in pixels.
const (
	rowHeight = 30
	rowCentre = rowHeight / 2
)

// define writes what all rows of the axis have in common: the margin, the lines of round places, the line of no change.
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
}

// rect is a band over the whole height of a row.
func (d *drawing) rect(class string, s scale, low, high float64) {
	from, to := s.within(low), s.within(high)
	d.put(`<rect class="%s" x="%s" width="%s" height="%d"/>`, class, percent(from), percent(to-from), rowHeight)
}

// head is the axis with its labels. Those next to each other on a narrow screen stand on two lines of which it shows one.
func (a *axis) head() template.HTML {
	var d drawing
	d.put(`<svg class="axis" height="18" aria-hidden="true">`)
	for i, t := range a.ticks() {
		text := changeLabel(t)
		if a.key.linear {
			text = insight.Difference(a.key.unit, t)
		}
		share := a.scale.at(t)
		anchor := "middle"
		switch {
		case share < 0.04:
			anchor = "start"
		case share > 0.96:
			anchor = "end"
		}
		class := "al"
		if i%2 == 1 {
			class = "al odd"
		}
		d.text(`class="`+class+`" text-anchor="`+anchor+`" x="`+percent(share)+`" y="13"`, text)
	}
	d.put("</svg>")
	return d.html()
}

// row is a delta's row.
func (a *axis) row(d result.Delta, null bool, floor float64) row {
	r := row{Name: insight.Name(d.Network, d.Path), Verdict: d.Verdict, Class: verdictClass(d.Verdict)}
	low, _, high, ok := change(d)
	switch {
	case !ok && d.Need > 0:
		r.Interval = fmt.Sprintf("%d of %d builds", d.Blocks, d.Need)
	case !ok:
		r.Interval = "no interval"
	case d.Ratio == 0:
		r.Interval = fmt.Sprintf("[%+.2f, %+.2f]", 100*low, 100*high)
	default:
		r.Interval = "[" + precise(low, d) + ", " + precise(high, d) + "]"
	}
	if d.Ratio == 0 {
		r.Change = insight.Difference(d.Unit, d.Difference)
	} else {
		r.Change = precise(d.Ratio, d) + "%"
		r.Added = insight.Difference(d.Unit, d.Difference)
	}
	r.Value = insight.Value(d.Unit, d.Value)
	if null {
		r.Name += " again"
		r.Class, r.Verdict = "null", "null check"
		if d.Verdict == "slower" || d.Verdict == "faster" {
			r.Class, r.Verdict = "nullfailed", "null failed"
		}
	}
	r.Plot = a.plot(d, r, floor)
	return r
}

// verdictClass is the class of a verdict; one that is not known has that of unresolved.
func verdictClass(verdict string) string {
	switch verdict {
	case "slower", "faster", "same":
		return verdict
	}
	return "unresolved"
}

// precise prints a ratio as a change in percent with so many decimals as its interval bears.
func precise(ratio float64, d result.Delta) string {
	decimals := 1
	if math.Abs(ratio-1) >= 1 || d.RatioLow != nil && d.RatioHigh != nil && *d.RatioHigh-*d.RatioLow > 0.2 {
		decimals = 0
	}
	text := fmt.Sprintf("%+.*f", decimals, 100*(ratio-1))
	if strings.Trim(text, "+-0.") == "" {
		return strings.TrimLeft(text, "+-")
	}
	return text
}

// plot draws a delta: the noise floor behind it, its interval, its centre, and arrows where the interval goes on.
func (a *axis) plot(d result.Delta, r row, floor float64) template.HTML {
	low, at, high, ok := change(d)
	var s drawing
	s.put(`<svg class="fp" height="%d"`, rowHeight)
	s.WriteString(` role="img"` + attribute("aria-label", r.Name+" "+r.Change+" "+r.Interval) + ">")
	if floor > 0 && !a.key.linear {
		s.rect("fl", a.scale, 1/floor, floor)
	} else if floor > 0 {
		s.rect("fl", a.scale, -floor, floor)
	}
	s.put(`<use href="#%s"/>`, a.id)
	centre := percent(a.scale.within(at))
	if !ok {
		s.put(`<circle class="pt open" cx="%s" cy="%d" r="4.5"/></svg>`, centre, rowCentre)
		return s.html()
	}
	s.put(`<line class="iv" x1="%s" x2="%s" y1="%d" y2="%d"/>`, percent(a.scale.within(low)), percent(a.scale.within(high)), rowCentre, rowCentre)
	if a.scale.at(low) < -1e-6 {
		s.put(`<path class="go" d="M7 %dl-7 5l7 5z"/>`, rowCentre-5)
	}
	if a.scale.at(high) > 1+1e-6 {
		s.put(`<svg x="100%%" class="labels"><path class="go" d="M-7 %dl7 5l-7 5z"/></svg>`, rowCentre-5)
	}
	class := "pt"
	if r.Class == "unresolved" || r.Class == "null" {
		class = "pt open"
	}
	s.put(`<circle class="%s" cx="%s" cy="%d" r="4.5"/></svg>`, class, centre, rowCentre)
	return s.html()
}
