package terminal

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/report/words"
)

// settingsMost is how many settings are printed for a person who looks on: a thousand would be tens of thousands of lines.
const settingsMost = 24

// settings prints the table of each setting. On a terminal these are, of more than settingsMost, those in which a network differs most
// from the baseline, in the order of the study.
func (p *page) settings(parts []insight.Part) {
	parts = slices.DeleteFunc(parts, func(part insight.Part) bool { return len(part.Cells) == 0 })
	most := p.atMost(settingsMost, len(parts))
	for i, part := range farthest(parts, most) {
		p.setting(part)
		if i == 0 {
			p.caveats()
		}
	}
	p.further(len(parts)-most, "settings, in which networks differ less,")
}

// atMost is how many of so many tables are printed: no more than a limit on a terminal, and all of them in a file or for another program.
func (p *page) atMost(most, of int) int {
	if p.terminal.Interactive {
		return min(most, of)
	}
	return of
}

// further says how to see tables that were left out.
func (p *page) further(left int, what string) {
	if left > 0 {
		p.line()
		p.paragraph(piece{}, fmt.Sprintf("%d more %s are not shown here: %s | less prints all of them, and %s draws them.",
			left, what, p.command("netdelta show "+words.Folder), p.command("netdelta report "+words.Folder)))
	}
}

// caveats stand with the first table.
func (p *page) caveats() {
	for _, caveat := range words.Caveats(p.run) {
		p.paragraph(piece{}, caveat)
	}
}

// farthest are so many parts in which networks differ most from the baseline.
func farthest(parts []insight.Part, most int) []insight.Part {
	order := make([]int, len(parts))
	differ := make([]float64, len(parts))
	for i, part := range parts {
		order[i] = i
		for _, d := range part.Headlines() {
			if d.Ratio > 0 {
				differ[i] = max(differ[i], math.Abs(math.Log(d.Ratio)))
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(differ[b], differ[a]) })
	order = slices.Sorted(slices.Values(order[:most]))
	return gather.Each(order, func(i int) insight.Part { return parts[i] })
}
