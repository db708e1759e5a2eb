package insight

import (
	"cmp"
	"slices"

	"netdelta/result"
	"netdelta/stats"
)

// Against holds the networks of the part against one of them, in the headline metric, as the record has it: the baseline by the network's own
// delta, turned; all others by their direct contrasts with it. The cheapest stands first. Of what a contrast does not hold, such as the
// difference in time, these deltas have nothing. Networks without a contrast are left out.
func (p Part) Against(name string) []result.Delta {
	heads := p.Headlines()
	at := slices.IndexFunc(heads, func(d result.Delta) bool { return Name(d.Network, d.Path) == name })
	if at < 0 {
		return nil
	}
	all := []result.Delta{inverted(heads[at])}
	for _, d := range heads {
		for _, c := range p.Contrasts {
			if (c.Ratio == 0) != (d.Ratio == 0) {
				continue // it has no amount
			}
			switch {
			case c.Cell == d.Cell && c.Other == heads[at].Cell:
				all = append(all, direct(d, heads[at], c, false))
			case c.Other == d.Cell && c.Cell == heads[at].Cell:
				all = append(all, direct(d, heads[at], c, true))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b result.Delta) int { return cmp.Compare(Cost(a), Cost(b)) })
	return all
}

// direct is a contrast as a delta of one network against another; turned says that the contrast has the two the other way round.
func direct(d, other result.Delta, c result.Contrast, turned bool) result.Delta {
	d.Baseline, d.BaselineValue = Name(other.Network, other.Path), other.Value
	d.Blocks, d.Need, d.P, d.PAdjusted = c.Blocks, 0, nil, c.PAdjusted
	d.Ratio, d.RatioLow, d.RatioHigh = c.Ratio, c.RatioLow, c.RatioHigh
	d.Difference, d.DifferenceLow, d.DifferenceHigh = c.Difference, c.DifferenceLow, c.DifferenceHigh
	if turned {
		if d.Ratio > 0 {
			d.Ratio = 1 / d.Ratio
		}
		d.RatioLow, d.RatioHigh = reciprocal(c.RatioHigh), reciprocal(c.RatioLow)
		d.Difference, d.DifferenceLow, d.DifferenceHigh = -d.Difference, negative(c.DifferenceHigh), negative(c.DifferenceLow)
	}
	switch c.Cheaper {
	case "":
		d.Verdict = string(stats.Unresolved)
	case d.Cell:
		d.Verdict = string(stats.Faster)
	default:
		d.Verdict = string(stats.Slower)
	}
	return d
}
