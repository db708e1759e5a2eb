package insight

import (
	"slices"

	"netdelta/result"
	"netdelta/stats"
)

// Figure is what one trial came to in one metric, held against nothing.
type Figure struct {
	Metric, Unit string
	Better       string // lower or higher
	// Value is the median over the trial's undisturbed bursts, or the figure of the trial as a whole where the metric is one,
	// in the metric's unit.
	Value float64
}

// Figures are those of a trial, in the order in which metrics are reported: for tools that know replications and nothing of
// deltas. There are none of a trial that failed or was misrouted.
func Figures(trial result.Trial) []Figure {
	if excluded(&trial) != "" {
		return nil
	}
	s := &summary{trial: &trial}
	var all []Figure
	for _, m := range metrics() {
		if !m.holds([]*summary{s}) {
			continue
		}
		if values := m.values(s); len(values) > 0 {
			all = append(all, Figure{m.name, m.unit, m.better, stats.Median(values)})
		}
	}
	return all
}

// Metrics are the names of all metrics that deltas may be of, in the order in which they are reported.
func Metrics() []string {
	var names []string
	for _, m := range metrics() {
		if !slices.Contains(names, m.name) {
			names = append(names, m.name)
		}
	}
	return names
}
