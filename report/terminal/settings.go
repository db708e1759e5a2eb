package terminal

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"netdelta/insight"
	"netdelta/report/words"
)

// settingsMost is how many settings are printed for a person who looks on: a thousand would be tens of thousands of lines.
const settingsMost = 24

// settings prints the table of each setting. On a terminal these are, of more than settingsMost, those in which a network differs most
// from the baseline, in the order of the study.
func (p *page) settings(parts []insight.Part) {
	parts = slices.DeleteFunc(parts, func(part insight.Part) bool { return len(part.Cells) == 0 })
	shown := parts
	if left := len(parts) - settingsMost; p.terminal.Interactive && left > 0 {
		shown = farthest(parts, settingsMost)
		defer func() {
			p.line()
			p.paragraph(piece{}, fmt.Sprintf("%d more settings, in which networks differ less, are not shown here: netdelta show DIR | less prints all of them, and netdelta report DIR draws them.", left))
		}()
	}
	for i, part := range shown {
		p.setting(part)
		if i == 0 {
			p.caveats()
		}
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
	var chosen []insight.Part
	for _, i := range order {
		chosen = append(chosen, parts[i])
	}
	return chosen
}
