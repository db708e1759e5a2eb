package hops

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strings"

	"netdelta/insight/hops"
	"netdelta/internal/gather"
	probe "netdelta/probe/hops"
	"netdelta/report/ui"
)

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
	fmt.Fprintf(&b, `<svg class="lanes" role="img" width="100%%" height="%d" aria-label="%s">`, height, html.EscapeString(description(ways)))
	for i, w := range ways {
		lane(&b, w, i*(laneHeight+laneGap), longest)
	}
	b.WriteString("</svg>\n")
	legend(&b, ways)
	return template.HTML(b.String())
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
