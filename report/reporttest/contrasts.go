package reporttest

import (
	"netdelta/insight"
	"netdelta/result"
)

// Contrasts are contrasts of deltas that nothing was measured for: two networks of a setting differ where their intervals do not meet.
func Contrasts(deltas ...result.Delta) []result.Contrast {
	ends := func(d result.Delta) (low, high float64) {
		a, b := d, d
		a.Difference, b.Difference = *d.DifferenceLow, *d.DifferenceHigh
		if d.Ratio > 0 {
			a.Ratio, b.Ratio = *d.RatioLow, *d.RatioHigh
		}
		return min(insight.Cost(a), insight.Cost(b)), max(insight.Cost(a), insight.Cost(b))
	}
	var list []result.Contrast
	for i, a := range deltas {
		for _, b := range deltas[i+1:] {
			if !a.Headline || !b.Headline || a.Setting != b.Setting || !insight.HasInterval(a) || !insight.HasInterval(b) {
				continue
			}
			c := result.Contrast{Cell: a.Cell, Other: b.Cell}
			aLow, aHigh := ends(a)
			bLow, bHigh := ends(b)
			switch {
			case aHigh < bLow:
				c.Cheaper = a.Cell
			case bHigh < aLow:
				c.Cheaper = b.Cell
			}
			list = append(list, c)
		}
	}
	return list
}
