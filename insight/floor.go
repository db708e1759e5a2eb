package insight

import (
	"maps"
	"slices"
	"sync"

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
// that are imported; where controls were planned and none is usable, it is infinite.
func (f *floors) of(t *cellSet, m metric) float64 {
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
	return checks.run.NoiseFloor(checks.of[t.at])
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

// written is a floor as deltas give it, nil where there is none.
func (f *floors) written(floor float64, m metric) *float64 {
	if !f.planned() {
		return nil
	}
	return m.size(floor)
}

// planned says whether any setting of the run was to have an A/A control.
func (f *floors) planned() bool {
	return slices.ContainsFunc(f.basis.sets, func(t cellSet) bool { return t.planned })
}

// hasControl says whether a setting was to have an A/A control, measured or not.
func hasControl(cells []result.Cell) bool {
	return slices.ContainsFunc(cells, func(c result.Cell) bool { return c.Role == result.RoleControl })
}
