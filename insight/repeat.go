package insight

import (
	"maps"
	"math"
	"slices"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/stats"
)

// spread is what runs of a setting scatter by; false where that is not known, or where nothing in the runs is random.
func (o Options) spread(s result.Setting) (result.RunSpread, bool) {
	if o.Exact || o.Unpaired {
		return result.RunSpread{}, false
	}
	return o.Repeating.Spread(s.Workload, s.Regime())
}

// forAnotherRun gives the deltas of networks against baselines the interval for repeating the run, and keeps that of the run alone as Within.
// Metrics without a ratio keep theirs.
func (o Options) forAnotherRun(contrasts []*contrast) {
	for _, c := range contrasts {
		spread, known := o.spread(c.delta.Setting)
		if !known || c.metric.linear || !c.estimate.HasInterval {
			continue
		}
		d, options := &c.delta, o.stats(c.metric)
		c.runs = runSpread{
			stats.Spread{Deviation: spread.OfRatio(c.estimate.Center), Freedom: spread.Freedom},
			stats.Spread{Deviation: spread.OfTime(c.time.Center, d.BaselineValue/second), Freedom: spread.Freedom},
		}
		within := result.Interval{RatioLow: d.RatioLow, RatioHigh: d.RatioHigh, DifferenceLow: d.DifferenceLow, DifferenceHigh: d.DifferenceHigh}
		e := c.estimate.ForAnotherRun(c.runs.ratio, options)
		c.repeated, d.Within = &e, &within
		fillInterval(d, c.metric, e)
		if c.time.HasInterval {
			addTime(d, c.time.ForAnotherRun(c.runs.seconds, options))
		}
	}
}

// runSpread is what a delta scatters by from run to run, on the log scale and in seconds; it is zero where that is not known.
type runSpread struct{ ratio, seconds stats.Spread }

// judgedBy is the estimate that the contrast's verdict rests on.
func (c contrast) judgedBy() stats.Estimate {
	if c.repeated != nil {
		return *c.repeated
	}
	return c.estimate
}

// changeBetween is how far a delta moved from one run to another, for repeating both. Where the baseline of the same machine moved by more than
// the margin, added times are held against each other too, each on top of the mean of the baselines: a machine that is slower at everything leaves ratios
// as they are, and one whose wake-ups take longer leaves added times. What has changed in the network changes both, so that the smaller of the two
// changes is judged (byTime: that of added times), and nothing is claimed where one is an increase and the other is none.
func changeBetween(p [2]delta, sameMachine, exact bool, o stats.Options) (c stats.Change, byTime bool) {
	before, after := p[0].contrast, p[1].contrast
	c = Options{Exact: exact}.between(before.estimate, after.estimate, o).ForOtherRuns(before.runs.ratio, after.runs.ratio, o)
	moved := math.Abs(math.Log(after.delta.BaselineValue / before.delta.BaselineValue))
	if exact || !sameMachine || before.time.Builds == 0 || after.time.Builds == 0 || !(moved > math.Log1p(o.Margin)) {
		return c, false
	}
	baseline := math.Sqrt(before.delta.BaselineValue*after.delta.BaselineValue) / second
	x, was := onTop(before, baseline)
	y, is := onTop(after, baseline)
	t := stats.Between(x, y, o).ForOtherRuns(was, is, o)
	opposed := c.Center*t.Center < 0
	if math.Abs(t.Center) < math.Abs(c.Center) {
		c, byTime = t, true
	}
	if opposed {
		c.P = 1
	}
	return c, byTime
}

// onTop is the log of a baseline with what a network adds on top of it, build by build, and what that scatters by from run to run.
func onTop(c contrast, baseline float64) (stats.Estimate, stats.Spread) {
	e, s := c.time, c.runs.seconds
	e.Locations = gather.Each(e.Locations, func(added float64) float64 { return math.Log(baseline + added) }) // NaN of a build that was left out
	e.Center = math.Log(baseline + e.Center)
	s.Deviation /= baseline + c.time.Center
	return e, s
}

// WithinRun is a delta with the interval of its run alone, which is what holds two networks of one run against each other.
func WithinRun(d result.Delta) result.Delta {
	if w := d.Within; w != nil {
		d.RatioLow, d.RatioHigh, d.DifferenceLow, d.DifferenceHigh = w.RatioLow, w.RatioHigh, w.DifferenceLow, w.DifferenceHigh
	}
	return d
}

// PastDelta is a headline delta of an earlier run: Name is the same in each run that measured it, Center and Error are on the log scale, and
// what is added in seconds, of metrics that are times.
type PastDelta struct {
	Name       string  `json:"name"`
	Workload   string  `json:"workload"`
	Regime     string  `json:"regime,omitempty"`
	Center     float64 `json:"center"`
	Error      float64 `json:"error"`
	Added      float64 `json:"added,omitempty"`
	AddedError float64 `json:"added_error,omitempty"`
	Baseline   float64 `json:"baseline,omitempty"`
}

// Past are the deltas of a run that say what runs differ by: headlines with an interval of the run alone. A run on a machine that was busy
// throughout says nothing: its own figures get no verdict either.
func Past(run result.Run) []PastDelta {
	if run.Exact != nil || run.Unpaired || Busy(run) {
		return nil
	}
	o := stats.Options{Confidence: run.Confidence, Sequential: run.Adaptive}
	var all []PastDelta
	for _, d := range run.Deltas {
		own := WithinRun(d)
		if !d.Headline || d.Ratio <= 0 || own.RatioLow == nil || own.RatioHigh == nil || *own.RatioLow <= 0 || d.Blocks < stats.DefaultMinBuilds {
			continue
		}
		errors := 2 * stats.StudentQuantile(1-o.Level()/2, float64(d.Blocks-1)) // in the width of an interval
		past := PastDelta{
			Name: d.Cell + " " + d.Baseline, Workload: d.Workload, Regime: d.Regime(),
			Center: math.Log(d.Ratio), Error: math.Log(*own.RatioHigh / *own.RatioLow) / errors,
		}
		if d.Unit == "ns" && own.DifferenceLow != nil && own.DifferenceHigh != nil {
			past.Added, past.AddedError = d.Difference/second, (*own.DifferenceHigh-*own.DifferenceLow)/errors/second
			past.Baseline = d.BaselineValue / second
		}
		all = append(all, past)
	}
	return all
}

// leastRuns is how many earlier runs it takes to know what runs differ by where nothing is measured of it.
const leastRuns = 3

// Repeating says what runs on a machine differ by: what was measured on another machine (measured, from MeasuredSpreads), corrected by what
// earlier runs on this one differed by, each with the weight of its degrees of freedom. Of workloads that were not measured, and where measured
// is empty, it takes three earlier runs. It is nil where nothing is known.
func Repeating(measured []result.RunSpread, earlier [][]PastDelta) *result.Repeating {
	r := result.Repeating{}
	known := map[[2]string]bool{}
	for _, s := range measured {
		known[[2]string{s.Workload, s.Regime}] = true
		s, runs := corrected(s, earlier)
		r.Spreads, r.Runs = append(r.Spreads, s), max(r.Runs, runs)
	}
	for _, run := range earlier {
		for _, d := range run {
			of := [2]string{d.Workload, d.Regime}
			if known[of] {
				continue
			}
			known[of] = true
			s := unmeasuredSpread()
			s.Workload, s.Regime = d.Workload, d.Regime
			if s, runs := corrected(s, earlier); runs >= leastRuns {
				r.Spreads, r.Runs = append(r.Spreads, s), max(r.Runs, runs)
			}
		}
	}
	if len(r.Spreads) == 0 {
		return nil
	}
	return &r
}

// corrected is a row of the table as earlier runs correct it, and how many there were.
func corrected(s result.RunSpread, earlier [][]PastDelta) (result.RunSpread, int) {
	deltas := map[string][]PastDelta{}
	for _, run := range earlier {
		for _, d := range run {
			if d.Workload == s.Workload && d.Regime == s.Regime {
				deltas[d.Name] = append(deltas[d.Name], d)
			}
		}
	}
	var ratios, times []stats.Repeats
	for _, name := range slices.Sorted(maps.Keys(deltas)) {
		of := func(figure func(PastDelta) float64) []float64 { return gather.Each(deltas[name], figure) }
		centers, added := of(func(d PastDelta) float64 { return d.Center }), of(func(d PastDelta) float64 { return d.Added })
		baseline := stats.Mean(of(func(d PastDelta) float64 { return d.Baseline }))
		ratios = append(ratios, stats.Repeats{Centers: centers, Errors: of(func(d PastDelta) float64 { return d.Error }), Expected: s.OfRatio(stats.Mean(centers))})
		if baseline > 0 {
			times = append(times, stats.Repeats{Centers: added, Errors: of(func(d PastDelta) float64 { return d.AddedError }), Expected: s.OfTime(stats.Mean(added), baseline)})
		}
	}
	excess, runs := stats.Excess(ratios)
	timeExcess, _ := stats.Excess(times)
	if runs < 2 {
		return s, 0
	}
	// The deltas of one run share its state: together they are one observation of it.
	told := float64(runs - 1)
	by := func(excess float64) float64 { return math.Sqrt((s.Freedom + told*excess) / (s.Freedom + told)) }
	s.Level, s.Share = s.Level*by(excess), s.Share*by(excess)
	s.TimeLevel, s.TimeShare = s.TimeLevel*by(timeExcess), s.TimeShare*by(timeExcess)
	s.Freedom += told
	return s, runs
}
