package insight

import (
	"slices"
	"sync"

	"netdelta/result"
	"netdelta/stats"
)

// floors knows what the null checks of a run leave possible, metric by metric. The settings of one workload share what they know,
// apart on one processor and on two, at full speed and paced: a processor that is woken for each message is noisier than one that never
// sleeps.
type floors struct {
	lock    sync.Mutex // of nulls: tables are compared at the same time
	sets    []cellSet
	all     []batch
	options Options
	nulls   map[floorKey]nulls
}

// nulls are the null checks of a run in one metric.
type nulls struct {
	of  map[string]stats.Estimate // by the baseline's cell
	run stats.RunFloor
}

// floorKey is a workload's metric on one scale.
type floorKey struct {
	workload, cpu, regime, metric, unit string
	linear                              bool
}

func newFloors(sets []cellSet, all []batch, o Options) *floors {
	return &floors{sets: sets, all: all, options: o, nulls: map[floorKey]nulls{}}
}

// of is the noise floor of a setting in a metric. It is 0 only where no setting of the run was to have an A/A control, as in runs
// that are imported; where controls were planned and none is usable, it is infinite.
func (f *floors) of(t *cellSet, m metric) float64 {
	if !f.planned() {
		return 0
	}
	key := floorKey{t.setting.Workload, t.setting.Params.CPU, t.setting.Regime(), m.name, m.unit, m.linear}
	f.lock.Lock()
	defer f.lock.Unlock()
	checks, known := f.nulls[key]
	if !known {
		checks = f.check(key, m)
		f.nulls[key] = checks
	}
	own := stats.Estimate{}
	if t.baseline != nil {
		own = checks.of[t.baseline.ID]
	}
	return checks.run.NoiseFloor(own)
}

// check makes the null checks of all settings that share a key.
func (f *floors) check(key floorKey, m metric) nulls {
	var sets []cellSet
	for _, t := range f.sets {
		if t.control != nil && t.baseline != nil && t.setting.Workload == key.workload &&
			t.setting.Params.CPU == key.cpu && t.setting.Regime() == key.regime {
			sets = append(sets, t)
		}
	}
	run := make([]stats.Estimate, len(sets))
	inParallel(len(sets), func(i int) {
		p := pairBuilds(m, sets[i].control.ID, []string{sets[i].baseline.ID}, f.all)
		run[i] = f.options.compare(p.builds, f.options.stats(m))
	})
	checks := nulls{of: map[string]stats.Estimate{}, run: stats.NewRunFloor(run...)}
	for i, t := range sets {
		checks.of[t.baseline.ID] = run[i]
	}
	return checks
}

// written is a floor as deltas give it, nil where there is none.
func (f *floors) written(floor float64, m metric) *float64 {
	if !f.planned() {
		return nil
	}
	return m.size(floor)
}

// planned says whether any setting of the run was to have an A/A control.
func (f *floors) planned() bool {
	return slices.ContainsFunc(f.sets, func(t cellSet) bool { return t.planned })
}

// hasControl says whether a setting was to have an A/A control, measured or not.
func hasControl(cells []result.Cell) bool {
	return slices.ContainsFunc(cells, func(c result.Cell) bool { return c.Role == result.RoleControl })
}
