package hops

import (
	"cmp"
	_ "embed" // the parts of the page
	"fmt"
	"html"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"netdelta/insight/hops"
	"netdelta/internal/gather"
	probe "netdelta/probe/hops"
	"netdelta/report/page"
	"netdelta/report/ui"
)

//go:embed page.tmpl
var layout string

//go:embed style.css
var style string

// Style is what a page needs that holds a Section.
//
//go:embed section.css
var Style string

// own has no script.
func own() page.Page { return page.New(layout, style+Style, "") }

// Write writes the hops of networks as one page that opens without network: the lanes, drawn to scale, and a table of each. The
// other networks are compared with the first. The error is w's.
func Write(w io.Writer, ways ...hops.Way) error {
	return own().Write(w, "the page of hops", drawing{ways})
}

// Section is the lanes and the tables as a part of another page.
func Section(ways ...hops.Way) (template.HTML, error) { return own().Part("hops", drawing{ways}) }

// drawing is what the template is filled in from.
type drawing struct{ Ways []hops.Way }

// Title names the networks.
func (d drawing) Title() string {
	names := gather.Each(d.Ways, func(w hops.Way) string { return w.Network })
	return "Where the time goes: " + strings.Join(names, ", ")
}

// Withheld says why nothing is shown, "" where it is.
func (d drawing) Withheld() string { return withheld(d.Ways) }

// Lanes is the picture.
func (d drawing) Lanes() template.HTML { return lanes(d.Ways) }

// table is one direction of one network.
type table struct {
	Title string
	// Base is the network that it is held against, "" for the first itself.
	Base string
	// Widest is what half of the widest bar stands for.
	Widest string
	Rows   []row
}

// row is a hop: its time in the base and here, with the difference, its bar and its interval.
type row struct {
	Name, Base, P50, P90, P99, Share, Difference, Interval string
	Bar                                                    template.HTML
}

// Conclusions say where the others differ from the first, a sentence each.
func (d drawing) Conclusions() []string {
	return gather.Each(d.Ways[min(1, len(d.Ways)):], func(w hops.Way) string { return conclusion(d.Ways[0], w) })
}

// Tables are the tables of all networks.
func (d drawing) Tables() []table {
	var all []table
	for i, w := range d.Ways {
		for _, way := range []struct {
			title       string
			base, other []hops.HopTime
		}{{"request of ", d.Ways[0].Request, w.Request}, {"response of ", d.Ways[0].Response, w.Response}} {
			t := table{Title: way.title + w.Network}
			if i == 0 {
				for _, h := range way.other {
					t.Rows = append(t.Rows, rowOf(h))
				}
			} else {
				t.Base = d.Ways[0].Network
				t.Rows, t.Widest = comparedRows(way.base, way.other)
			}
			all = append(all, t)
		}
	}
	return all
}

func rowOf(h hops.HopTime) row {
	return row{Name: h.Name, P50: ns(h.P50), P90: ns(h.P90), P99: ns(h.P99), Share: fmt.Sprintf("%.1f%%", 100*h.Share)}
}

// comparedRows also says what half of the widest bar stands for.
func comparedRows(base, other []hops.HopTime) (rows []row, widest string) {
	lines, most := hops.Compare(base, other), 0.0
	for _, l := range lines {
		most = max(most, math.Abs(l.Difference))
	}
	for _, l := range lines {
		r := row{P50: "-"}
		if l.Other != nil {
			r = rowOf(*l.Other)
		}
		r.Name, r.Base, r.Difference, r.Interval = l.Name(), timeOf(l.Base), signed(l.Difference), interval(l.Low, l.High)
		r.Bar = bar(l.Difference, most)
		rows = append(rows, r)
	}
	return rows, ns(most)
}

// partRow is a part of the round trip in all networks: its time and its share in each.
type partRow struct {
	Name, Changes string
	Cells         []string
}

// Parts are what the round trips are made of. Networks have the same parts, whichever are empty.
func (d drawing) Parts() []partRow {
	var rows []partRow
	for i, w := range d.Ways {
		for _, p := range w.Parts() {
			at := slices.IndexFunc(rows, func(r partRow) bool { return r.Name == p.Name })
			if at < 0 {
				at = len(rows)
				rows = append(rows, partRow{Name: p.Name, Changes: changes(p), Cells: make([]string, 2*len(d.Ways))})
			}
			rows[at].Cells[2*i], rows[at].Cells[2*i+1] = ns(p.Time), fmt.Sprintf("%.1f%%", 100*p.Share)
		}
	}
	return rows
}

// Slow are the networks for whose slowest transactions it is known what was different about them.
func (d drawing) Slow() []hops.Way {
	return slices.DeleteFunc(slices.Clone(d.Ways), func(w hops.Way) bool { return w.Outliers == nil })
}

// Slowest says which transactions these are.
func (d drawing) Slowest(w hops.Way) string { return slowest(w) }

// Percent prints a share.
func (d drawing) Percent(format string, share float64) string { return fmt.Sprintf(format, 100*share) }

// BasedOn says what the figures rest on.
func (d drawing) BasedOn() []string {
	var lines []string
	for _, w := range d.Ways {
		lines = append(lines, basedOn(w)...)
	}
	return lines
}

// colour is what a step is drawn in: apart for the colour-blind too, and readable under black letters.
func colour(step string) string {
	known := map[probe.Step]string{
		probe.StepCall: "#8ecae6", probe.StepOut: "#8ecae6",
		probe.StepLink:          "#d9d9d9",
		probe.StepForward:       "#ffd166",
		probe.StepEncapsulation: "#f78c6b",
		probe.StepUnderlay:      "#b7b7a4",
		probe.StepDecapsulation: "#ef9fbf",
		probe.StepIn:            "#a3d9a5",
		probe.StepWake:          "#c3b1e1", probe.StepDelivery: "#c3b1e1",
	}
	return cmp.Or(known[probe.Step(step)], "#e9ecef")
}

// Sizes of a drawing, in pixels. Widths are in percent.
const (
	laneHeight = 34
	laneGap    = 30
	axisHeight = 44
	// readable is the least share of the drawing's width that a hop needs for its name.
	readable = 0.075
	// leastNamed is the share that a tunnel's hop needs for its brief name.
	leastNamed = 0.028
)

// lanes draws the way of each network as a lane of hops from left to right, all to one scale: the request, and after it the
// response. It is SVG to be put into a page, with text in the page's own fonts.
func lanes(ways []hops.Way) template.HTML {
	longest := 0.0
	for _, w := range ways {
		longest = max(longest, w.Sum)
	}
	if longest <= 0 {
		return ""
	}
	var b strings.Builder
	height := len(ways) * (laneHeight + laneGap)
	fmt.Fprintf(&b, `<svg class="lanes" role="img" width="100%%" height="%d" aria-label="%s">`, height+axisHeight, html.EscapeString(description(ways)))
	axis(&b, height, longest)
	for i, w := range ways {
		lane(&b, w, i*(laneHeight+laneGap), longest)
	}
	b.WriteString("</svg>\n")
	legend(&b, ways)
	return template.HTML(b.String())
}

// ticksMost is how many steps the axis has at most: a phone has room for the values of so many.
const ticksMost = 5

// axis draws the axis of time below the lanes, with a line at each value through all of them.
func axis(b *strings.Builder, top int, longest float64) {
	const values, name = 14, 34
	b.WriteString(`<g class="axis">`)
	for _, v := range page.Ticks(0, longest, ticksMost) {
		at, anchor := 100*v/longest, "middle"
		switch {
		case v == 0:
			anchor = "start"
		case at > 88: // on a phone the value would not fit
			anchor = "end"
		}
		fmt.Fprintf(b, `<line x1="%.3f%%" x2="%.3f%%" y2="%d"/><text x="%.3f%%" y="%d" text-anchor="%s">%s</text>`, at, at, top, at, top+values, anchor, tick(v))
	}
	fmt.Fprintf(b, `<text x="0" y="%d">time since the request was sent</text></g>`, top+name)
}

// tick is a round time in nanoseconds, without the digits that measured ones have.
func tick(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}} {
		if v >= u.size {
			return strconv.FormatFloat(v/u.size, 'g', 4, 64) + " " + u.name
		}
	}
	if v == 0 {
		return "0"
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + " ns"
}

// description says in words what the drawing shows.
func description(ways []hops.Way) string {
	var parts []string
	for _, w := range ways {
		parts = append(parts, fmt.Sprintf("%s: %s in %d hops", w.Network, ns(w.Sum), len(w.Request)+len(w.Response)))
	}
	return strings.Join(parts, "; ")
}

func lane(b *strings.Builder, w hops.Way, top int, longest float64) {
	const titleBaseline = 16
	fmt.Fprintf(b, `<text x="0" y="%d" fill="currentColor">%s, %s</text>`, top+titleBaseline, html.EscapeString(w.Network), ns(w.Sum))
	at := 0.0
	for _, d := range []struct {
		name string
		hops []hops.HopTime
	}{{"request", w.Request}, {"response", w.Response}} {
		for _, h := range d.hops {
			width := max(h.P50, 0) / longest
			hop(b, d.name, h, top+laneGap-8, at, width)
			at += width
		}
	}
}

// hop draws one hop; a narrow one has its name only when it is pointed at.
func hop(b *strings.Builder, direction string, h hops.HopTime, top int, at, width float64) {
	fmt.Fprintf(b, `<g><rect x="%.3f%%" y="%d" width="%.3f%%" height="%d" fill="%s" stroke="#ffffff"/>`, 100*at, top, 100*width, laneHeight, colour(h.Step))
	fmt.Fprintf(b, `<title>%s, %s: %s</title>`, direction, html.EscapeString(h.Name), ns(h.P50))
	name, class := short(h), "name"
	if width < readable {
		name, class = brief(h), "name brief" // which a narrow window leaves out
	}
	if name != "" && width >= leastNamed {
		const baseline, inset = 14, 0.3
		fmt.Fprintf(b, `<svg x="%.3f%%" y="%d" width="%.3f%%" height="%d" class="%s"><text x="3" y="%d">%s</text><text x="3" y="%d">%s</text></svg>`,
			100*at, top, 100*width-inset, laneHeight, class, baseline, html.EscapeString(name), 2*baseline, ns(h.P50))
	}
	b.WriteString("</g>")
}

// short is a hop's name for a narrow place.
func short(h hops.HopTime) string {
	step, _, _ := strings.Cut(h.Step, ",")
	if h.Where == "" {
		return step
	}
	return h.Where + ": " + step
}

// brief is what a hop of a tunnel is called where its name has no room: these are what readers look for. Others have none.
func brief(h hops.HopTime) string {
	return map[probe.Step]string{probe.StepEncapsulation: "encap", probe.StepDecapsulation: "decap"}[probe.Step(h.Step)]
}

// legend names the colours that are used.
func legend(b *strings.Builder, ways []hops.Way) {
	var steps []string
	for _, w := range ways {
		for _, h := range slices.Concat(w.Request, w.Response) {
			steps = gather.Once(steps, h.Step)
		}
	}
	b.WriteString(`<p class="lanes-legend">`)
	for _, s := range steps {
		fmt.Fprintf(b, `<span><svg width="14" height="14" aria-hidden="true"><rect width="14" height="14" fill="%s"/></svg> %s</span> `, colour(s), html.EscapeString(s))
	}
	b.WriteString("</p>\n")
}

// conclusion says in a sentence where a network's round trip differs from the base's.
func conclusion(base, other hops.Way) string {
	d := hops.Conclude(base, other)
	than := "more than"
	if d.Total < 0 {
		than = "less than"
	}
	text := fmt.Sprintf("%s takes %s %s %s", ui.Clean(other.Network), ns(math.Abs(d.Total)), than, ui.Clean(base.Network))
	parts := gather.Each(d.Steps, func(s hops.StepDifference) string { return s.Step + " " + signed(s.Difference) })
	if len(parts) == 0 {
		return text + ": no step is known to differ."
	}
	if math.Abs(d.Rest) >= 0.5 {
		parts = append(parts, "the rest "+signed(d.Rest))
	}
	return text + ": " + strings.Join(parts, ", ") + "."
}

// Sizes of a difference's bar, in pixels.
const (
	barWidth  = 120
	barHeight = 12
)

// bar draws a difference to the right of the middle, or to the left where the other network takes less; most is the largest one.
func bar(difference, most float64) template.HTML {
	if most <= 0 || math.IsNaN(difference) {
		return ""
	}
	length := math.Abs(difference) / most * barWidth / 2
	from, class := barWidth/2.0, "more"
	if difference < 0 {
		from, class = from-length, "less"
	}
	return template.HTML(fmt.Sprintf(`<svg class="difference" width="%d" height="%d" aria-hidden="true"><line x1="%d" x2="%d" y2="%d"/><rect class=%q x="%.1f" width="%.1f" height="%d"/></svg>`,
		barWidth, barHeight, barWidth/2, barWidth/2, barHeight, class, from, length, barHeight))
}
