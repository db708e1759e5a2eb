package terminal

import (
	"fmt"
	"slices"

	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
)

// pairs prints each two networks of a setting, held directly against one another: those that differ first.
func (p *page) pairs(part insight.Part) {
	names, width := map[string]string{}, 0
	for _, c := range part.Cells {
		names[c.ID] = insight.Name(c.Network, c.Path)
	}
	pair := func(c result.Contrast) string { return names[c.Cell] + " against " + names[c.Other] }
	for _, c := range part.Contrasts {
		width = max(width, ui.Columns(pair(c)))
	}
	sorted := slices.Clone(part.Contrasts)
	slices.SortStableFunc(sorted, func(a, b result.Contrast) int {
		switch {
		case a.Cheaper != "" && b.Cheaper == "":
			return -1
		case a.Cheaper == "" && b.Cheaper != "":
			return 1
		}
		return 0
	})
	for _, c := range sorted {
		verdict := stats.Unresolved
		switch c.Cheaper {
		case "":
		case c.Cell:
			verdict = stats.Faster
		default:
			verdict = stats.Slower
		}
		p.line(piece{text: fmt.Sprintf("%-*s  %-28s ", width, pair(c), words.Contrast(c))}, piece{string(verdict), verdictStyle(string(verdict))})
	}
}
