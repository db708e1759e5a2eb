package html

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"netdelta/internal/gather"
	"netdelta/network"
)

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

// label is a text at the right end of a curve.
type label struct {
	y     float64 // where the curve ends, then where the text stands
	text  string
	class string
}

// labelHeight is the distance of two lines of labels.
const labelHeight = 15

// labels writes labels to the right of the chart, moved apart where they would overlap, each with a thin line to its curve.
func (d *drawing) labels(all []label, height float64) {
	slices.SortStableFunc(all, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	places := gather.Each(all, func(l label) float64 { return l.y })
	spread(places, labelHeight, height)
	d.put(`<svg x="100%%" class="labels">`)
	for i, l := range all {
		d.put(`<path class="leader" d="M2 %sL10 %s"/>`, number(l.y), number(places[i]))
		d.text(`x="13" y="`+number(places[i]+4)+`" class="`+l.class+`"`, shorten(l.text, labelMost))
	}
	d.put("</svg>")
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
