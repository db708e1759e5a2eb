package hops

import (
	"fmt"
	"html/template"
	"math"
	"strings"

	"netdelta/insight/hops"
	"netdelta/report/ui"
)

// conclusion says in a sentence where a network's round trip differs from the base's.
func conclusion(base, other hops.Way) string {
	d := hops.Conclude(base, other)
	than := "more than"
	if d.Total < 0 {
		than = "less than"
	}
	text := fmt.Sprintf("%s takes %s %s %s", ui.Clean(other.Network), ns(math.Abs(d.Total)), than, ui.Clean(base.Network))
	var parts []string
	for _, s := range d.Steps {
		parts = append(parts, s.Step+" "+signed(s.Difference))
	}
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
