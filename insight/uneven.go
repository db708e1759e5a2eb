package insight

import (
	"math"

	"netdelta/result"
	"netdelta/stats"
)

// Unevenness is how a network's bursts differ from its baseline's in more than their level.
type Unevenness struct {
	// Network is "" where it is about all networks of a setting, and Baseline their baseline.
	Network, Baseline string
	// Mean, Middle and Typical are the network against the baseline as ratios: of all bursts, of the middle 60% (the delta), and of the
	// typical burst.
	Mean, Middle, Typical float64
	// LeftOut and BaselineLeftOut are the shares of bursts that were left out as disturbed.
	LeftOut, BaselineLeftOut float64
}

// unevenLeast is the least difference between a mean and a typical burst that is reported, as a share of the margin, and leftOutLeast
// that between shares of bursts that were left out.
const (
	unevenLeast  = 0.5
	leftOutLeast = 0.02
)

// unevenChecks look in a setting for networks whose bursts scatter otherwise than their baseline's, or of which more or
// fewer were left out. The delta of such a network is neither of the typical burst nor of the mean one. Both together err in at most one
// of a hundred runs.
func (b *basis) unevenChecks(t *cellSet, m metric, paired map[string]pairedBuilds) []Check {
	if b.options.Exact || b.options.Unpaired || !m.ofBursts() || m.linear {
		return nil
	}
	tests := 2*b.networks + len(b.sets)
	var checks []Check
	least := unevenLeast * math.Log1p(b.options.margin())
	for _, cell := range t.cells {
		if places, uneven := stats.Uneven(paired[cell.ID].builds, tests, least); uneven {
			checks = append(checks, Check{Trial: cell.ID, Name: CheckScatter, Uneven: &Unevenness{
				Network: cell.Network, Baseline: t.baseline.Network,
				Mean: math.Exp(places.Mean), Middle: math.Exp(places.Center), Typical: math.Exp(places.Typical),
			}})
		}
	}
	return append(checks, t.leftOutChecks(tests, b.all)...)
}

// leftOutChecks compare the shares of bursts that were left out: of all networks together, and if they are alike of each.
func (t cellSet) leftOutChecks(tests int, all []batch) []Check {
	references := t.references()
	check := func(cells []result.Cell, network string) *Check {
		var gaps, own, base []float64
		for _, s := range all {
			x, y := t.leftOut(s, cells), t.leftOut(s, references)
			if !math.IsNaN(x) && !math.IsNaN(y) {
				gaps, own, base = append(gaps, x-y), append(own, x), append(base, y)
			}
		}
		if len(gaps) < stats.DefaultMinBuilds || !stats.Systematic(gaps, tests, leftOutLeast) {
			return nil
		}
		return &Check{Trial: cells[0].ID, Name: CheckLeftOut, Uneven: &Unevenness{
			Network: network, Baseline: t.baseline.Network, LeftOut: stats.Mean(own), BaselineLeftOut: stats.Mean(base),
		}}
	}
	if len(t.cells) == 0 {
		return nil
	}
	if c := check(t.cells, ""); c != nil {
		c.Trial = t.baseline.ID
		return []Check{*c}
	}
	var checks []Check
	for _, cell := range t.cells {
		if c := check([]result.Cell{cell}, cell.Network); c != nil {
			checks = append(checks, *c)
		}
	}
	return checks
}

// references are the baseline and its A/A control.
func (t cellSet) references() []result.Cell {
	list := []result.Cell{*t.baseline}
	if t.control != nil {
		list = append(list, *t.control)
	}
	return list
}

// leftOut is the share of bursts of some cells in a build that were disturbed, NaN without any.
func (t cellSet) leftOut(s batch, cells []result.Cell) float64 {
	n, of := 0, 0
	for _, c := range cells {
		if trial := s.good(c.ID); trial != nil {
			n, of = n+marked(trial.disturbed), of+len(trial.rounds)
		}
	}
	return float64(n) / float64(of)
}

// margin is the margin of ratios.
func (o Options) margin() float64 {
	if o.Margin > 0 && o.Margin < 1 {
		return o.Margin
	}
	return stats.DefaultMargin
}
