package html

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"

	"netdelta/insight"
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

// box starts the part of the chart that is stretched to its width.
func (p plane) box(d *drawing) {
	d.put(`<svg class="box" viewBox="0 0 %d %s" preserveAspectRatio="none" width="100%%" height="%s">`, boxWidth, number(p.height), number(p.height))
}

// curve draws a series' line.
func (d *drawing) curve(class, name string, points []point) {
	d.put(`<path class="ln %s"`, class)
	d.WriteString(attribute("data-n", name))
	d.put(` d="%s"/>`, line(points))
}

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
	on.box(&d)
	var names []label
	var count int64
	for _, x := range all {
		points := make([]point, len(x.Quantiles))
		for i, q := range x.Quantiles {
			points[i] = on.place(insight.Nines(q.Percent), q.Value)
		}
		count += x.Count
		class := p.palette.of(x.Series)
		d.curve(class, again(x.Series), points)
		names = append(names, label{points[len(points)-1].y, again(x.Series), "lab " + class})
	}
	d.put("</svg>")
	d.labels(names, on.height)
	d.put("</svg>")
	return figure{Chart: d.html(), Caption: fmt.Sprintf("%s transactions, undisturbed bursts of all builds merged.", unit.Thousands(count))}
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
