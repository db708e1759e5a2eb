package insight

import (
	"cmp"
	"math"
	"slices"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/stats"
)

// Outcome says whether the networks of a setting could be compared with their baseline.
type Outcome int

// The outcomes. The zero Outcome is a setting without cells.
const (
	Compared Outcome = iota + 1
	// BaselineOnly is a setting in which nothing but the baseline was asked for: such a run is about the effects of its factors.
	BaselineOnly
	NothingMeasured
	NoBaselineMeasured
	NothingPaired
)

// Conclusion is what the headline deltas of a setting show. It says no more than was seen: networks are
// ranked against each other where they differ when compared directly.
type Conclusion struct {
	Setting  result.Setting
	Outcome  Outcome
	Baseline string
	// Margin within which a network counts as the same as its baseline: a share, or of loss a difference of shares.
	Margin float64
	// Deltas are all headline deltas, the cheapest network first. The lists below sort them by what is known of them.
	Deltas             []result.Delta
	Faster, Same       []result.Delta
	Slower             Ranking
	Open               []result.Delta // the interval holds no change
	Likely             []result.Delta // the interval excludes no change, the test over the family does not yet
	WithinNoise, Early []result.Delta // no larger than the noise floor, or than what other programs may have caused; without an interval
	Busy               bool           // such programs ran
}

// Conclude sorts the headline deltas of a setting by what they show.
func Conclude(part Part) Conclusion {
	c := Conclusion{Setting: part.Setting, Deltas: part.Headlines(), Margin: part.Margin, Busy: part.Busy}
	switch {
	case len(part.Cells) == 0:
		return c
	case onlyBaseline(part.Cells):
		c.Outcome = BaselineOnly
		return c
	case len(c.Deltas) == 0:
		c.Outcome, c.Baseline = nothing(part.Cells)
		return c
	}
	c.Outcome, c.Baseline = Compared, c.Deltas[0].Baseline
	if c.Deltas[0].Ratio == 0 {
		c.Margin = LossMargin
	}
	c.sort(part)
	return c
}

// sort fills in the lists.
func (c *Conclusion) sort(part Part) {
	o := stats.Options{Confidence: part.Confidence, Sequential: part.Adaptive}
	var slower []result.Delta
	for _, d := range c.Deltas {
		list := &c.WithinNoise
		low, high := costRange(d)
		switch verdict := stats.Verdict(d.Verdict); {
		case !HasInterval(d):
			list = &c.Early
		case verdict == stats.Faster:
			list = &c.Faster
		case verdict == stats.Same:
			list = &c.Same
		case verdict == stats.Slower:
			list = &slower
		case low <= 0 && high >= 0:
			list = &c.Open
		case waits(d, o):
			list = &c.Likely
		}
		*list = append(*list, d)
	}
	c.Slower = part.ranking(slower)
}

// onlyBaseline says whether cells are only a baseline and its A/A control.
func onlyBaseline(cells []result.Cell) bool {
	has := func(role result.Role) bool {
		return slices.ContainsFunc(cells, func(c result.Cell) bool { return c.Role == role })
	}
	return has(result.RoleBaseline) && !has(result.RoleCell)
}

// nothing says why a setting of these cells has no deltas, and names its baseline.
func nothing(cells []result.Cell) (Outcome, string) {
	baseline, measurable := "", false
	for _, c := range cells {
		if c.Role == result.RoleBaseline {
			baseline = c.Network
		}
		measurable = measurable || c.Role == result.RoleCell && c.Unsupported == "" && c.Skipped == ""
	}
	switch {
	case !measurable:
		return NothingMeasured, baseline
	case baseline == "":
		return NoBaselineMeasured, baseline
	}
	return NothingPaired, baseline
}

// Headlines are the headline deltas of a setting, the cheapest network first.
func Headlines(deltas []result.Delta, setting result.Setting) []result.Delta {
	isOwn := func(d *result.Delta) bool { return d.Headline && d.Setting == setting }
	n := 0
	for i := range deltas {
		if isOwn(&deltas[i]) {
			n++
		}
	}
	own := make([]result.Delta, 0, n) // they are large
	for i := range deltas {
		if isOwn(&deltas[i]) {
			own = append(own, deltas[i])
		}
	}
	slices.SortStableFunc(own, func(a, b result.Delta) int { return cmp.Compare(Cost(a), Cost(b)) })
	return own
}

// Cost orders the deltas of one metric: it is above 0 for what is worse than the baseline, and the larger the worse. It is
// the logarithm of the ratio, or the difference for metrics without one, with the sign turned where higher is better.
func Cost(d result.Delta) float64 { return worse(d, d.Ratio, d.Difference) }

// worse is a ratio, or where the delta has none a difference, on the scale of Cost.
func worse(d result.Delta, ratio, difference float64) float64 {
	x := difference
	if d.Ratio > 0 {
		x = math.Log(ratio)
	}
	if HigherBetter(d) {
		return -x
	}
	return x
}

// HigherBetter says whether the delta's metric improves as it grows.
func HigherBetter(d result.Delta) bool { return d.Better == string(stats.HigherBetter) }

// costRange is the interval of Cost; it is without bounds for a delta without an interval.
func costRange(d result.Delta) (low, high float64) {
	a, b := math.Inf(-1), math.Inf(1)
	switch {
	case d.RatioLow != nil && d.RatioHigh != nil:
		a, b = worse(d, *d.RatioLow, 0), worse(d, *d.RatioHigh, 0)
	case d.DifferenceLow != nil && d.DifferenceHigh != nil && d.Ratio == 0:
		a, b = worse(d, 0, *d.DifferenceLow), worse(d, 0, *d.DifferenceHigh)
	}
	return min(a, b), max(a, b)
}

// HasInterval says whether a delta rests on builds enough for an interval.
func HasInterval(d result.Delta) bool {
	low, high := costRange(d)
	return !math.IsInf(low, 0) && !math.IsInf(high, 0)
}

// Name is what a delta's network is called in a table: with its path where that is not the pod's own address.
func Name(network, path string) string {
	if path == "" || path == "pod" {
		return network
	}
	return network + " (" + path + ")"
}

// Names are the deltas' networks.
func Names(deltas []result.Delta) []string {
	return gather.Each(deltas, func(d result.Delta) string { return Name(d.Network, d.Path) })
}

// When bars are cut: with so many deltas or more, if the largest is so many times the third quartile; then at so many times it.
const (
	cutFrom  = 6
	cutAbove = 3.0
	cutAt    = 2.0
)

// Cut is how far from no change deltas of one metric are drawn, on the scale of Cost: a bar beyond it is cut, and marked as
// cut, so that one network that costs many times as much as the others leaves them room to differ. It is infinite where no bar
// needs to be.
func Cut(deltas []result.Delta) float64 {
	var sizes []float64
	for _, d := range deltas {
		if x := math.Abs(Cost(d)); !math.IsNaN(x) && !math.IsInf(x, 0) {
			sizes = append(sizes, x)
		}
	}
	if len(sizes) < cutFrom {
		return math.Inf(1)
	}
	usual := stats.Quantile(sizes, 0.75)
	if usual <= 0 || slices.Max(sizes) <= cutAbove*usual {
		return math.Inf(1)
	}
	return cutAt * usual
}
