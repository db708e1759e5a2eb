package html

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
)

// momentsMost is how many readings of the baseline a chart shows of those that count, and as many of the others.
const momentsMost = 600

// series draws a setting over the time of the run: the baseline by itself above, each network against it below, build by
// build. stalled are trials in which traffic stood still.
func (p *page) series(s *setting, d insight.Drift, stalled map[string]bool) figure {
	timeline, ok := timelineOf(d)
	if !ok {
		return figure{}
	}
	var all drawing
	level, beyond := baselinePanel(&all, s, d, timeline)
	rest := p.coursePanel(&all, s, d, timeline, stalled)
	return figure{Chart: all.html(), Rest: rest, Caption: driftCaption(s, d, level, beyond)}
}

// timelineOf is the axis of seconds that all of a drift fits on.
func timelineOf(d insight.Drift) (scale, bool) {
	at := gather.Each(d.Baseline, func(m insight.Moment) float64 { return m.At.Seconds() })
	steps := 0
	for _, c := range d.Courses {
		for _, step := range c.Steps {
			at = append(at, step.At.Seconds())
			steps++
		}
	}
	s, ok := spanOf(at, false)
	if !ok || steps == 0 {
		return s, false
	}
	return s.room(0.02), true
}

// valueScale is an axis for most of the readings: a few far ones may lie beyond it, so that they don't flatten the rest.
// beyond counts them.
func valueScale(values []float64, log bool) (s scale, beyond int) {
	slices.Sort(values)
	whole, ok := spanOf(values, log)
	if !ok {
		return scale{1, 2, log}, 0
	}
	most := scale{stats.Quantile(values, 0.03), stats.Quantile(values, 0.97), log}.room(0.4)
	s = scale{max(whole.low, most.low), min(whole.high, most.high), log}
	for _, v := range values {
		if v < s.low || v > s.high {
			beyond++
		}
	}
	return s.room(0.06), beyond
}

// baselinePanel draws the readings of the baseline with their running median. It returns the medians, and how many readings
// stand at the edge because they lie beyond it.
func baselinePanel(all *drawing, s *setting, d insight.Drift, timeline scale) (level []float64, beyond int) {
	var good, bad []insight.Moment
	var values []float64
	for _, m := range d.Baseline {
		if m.Disturbed != "" {
			bad = append(bad, m)
			continue
		}
		good = append(good, m)
		values = append(values, m.Value)
	}
	if len(values) == 0 {
		return nil, 0
	}
	on := plane{x: timeline, height: baselineHeight}
	on.y, beyond = valueScale(values, !d.Linear)
	on.open(all, "moments", d.Unit, "The baseline over the run: "+s.Title(),
		"Each dot is one burst of the baseline or its A/A control; crosses are bursts that were disturbed and count for nothing.")
	ticks := on.y.linearTicks(4)
	if on.y.log {
		ticks = on.y.logTicks(4)
	}
	on.grid(all, ticks, func(v float64) string { return valueLabel(d.Unit, v) })
	on.uprights(all, timeline.linearTicks(8), func(float64) string { return "" })
	on.titles(all, "", metricLabel(d.Metric, d.Unit)+" of "+shorten(baselineName(s.part.Cells), labelMost))
	on.box(all)
	place := func(moments []insight.Moment) []point {
		return gather.Each(moments, func(m insight.Moment) point { return on.place(m.At.Seconds(), m.Value) })
	}
	all.put(`<path class="ds" d="%s"/>`, dots(place(thinned(good))))
	medians := course(good)
	points := gather.Each(medians, func(m insight.Moment) point { return on.place(m.At.Seconds(), m.Value) })
	all.curve(label{text: "baseline, median", class: "kb"}, points)
	all.put("</svg>")
	for _, m := range thinned(bad) {
		at := on.place(m.At.Seconds(), m.Value)
		all.put(`<svg class="labels" x="%s"><path class="bad" d="M-3 %sl6 6m0 -6l-6 6"/></svg>`, percent(at.x/boxWidth), number(at.y-3))
	}
	all.put("</svg>")
	for _, m := range medians {
		level = append(level, m.Value)
	}
	return level, beyond
}

// thinned is an even choice among moments, as many as may be shown.
func thinned(all []insight.Moment) []insight.Moment {
	if len(all) <= momentsMost {
		return all
	}
	kept := make([]insight.Moment, momentsMost)
	for i := range kept {
		kept[i] = all[i*len(all)/momentsMost]
	}
	return kept
}

// course is the median over each of up to 40 stretches of equally many moments: what the baseline did, without its scatter.
func course(moments []insight.Moment) []insight.Moment {
	const most, least = 40, 8 // stretches, and moments in one
	n := min(most, max(1, len(moments)/least))
	var all []insight.Moment
	for i := range n {
		part := moments[i*len(moments)/n : (i+1)*len(moments)/n]
		values := gather.Each(part, func(m insight.Moment) float64 { return m.Value })
		all = append(all, insight.Moment{At: (part[0].At + part[len(part)-1].At) / 2, Value: stats.Median(values)})
	}
	return all
}

// coursePanel draws each network against the baseline, build by build. It returns the names of those that are not drawn yet.
func (p *page) coursePanel(all *drawing, s *setting, d insight.Drift, timeline scale, stalled map[string]bool) []string {
	values := []float64{}
	none := 1.0
	if d.Linear {
		none = 0
	}
	values = append(values, none)
	for _, c := range d.Courses {
		for _, step := range c.Steps {
			values = append(values, step.Change)
		}
	}
	span, _ := spanOf(values, !d.Linear)
	on := plane{x: timeline, y: span.room(0.08), height: courseHeight}
	kind, name, title := "changes", changeLabel, "against "+shorten(baselineName(s.part.Cells), labelMost)
	ticks := on.y.changeTicks
	if d.Linear {
		kind, ticks = "differences", on.y.linearTicks
		// The unit stands above the axis: a phone has no room for it next to each line.
		title += ", in" + words.Points
		name = func(v float64) string { return strings.TrimSuffix(words.Difference(d.Unit, v), words.Points) }
	}
	on.open(all, kind, d.Unit, "Each network against the baseline, build by build: "+s.Title(),
		"A line for each network with a dot for each build; what moves baseline and network alike has dropped out.")
	on.grid(all, ticks(6), name)
	on.uprights(all, timeline.linearTicks(8), seconds)
	on.titles(all, "time in the run", title)
	y := number(on.place(0, none).y)
	all.put(`<line class="none" x2="100%%" y1="%s" y2="%s"/>`, y, y)
	on.box(all)
	var names []label
	var stalls []point
	courses := gather.Where(d.Courses, func(c insight.Course) bool { return len(c.Steps) > 0 })
	drawn := s.drawnFirst(gather.Each(courses, func(c insight.Course) insight.Series { return c.Series }))
	for _, c := range courses {
		var points []point
		for _, step := range c.Steps {
			at := on.place(step.At.Seconds(), step.Change)
			points = append(points, at)
			if stalled[fmt.Sprintf("%s#%d", c.Cell, step.Build)] {
				stalls = append(stalls, at)
			}
		}
		l := label{points[len(points)-1].y, again(c.Series), p.palette.of(c.Series), !drawn[c.Cell]}
		all.curve(l, points)
		all.marked("ds", l, dots(points))
		names = append(names, l)
	}
	all.put("</svg>")
	for _, at := range stalls {
		all.put(`<circle class="stall" cx="%s" cy="%s" r="8"/>`, percent(at.x/boxWidth), number(at.y))
	}
	all.labels(names, on.height)
	all.put("</svg>")
	return rest(names)
}

// seconds prints a time of the run.
func seconds(s float64) string {
	if s >= 120 {
		return (time.Duration(s) * time.Second).String()
	}
	return fmt.Sprintf("%gs", math.Abs(math.Round(1000*s))/1000) // a zero may be a little below
}

// driftCaption says how far the baseline wandered and how far the networks did against it. level and beyond are what
// baselinePanel says.
func driftCaption(s *setting, d insight.Drift, level []float64, beyond int) string {
	if len(level) == 0 {
		return "No reading of the baseline counts."
	}
	metric := metricLabel(d.Metric, d.Unit)
	text := fmt.Sprintf("Above: %s of %s by itself, between %s and %s over the run.", metric, baselineName(s.part.Cells),
		words.Value(d.Unit, slices.Min(level)), words.Value(d.Unit, slices.Max(level)))
	if beyond > 0 {
		text += fmt.Sprintf(" %s beyond the picture and stand at its edge.", lie(beyond))
	}
	var spreads []float64
	worst, most := "", 0.0
	for _, c := range d.Courses {
		if c.Role == result.RoleControl || len(c.Steps) < 2 || d.Linear {
			continue
		}
		logs := gather.Each(c.Steps, func(step insight.Step) float64 { return math.Log(step.Change) })
		moved := slices.Max(logs) - slices.Min(logs)
		if spreads = append(spreads, moved); moved >= most {
			worst, most = c.Name, moved
		}
	}
	text += " Below: each network against the baseline of the same moments"
	if len(spreads) > 0 {
		text += fmt.Sprintf("; from one build to another it moved by %.1f%% (median of the networks; %s the most, by %.1f%%)",
			100*math.Expm1(stats.Median(spreads)), worst, 100*math.Expm1(most))
	}
	return text + "."
}

// lie says that so many readings are somewhere.
func lie(n int) string {
	if n == 1 {
		return "1 reading lies"
	}
	return unit.Thousands(n) + " readings lie"
}
