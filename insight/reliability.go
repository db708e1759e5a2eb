package insight

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"netdelta/result"
	"netdelta/stats"
)

// floors knows what the null checks of a run leave possible, metric by metric. The settings of one workload share what they know,
// apart on one processor and on two, at full speed and paced: a processor that is woken for each message is noisier than one that never
// sleeps.
type floors struct {
	basis *basis
	lock  sync.Mutex // of what follows
	made  map[nullCheck]stats.Estimate
	nulls map[floorKey]nulls
}

// nullCheck is the null check of a setting in a metric.
type nullCheck struct {
	setting      int
	metric, unit string
	linear       bool
}

func nullCheckOf(t *cellSet, m metric) nullCheck { return nullCheck{t.at, m.name, m.unit, m.linear} }

// nulls are the null checks of a run in one metric.
type nulls struct {
	of  map[int]stats.Estimate // by setting
	run stats.RunFloor
}

// floorKey is a workload's metric on one scale.
type floorKey struct {
	workload, cpu, regime, metric, unit string
	linear                              bool
}

func floorKeyOf(t *cellSet, m metric) floorKey {
	return floorKey{t.setting.Workload, t.setting.Params.CPU, t.setting.Regime(), m.name, m.unit, m.linear}
}

// know takes null checks that were made with the deltas.
func (f *floors) know(made map[nullCheck]stats.Estimate) { maps.Copy(f.made, made) }

// of is the noise floor of a setting in a metric. It is 0 only where no setting of the run was to have an A/A control, as in runs
// that are imported; where controls were planned and none is usable, it is infinite. On a busy machine it is at least busyFloor.
func (f *floors) of(t *cellSet, m metric) float64 {
	return max(f.null(t, m), busyFloor(f.basis.options.busy, m))
}

// null is the floor by the null checks alone.
func (f *floors) null(t *cellSet, m metric) float64 {
	if !f.planned() {
		return 0
	}
	key := floorKeyOf(t, m)
	f.lock.Lock()
	defer f.lock.Unlock()
	checks, known := f.nulls[key]
	if !known {
		checks = f.check(key, m)
		f.nulls[key] = checks
	}
	own := checks.of[t.at]
	if o := f.basis.options; o.StrictNull && differs(stats.Judge(own, own.P, 0, stats.Better(m.better), o.stats(m))) {
		return math.Inf(1)
	}
	return checks.run.NoiseFloor(own)
}

// Differs says whether the verdict on a delta is that there is a difference.
func Differs(d result.Delta) bool { return differs(stats.Verdict(d.Verdict)) }

func differs(v stats.Verdict) bool { return v == stats.Slower || v == stats.Faster }

// strictNull says whether a run has Options.StrictNull.
func strictNull(run result.Run) bool {
	return run.Strategy != nil && run.Strategy.Name == result.StrategyFleet
}

// nullChecks name the null checks of headlines that failed; strict is Options.StrictNull.
func nullChecks(nulls []result.Delta, strict bool) []Check {
	var checks []Check
	for i, n := range nulls {
		if n.Headline && Differs(n) {
			checks = append(checks, Check{Trial: n.Cell, Name: CheckNull, Null: &nulls[i], Strict: strict})
		}
	}
	return checks
}

// check makes the null checks of all settings that share a key, but for those that are known.
func (f *floors) check(key floorKey, m metric) nulls {
	var sets []*cellSet
	for i := range f.basis.sets {
		t := &f.basis.sets[i]
		if t.control != nil && t.baseline != nil && t.setting.Workload == key.workload &&
			t.setting.Params.CPU == key.cpu && t.setting.Regime() == key.regime {
			sets = append(sets, t)
		}
	}
	run := make([]stats.Estimate, len(sets))
	inParallel(len(sets), func(i int) {
		t := sets[i]
		var known bool
		if run[i], known = f.made[nullCheckOf(t, m)]; known {
			return
		}
		p := pairBuilds(m, t.control.ID, []string{t.baseline.ID}, f.basis.all)
		run[i] = f.basis.options.compare(p.builds, f.basis.options.stats(m))
	})
	checks := nulls{of: map[int]stats.Estimate{}, run: stats.NewRunFloor(run...)}
	for i, t := range sets {
		checks.of[t.at] = run[i]
	}
	return checks
}

// written is the floor by the null checks as deltas give it, nil where there is none.
func (f *floors) written(t *cellSet, m metric) *float64 {
	if !f.planned() {
		return nil
	}
	return m.size(f.null(t, m))
}

// planned says whether any setting of the run was to have an A/A control.
func (f *floors) planned() bool {
	return slices.ContainsFunc(f.basis.sets, func(t cellSet) bool { return t.planned })
}

// hasControl says whether a setting was to have an A/A control, measured or not.
func hasControl(cells []result.Cell) bool {
	return slices.ContainsFunc(cells, func(c result.Cell) bool { return c.Role == result.RoleControl })
}

// Drift is how a setting's figures moved over the time of a run: the baseline by itself, which wanders with the machine, and
// the networks against it, in which what both share has dropped out.
type Drift struct {
	Metric, Unit string
	// Linear says that the metric is compared by its difference: Step.Change is one, in Unit, and not a ratio.
	Linear bool
	// Baseline are the readings of the baseline and of its A/A control, in the order of time.
	Baseline []Moment
	// Courses are the A/A control against the baseline, then the networks against both.
	Courses []Course
}

// Moment is one reading of the baseline: a burst, or a whole trial where the metric is of trials.
type Moment struct {
	// At counts from the start of the run.
	At      time.Duration
	Value   float64
	Control bool
	// Disturbed says why the reading counts for nothing, "" if it counts.
	Disturbed string
}

// Course is what a cell was against the baseline in each build.
type Course struct {
	Series
	Steps []Step
}

// Step is one build's figure: what the estimate over builds is made of.
type Step struct {
	Build int
	// At is the middle of the build, from the start of the run.
	At time.Duration
	// Change is the ratio to the baseline of the same rounds, or the difference where the metric has no ratio.
	Change float64
}

// Drift is the drift of a setting in a metric, by the name that its deltas give. started is the start of the run. It is empty
// where nothing of the metric was measured.
func (e Evidence) Drift(s result.Setting, name string, started time.Time) Drift {
	t, known := e.cellSets[s]
	if !known || t.baseline == nil {
		return Drift{}
	}
	trials := t.summaries(e.batches)
	at := slices.IndexFunc(metrics(), func(m metric) bool { return m.name == name && m.holds(trials) })
	if at < 0 {
		return Drift{}
	}
	m := metrics()[at]
	d := Drift{Metric: m.name, Unit: m.unit, Linear: m.linear}
	references := []string{t.baseline.ID}
	for _, series := range t.seriesOf() {
		if series.Role != result.RoleCell {
			d.Baseline = append(d.Baseline, e.moments(m, series, started)...)
		}
		if series.Role != result.RoleBaseline {
			d.Courses = append(d.Courses, e.course(m, series, references, started))
		}
		if series.Role == result.RoleControl {
			references = append(references, series.Cell)
		}
	}
	slices.SortStableFunc(d.Baseline, func(a, b Moment) int { return cmp.Compare(a.At, b.At) })
	return d
}

// moments are the readings of a baseline.
func (e Evidence) moments(m metric, s Series, started time.Time) []Moment {
	var all []Moment
	for _, t := range e.of(s.Cell) {
		if !m.ofBursts() {
			if r := m.ofTrial(t); r.reason == "" {
				all = append(all, Moment{At: t.started.Sub(started), Value: r.value, Control: s.Role == result.RoleControl})
			}
			continue
		}
		column := t.column(m.name)
		for i := range min(len(column), len(t.starts)) {
			if r := m.reading(column[i], ""); r.reason == "" {
				at := time.Duration(t.starts[i])
				all = append(all, Moment{At: at, Value: r.value, Control: s.Role == result.RoleControl, Disturbed: t.why(i)})
			}
		}
	}
	return all
}

// course holds a cell against others, build by build.
func (e Evidence) course(m metric, s Series, references []string, started time.Time) Course {
	c := Course{Series: s}
	p := pairBuilds(m, s.Cell, references, e.batches)
	for i, location := range stats.Compare(p.builds, stats.Options{}).Locations {
		if math.IsNaN(location) {
			continue
		}
		trial := e.batches[p.batches[i]][s.Cell]
		change := location
		if !m.linear {
			change = math.Exp(location)
		}
		c.Steps = append(c.Steps, Step{Build: trial.build, At: trial.middle(started), Change: change})
	}
	return c
}

// middle is when half of a trial was over: by its bursts, or by its ends where it has none.
func (s *summary) middle(started time.Time) time.Duration {
	if n := len(s.starts); n > 0 {
		return time.Duration((s.starts[0] + s.starts[n-1]) / 2)
	}
	return s.started.Add(s.lasted / 2).Sub(started)
}

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
