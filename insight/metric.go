package insight

import (
	"math"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/stats"
)

// Names of metrics.
const (
	metricP50         = "p50"
	metricP90         = "p90"
	metricP99         = "p99"
	metricMean        = "mean"
	metricMin         = "min"
	metricRate        = "rate"
	metricThroughput  = "throughput"
	metricNoDrop      = "no_drop"
	metricPartialDrop = "partial_drop"
	metricLoad10      = "p50_at_10"
	metricLoad50      = "p50_at_50"
	metricLoad90      = "p50_at_90"
	metricLoss        = "loss"
	metricCPU         = "cpu"
)

// second is how many nanoseconds a second has.
const second = 1e9

// metric is a figure that deltas are made of: either one for each burst, or one for each trial.
type metric struct {
	name, unit, better string
	// trial is the metric of a whole trial, with the reason if it has none; nil if the metric is one for each burst (summary.column).
	trial func(s *summary) (value float64, reason string)
	// linear metrics are compared by their difference, all others by their ratio.
	linear bool
	// divide is what values are divided by, 0 for nothing.
	divide float64
	// relative says that what is compared across states is what each trial differs from the nodes' own network in the same visit.
	relative bool
	memo     *memo // nil where each reading is made anew
}

// ofBursts says whether the metric is one for each burst.
func (m *metric) ofBursts() bool { return m.trial == nil }

// metrics are all that trials may hold, in the order in which they are reported.
func metrics() []metric {
	latency := func(name string) metric { return metric{name: name, unit: "ns", better: "lower"} }
	speed := func(name, unit string) metric { return metric{name: name, unit: unit, better: "higher"} }
	return append([]metric{
		latency(metricP50), latency(metricP90), percentile(metricP99, 99), percentile("p99.9", 99.9), latency(metricMean), latency(metricMin),
		speed(metricRate, "1/s"), speed(metricThroughput, "bit/s"), speed(metricNoDrop, "bit/s"), speed(metricPartialDrop, "bit/s"),
		latency(metricLoad10), latency(metricLoad50), latency(metricLoad90),
		{name: metricLoss, unit: "ratio", better: "lower", trial: (*summary).loss, linear: true},
		{name: metricCPU, unit: "ns", better: "lower", trial: (*summary).cpuPerTransaction},
		{name: metricCPU, unit: "s/GB", better: "lower", trial: (*summary).cpuPerByte},
	}, exactMetrics()...)
}

// percentile is a latency percentile too far out for a single burst: it is taken from the histogram of the whole trial.
func percentile(name string, percent float64) metric {
	return metric{
		name: name, unit: "ns", better: "lower",
		trial: func(s *summary) (float64, string) { return s.percentile(percent) },
	}
}

// believable is beyond every value that can be measured, and small enough for products of a few values to stay finite.
const believable = 1e100

// scale maps a value to the scale on which it is compared, the reason being why it has no place there.
func (m *metric) scale(value float64) (float64, string) {
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return 0, "not a number"
	case math.Abs(value) > believable:
		return 0, "out of range"
	case m.linear:
		return value, ""
	case value <= 0:
		return 0, "not above zero"
	}
	return math.Log(value), ""
}

// Figure is one metric's absolute value for one trial.
type Figure struct {
	Metric, Unit string
	Better       string // lower or higher
	// Value is the median over the trial's undisturbed bursts, or the figure of the trial as a whole where the metric is one,
	// in the metric's unit.
	Value float64
}

// Figures are the figures of a trial, in the order in which metrics are reported: for tools that know replications and nothing of
// deltas. A trial that failed or was misrouted has no figures.
func Figures(trial result.Trial) []Figure {
	s := newSummary(0, &trial)
	if s.excluded() != "" {
		return nil
	}
	s.tail = new(Summaries).tailOf(trial.Histogram)
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
		names = gather.Once(names, m.name)
	}
	return names
}

// amount is a place on the scale of comparison as a ratio, or as a difference where the metric has no ratio.
func (m metric) amount(x float64) float64 {
	if m.linear {
		return x
	}
	return math.Exp(x)
}

// size is an amount on the scale of comparison as a share, or as a difference where the metric has no ratio; nil where it has no bound.
func (m metric) size(x float64) *float64 {
	if !m.linear {
		x = math.Expm1(x)
	}
	return finite(x)
}
