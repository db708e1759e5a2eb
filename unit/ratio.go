package unit

import (
	"math"
	"strconv"
)

// Ratio is a value over its baseline: 1 is no change, 1.2345 is 23.45% more.
type Ratio float64

// Percent prints the change against the baseline with one decimal: "+23.5%", "-4.0%", "0.0%". A ratio that is not a
// number prints as "n/a".
func (r Ratio) Percent() string { return r.PercentTo(1) }

// PercentTo is Percent with a chosen number of decimals, 0 to 6.
func (r Ratio) PercentTo(decimals int) string {
	if math.IsNaN(float64(r)) || math.IsInf(float64(r), 0) {
		return "n/a"
	}
	decimals = min(max(decimals, 0), 6)
	// Rounded before 1 is taken off: 1.2345-1 is a hair under 0.2345 in binary, and would print as 23.4%.
	scale := math.Pow10(decimals)
	change := (math.Round(float64(r)*100*scale) - 100*scale) / scale
	text := strconv.FormatFloat(change, 'f', decimals, 64) + "%"
	if change > 0 {
		return "+" + text
	}
	return text
}
