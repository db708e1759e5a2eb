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
	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
)

// figure is a chart of a setting with its caption.
type figure struct {
	Setting *setting
	Chart   template.HTML
	Caption string
	Open    bool
	// Rest names the curves that are not drawn until the reader chooses them.
	Rest []string
	// Bars are the rows of a figure that is a table of bars.
	Bars []bar
}

// figures draws what the trials of a setting show; it is false if they show nothing.
func (p *page) figures(s *setting, e insight.Evidence) bool {
	drawn := false
	add := func(list *[]figure, f figure) {
		if f.Chart != "" || len(f.Bars) > 0 {
			f.Setting, f.Open = s, len(*list) < figuresOpen
			*list = append(*list, f)
			drawn = true
		}
	}
	add(&p.Distributions, p.distribution(s, e.Distributions(s.Key)))
	add(&p.Series, p.series(s, e.Drift(s.Key, s.headline(), p.Run.Started), p.stalls))
	add(&p.CPU, spendings(e.Spendings(s.Key)))
	return drawn
}

// Sizes of charts, in pixels.
const (
	distributionHeight = 300
	baselineHeight     = 130
	courseHeight       = 190
)

// plane is a chart's two axes over its height.
type plane struct {
	x, y   scale
	height float64
}

// place is where a pair of values stands in the stretched box, kept inside.
func (p plane) place(x, y float64) point {
	return point{boxWidth * p.x.within(x), p.height * (1 - p.y.within(y))}
}

// open starts a chart; kind tells the script how to read it. What it needs for that is on the element.
func (p plane) open(d *drawing, kind, unitName, name, description string) {
	attributes := `class="plot" tabindex="0"` + attribute("height", number(p.height)) + attribute("data-kind", kind) +
		attribute("data-x0", fmt.Sprint(p.x.low)) + attribute("data-x1", fmt.Sprint(p.x.high)) +
		attribute("data-y0", fmt.Sprint(p.y.low)) + attribute("data-y1", fmt.Sprint(p.y.high)) +
		attribute("data-log", fmt.Sprint(p.y.log)) + attribute("data-unit", unitName)
	d.named(attributes, name, description)
}

// grid draws lines across, with labels at the left.
func (p plane) grid(d *drawing, ticks []float64, label func(float64) string) {
	for _, t := range ticks {
		if at := p.y.at(t); at < -1e-9 || at > 1+1e-9 {
			continue
		}
		y := number(p.height * (1 - p.y.at(t)))
		d.put(`<line class="tick" x2="100%%" y1="%s" y2="%s"/>`, y, y)
		d.text(`class="al" x="-8" y="`+y+`" dy="4" text-anchor="end"`, label(t))
	}
}

// uprights draws lines upwards, with labels below.
func (p plane) uprights(d *drawing, ticks []float64, label func(float64) string) {
	for i, t := range ticks {
		x := percent(p.x.at(t))
		d.put(`<line class="tick" x1="%s" x2="%s" y2="%s"/>`, x, x, number(p.height))
		anchor := "middle"
		if p.x.at(t) > 0.97 {
			anchor = "end"
		}
		class := "al"
		if i%2 == 1 {
			class = "al odd"
		}
		d.text(`class="`+class+`" x="`+x+`" y="`+number(p.height+16)+`" text-anchor="`+anchor+`"`, label(t))
	}
}

// titles say what the axes are of, and which are logarithmic; across is "" under a chart that has another below it.
func (p plane) titles(d *drawing, across, up string) {
	if p.y.log {
		up += logScale
	}
	d.text(`class="al" y="-9"`, up)
	if p.x.log {
		across += logScale
	}
	if across != "" {
		d.text(`class="al" y="`+number(p.height+33)+`"`, across)
	}
}

// box starts the part of the chart that is stretched to its width.
func (p plane) box(d *drawing) {
	d.put(`<svg class="box" viewBox="0 0 %d %s" preserveAspectRatio="none" width="100%%" height="%s">`, boxWidth, number(p.height), number(p.height))
}

// curve draws a series' line.
func (d *drawing) curve(l label, points []point) { d.marked("ln", l, line(points)) }

// marked draws a path of a series.
func (d *drawing) marked(kind string, l label, path string) {
	d.put(`<path class="%s %s"`, kind, l.classes())
	d.WriteString(attribute("data-n", l.text))
	d.put(` d="%s"/>`, path)
}

// curvesMost is how many curves a chart draws of many; its reader chooses others.
const curvesMost = 6

// drawnFirst are the cells whose curves a chart draws until its reader chooses: the baseline, its A/A control, and of the networks the
// cheapest, the dearest and some in between, demonstrations only where there is room left.
func (s *setting) drawnFirst(all []insight.Series) map[string]bool {
	drawn := map[string]bool{}
	has := map[string]bool{}
	for _, x := range all {
		has[x.Cell] = true
		if x.Role != result.RoleCell || len(all) <= curvesMost {
			drawn[x.Cell] = true
		}
	}
	ranked := gather.Where(s.headlines(), func(d result.Delta) bool { return has[d.Cell] })
	common := insight.Common(ranked)
	if room, n := curvesMost-len(drawn), len(common); room > 1 && n > room {
		for i := range room {
			drawn[common[i*(n-1)/(room-1)].Cell] = true
		}
	}
	for _, d := range ranked {
		if len(drawn) < curvesMost {
			drawn[d.Cell] = true
		}
	}
	return drawn
}

// restClass is the class of curves that are drawn only when the reader chooses them.
const restClass = " rest"

// percentages are the ticks of the axis of nines.
func percentages(high float64) []float64 {
	var all []float64
	for _, p := range []float64{0, 50, 90, 99, 99.9, 99.99, 99.999} {
		if x := insight.Nines(p); x <= high+1e-9 {
			all = append(all, x)
		}
	}
	return all
}

// percentageLabel is the name of a tick of the axis of nines.
func percentageLabel(x float64) string {
	if x <= 0 {
		return "min"
	}
	return fmt.Sprintf("p%.6g", math.Round(1e5*(100-math.Pow(10, 2-x)))/1e5)
}

// distribution draws what the transactions of each network took, from the fastest to the slowest few.
func (p *page) distribution(s *setting, all []insight.Distribution) figure {
	var values []float64
	high := 0.0
	for _, d := range all {
		for _, q := range d.Quantiles {
			values = append(values, q.Value)
			high = max(high, insight.Nines(q.Percent))
		}
	}
	span, ok := spanOf(values, true)
	if !ok || high <= 0 {
		return figure{}
	}
	on := plane{x: scale{0, high, false}, y: span.room(0.04), height: distributionHeight}
	var d drawing
	on.open(&d, "quantiles", "ns", "Latency of "+s.Title()+" by percentile",
		"A curve for each network: how long the given share of its transactions took at most, both axes logarithmic.")
	on.grid(&d, on.y.logTicks(7), func(v float64) string { return valueLabel("ns", v) })
	on.uprights(&d, percentages(high), percentageLabel)
	on.titles(&d, "percentile of transactions"+logScale, "latency")
	on.box(&d)
	drawn := s.drawnFirst(gather.Each(all, func(x insight.Distribution) insight.Series { return x.Series }))
	var names []label
	var count int64
	for _, x := range all {
		points := make([]point, len(x.Quantiles))
		for i, q := range x.Quantiles {
			points[i] = on.place(insight.Nines(q.Percent), q.Value)
		}
		count += x.Count
		l := label{points[len(points)-1].y, again(x.Series), p.palette.of(x.Series), !drawn[x.Cell]}
		d.curve(l, points)
		names = append(names, l)
	}
	d.put("</svg>")
	d.labels(names, on.height)
	d.put("</svg>")
	return figure{Chart: d.html(), Rest: rest(names), Caption: fmt.Sprintf("%s transactions, undisturbed bursts of all builds merged.", unit.Thousands(count))}
}

// stalled are the trials in which a check found the traffic to stand still.
func (p *page) stalled() map[string]bool {
	ids := map[string]bool{}
	for _, c := range p.Run.Checks {
		if !c.OK && strings.HasPrefix(c.Check, "stall") {
			ids[c.Trial] = true
		}
	}
	return ids
}

// bar is a network's processor time, drawn as three lengths.
type bar struct {
	Name, Total, Client, Server, Kernel string
	Plot                                template.HTML
}

// spendings draws the processor time of each network of a setting.
func spendings(all []insight.Spending) figure {
	most := 0.0
	for _, s := range all {
		most = max(most, s.Total())
	}
	var f figure
	for _, s := range all {
		text := func(v float64) string {
			if s.PerByte {
				return strconv.FormatFloat(v, 'g', 3, 64) + " s"
			}
			return words.Value("ns", v)
		}
		b := bar{Name: s.Name, Total: text(s.Total()), Client: text(s.Client), Server: text(s.Server), Kernel: text(s.Kernel)}
		if s.KernelUnknown {
			b.Kernel = "?"
		}
		var d drawing
		d.WriteString(`<svg class="bars" height="22" role="img"` + attribute("aria-label",
			fmt.Sprintf("%s: client %s, server %s, kernel %s", s.Name, b.Client, b.Server, b.Kernel)) + ">")
		from := 0.0
		for i, part := range []float64{s.Client, s.Server, s.Kernel} {
			d.put(`<rect class="p%d" x="%s" y="3" width="%s" height="16"/>`, i, percent(from/most), percent(part/most))
			from += part
		}
		d.put("</svg>")
		b.Plot = d.html()
		f.Bars = append(f.Bars, b)
		f.Caption = "Processor time for each transaction."
		if s.PerByte {
			f.Caption = "Processor time for each gigabyte of payload."
		}
		if s.KernelUnknown {
			f.Caption += " What the kernels of these machines do in no thread's name is not known."
		}
	}
	return f
}

// baselineName is what the baseline is called.
func baselineName(cells []result.Cell) string {
	for _, c := range cells {
		if c.Role == result.RoleBaseline {
			return insight.Name(c.Network, c.Path)
		}
	}
	return "the baseline"
}

// drawing is an SVG in the making. Text is escaped by text and attribute, and nowhere else.
//
// Charts have no width of their own: what must keep its form (text, dots) is placed in percent, and lines are drawn in a
// box of unit widths that the browser stretches, with strokes that it does not.
type drawing struct{ strings.Builder }

// unit is the width of the stretched box.
const boxWidth = 1000

// attribute is a name with an escaped value.
func attribute(name, value string) string {
	return " " + name + `="` + template.HTMLEscapeString(value) + `"`
}

// put writes markup with a format, whose arguments must be numbers or constants.
func (d *drawing) put(format string, a ...any) {
	markup := fmt.Sprintf(format, a...)
	d.WriteString(markup)
}

// text writes an element of text with constant attributes.
func (d *drawing) text(attributes, text string) {
	d.WriteString("<text " + attributes + ">" + template.HTMLEscapeString(text) + "</text>")
}

// named opens an image with its name and, where given, a longer description for screen readers.
func (d *drawing) named(attributes, name, description string) {
	d.WriteString("<svg " + attributes + ` role="img"><title>` + template.HTMLEscapeString(name) + "</title>")
	if description != "" {
		d.WriteString("<desc>" + template.HTMLEscapeString(description) + "</desc>")
	}
}

// html is the finished drawing.
func (d *drawing) html() template.HTML { return template.HTML(d.String()) }

// number prints a coordinate, to a tenth.
func number(x float64) string {
	text := strconv.FormatFloat(x, 'f', 1, 64)
	text = strings.TrimSuffix(text, ".0")
	if text == "-0" {
		return "0"
	}
	return text
}

// percent prints a share of the width as a coordinate.
func percent(share float64) string {
	return number(100*share) + "%"
}

// point is a place in the stretched box: x is 0 to boxWidth, y in pixels from the top.
type point struct{ x, y float64 }

// line is the path through points.
func line(points []point) string {
	var b strings.Builder
	for i, p := range points {
		if i == 0 {
			b.WriteByte('M')
		} else {
			b.WriteByte('L')
		}
		b.WriteString(number(p.x) + " " + number(p.y))
	}
	return b.String()
}

// dots is a path of lines without length, which round caps make dots.
func dots(points []point) string {
	var b strings.Builder
	for _, p := range points {
		b.WriteString("M" + number(p.x) + " " + number(p.y) + "h0")
	}
	return b.String()
}

// label is the name of a curve, at its right end.
type label struct {
	y     float64 // where the curve ends
	text  string
	class string
	rest  bool // not drawn until it is chosen
}

func (l label) classes() string {
	if l.rest {
		return l.class + restClass
	}
	return l.class
}

// rest names the curves that are not drawn.
func rest(all []label) []string {
	return gather.Each(gather.Where(all, func(l label) bool { return l.rest }), func(l label) string { return l.text })
}

// labelHeight is the distance of two lines of labels.
const labelHeight = 15

// labels writes labels to the right of the chart, moved apart where they would overlap, each with a thin line to its curve.
func (d *drawing) labels(all []label, height float64) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	drawn := gather.Where(all, func(l label) bool { return !l.rest })
	places := gather.Each(drawn, func(l label) float64 { return l.y })
	spread(places, labelHeight, height)
	d.put(`<svg x="100%%" class="labels">`)
	for i, l := range drawn {
		d.end(l, places[i])
	}
	for _, l := range all {
		if l.rest {
			d.end(l, l.y)
		}
	}
	d.put("</svg>")
}

// end writes one label at a place, with a thin line to the end of its curve.
func (d *drawing) end(l label, place float64) {
	d.put(`<g class="end %s"`, l.classes())
	d.WriteString(attribute("data-n", l.text))
	d.put(`><path class="leader" d="M2 %sL10 %s"/>`, number(l.y), number(place))
	d.text(`class="lab" x="13" y="`+number(place+4)+`"`, shorten(l.text, labelMost))
	d.put("</g>")
}

// labelMost is the length of the longest label that is shown whole.
const labelMost = 13

// shorten cuts a text to so many characters. Of the path of a list of plugins the end is kept, which tells it from others.
func shorten(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	if strings.HasPrefix(text, network.CNIPrefix) {
		return "…" + string(runes[len(runes)-most+1:])
	}
	return string(runes[:most-1]) + "…"
}

// spread moves ascending places apart to a least distance, as little as it can, and keeps them between 0 and a height if they
// all fit there.
func spread(places []float64, distance, height float64) {
	type group struct{ first, last, sum float64 } // indices, and the sum of where its members would like the first to be
	var groups []group
	start := func(g group) float64 {
		n := g.last - g.first + 1
		return min(max(g.sum/n, distance/2), max(height-distance*(n-0.5), distance/2))
	}
	for i, p := range places {
		g := group{float64(i), float64(i), p}
		for len(groups) > 0 {
			before := groups[len(groups)-1]
			n := before.last - before.first + 1
			if start(before)+distance*n <= start(g) {
				break
			}
			g = group{before.first, g.last, before.sum + g.sum - distance*n*(g.last-g.first+1)}
			groups = groups[:len(groups)-1]
		}
		groups = append(groups, g)
	}
	for _, g := range groups {
		for i := g.first; i <= g.last; i++ {
			places[int(i)] = start(g) + distance*(i-g.first)
		}
	}
}
