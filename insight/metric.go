package insight

import (
	"math"
	"slices"
	"sync"

	"netdelta/result"
	"netdelta/stats"
)

// Names of metrics that this package treats by themselves.
const (
	metricP50        = "p50"
	metricP99        = "p99"
	metricRate       = "rate"
	metricThroughput = "throughput"
	metricLoss       = "loss"
	metricCPU        = "cpu"
)

// metric is a figure that deltas are made of: either one for each burst, or one for each trial.
type metric struct {
	name, unit, better string
	// bursts is the metric's column; nil if the metric is one for each trial.
	bursts func(b *result.Bursts) []float64
	// trial is the metric of a whole trial, with the reason if it has none.
	trial func(s *summary) (value float64, reason string)
	// linear metrics are compared by their difference, all others by their ratio.
	linear bool
	// divide is what values are divided by, 0 for nothing.
	divide float64
	// relative says that what is compared across states is what each trial differs from the nodes' own network in the same visit.
	relative bool
}

// metrics are all that trials may hold, in the order in which they are reported.
func metrics() []metric {
	latency := func(name string, column func(*result.Bursts) []float64) metric {
		return metric{name: name, unit: "ns", better: "lower", bursts: column}
	}
	speed := func(name, unit string, column func(*result.Bursts) []float64) metric {
		return metric{name: name, unit: unit, better: "higher", bursts: column}
	}
	return append([]metric{
		latency(metricP50, func(b *result.Bursts) []float64 { return b.P50 }),
		latency("p90", func(b *result.Bursts) []float64 { return b.P90 }),
		percentile(metricP99, 99),
		percentile("p99.9", 99.9),
		latency("mean", func(b *result.Bursts) []float64 { return b.Mean }),
		latency("min", func(b *result.Bursts) []float64 { return b.Min }),
		speed(metricRate, "1/s", func(b *result.Bursts) []float64 { return b.Rate }),
		speed(metricThroughput, "bit/s", func(b *result.Bursts) []float64 { return b.Throughput }),
		speed("no_drop", "bit/s", func(b *result.Bursts) []float64 { return b.NoDrop }),
		speed("partial_drop", "bit/s", func(b *result.Bursts) []float64 { return b.PartialDrop }),
		latency("p50_at_10", func(b *result.Bursts) []float64 { return b.Load10 }),
		latency("p50_at_50", func(b *result.Bursts) []float64 { return b.Load50 }),
		latency("p50_at_90", func(b *result.Bursts) []float64 { return b.Load90 }),
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

// tailSamples is how many transactions must lie beyond a percentile before it says anything.
const tailSamples = 10

// summary gives a trial's metrics as a whole. The histogram is decoded once, when it is first asked for; tables that are compared at
// the same time may share a baseline.
type summary struct {
	trial *result.Trial // nil while it is not held (basis.hold)
	index int           // of the trial in the journal
	visit int           // to a state of the cluster, in which it was measured; 0 for all where states are not compared
	// reference is the trial of the nodes' own network in the same visit, nil where there is none.
	reference *summary
	// found is what is wrong with it, and carry what it left behind if it did not fail; both are kept when the trial is not.
	found []Check
	carry *result.CarryOver
	once  sync.Once
	tail  *tail // nil until the histogram was decoded
}

// tail is what metrics ask a trial's histogram for.
type tail struct {
	none      bool // the trial has no histogram
	count     int64
	p99, p999 float64 // nanoseconds
	broken    error
}

// decode reads the histogram.
func (s *summary) decode() {
	s.once.Do(func() { s.tail = tailOf(s.trial.Histogram) })
}

func tailOf(text string) *tail {
	if text == "" {
		return &tail{none: true}
	}
	h, err := result.DecodeHistogram(text)
	if err != nil {
		return &tail{broken: err}
	}
	return &tail{count: h.TotalCount(), p99: float64(h.ValueAtPercentile(99)), p999: float64(h.ValueAtPercentile(99.9))}
}

// percentile reads the histogram, which holds a value to within 0.1%.
func (s *summary) percentile(percent float64) (float64, string) {
	s.decode()
	switch {
	case len(s.trial.Changes) > 0:
		return 0, result.Reconfigured
	case s.tail.broken != nil:
		return 0, "histogram unreadable"
	case percent == 99 && p99Known(s.trial):
		return s.trial.Bursts.P99[0], ""
	case s.tail.none:
		return 0, "no histogram"
	case float64(s.tail.count)*(1-percent/100) < tailSamples*(1-1e-9):
		return 0, "too few transactions"
	}
	if percent == 99 {
		return s.tail.p99, ""
	}
	return s.tail.p999, ""
}

// p99Known says of a trial of another program, which is one burst, that its 99th percentile is known though its distribution is not.
func p99Known(t *result.Trial) bool {
	return t.Histogram == "" && len(t.Bursts.Round) == 1 && len(t.Bursts.P99) == 1
}

// loss is the share of datagrams that did not arrive.
func (s *summary) loss() (float64, string) {
	sent := s.trial.Sent
	if sent == 0 {
		sent = s.trial.Transactions + s.trial.Lost
	}
	if sent <= 0 {
		return 0, "nothing sent"
	}
	return float64(s.trial.Lost) / float64(sent), ""
}

// holds says whether any of the trials has the metric, so that there is something to compare.
func (m metric) holds(trials []*summary) bool {
	return slices.ContainsFunc(trials, func(s *summary) bool {
		t := s.trial
		switch {
		case m.bursts != nil:
			return len(m.bursts(&t.Bursts)) > 0
		case m.name == metricLoss:
			return (t.Sent > 0 || t.Lost > 0) && !searched(t) && !counts(t)
		case m.name == metricCPU:
			return spends(t) && moves(t) == (m.unit != "ns")
		case m.name == metricRequest, m.name == metricResponse:
			return counts(t)
		}
		return t.Histogram != "" || m.name == metricP99 && p99Known(t)
	})
}

// searched says whether a trial looked for the rate at which packets are lost: its loss, and
// what it spent on sending too much, then say nothing of the network.
func searched(t *result.Trial) bool { return len(t.Bursts.NoDrop) > 0 }

// spends says whether a trial has processor time on record that says something of the network. A client that used none is one
// whose time was not counted.
func spends(t *result.Trial) bool {
	return slices.ContainsFunc(t.Bursts.ClientCPU, func(ns int64) bool { return ns > 0 }) && !searched(t)
}

// moves says whether a trial's work is to move bytes, not to answer requests.
func moves(t *result.Trial) bool { return len(t.Bursts.P50) == 0 }

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
