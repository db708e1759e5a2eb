package insight

import (
	"math"

	"netdelta/result"
)

// Quantile is a point of a distribution of latencies: so many percent of them, 0 to 100, are at most Value nanoseconds.
type Quantile struct{ Percent, Value float64 }

// Distribution is what the transactions of a cell took, those of all trials that count merged into one histogram.
type Distribution struct {
	Series
	// Count is the number of transactions.
	Count int64
	// Quantiles are ascending in both. They end where fewer than ten transactions lie beyond: what is further out is chance.
	Quantiles []Quantile
}

// The points at which a distribution is read: evenly on the axis of Nines, from the least latency to one in a hundred
// thousand.
const (
	distributionPoints = 100
	mostNines          = 5
)

// Nines is the axis on which a distribution's tail is drawn: 0 for the minimum, 1 for p90, 2 for p99, 3 for p99.9. It is
// -log10(1-p) of a percentage below 100.
func Nines(percent float64) float64 { return -math.Log10(1 - percent/100) }

// Distributions are those of a setting's cells, the baseline and its twin first. Cells without latencies have none, nor has
// a cell of whose histograms one can't be read: a check says so.
func (e Evidence) Distributions(s result.Setting) []Distribution {
	var all []Distribution
	for _, series := range e.tables[s].seriesOf() {
		var encoded []string
		for _, t := range e.of(series.Cell) {
			encoded = append(encoded, t.Histogram)
		}
		sum, err := result.MergeHistograms(encoded...)
		if err != nil || sum.TotalCount() == 0 {
			continue
		}
		d := Distribution{Series: series, Count: sum.TotalCount()}
		percents := readable(d.Count)
		for i, v := range sum.ValueAtPercentilesSlice(percents) {
			d.Quantiles = append(d.Quantiles, Quantile{percents[i], float64(v)})
		}
		all = append(all, d)
	}
	return all
}

// readable are the percentages at which a histogram of so many values says something.
func readable(count int64) []float64 {
	var percents []float64
	for i := range distributionPoints + 1 {
		percent := 100 * (1 - math.Pow(10, -mostNines*float64(i)/distributionPoints))
		if i > 0 && float64(count)*(1-percent/100) < tailSamples*(1-1e-9) {
			break
		}
		percents = append(percents, percent)
	}
	return percents
}
