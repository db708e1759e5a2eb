package insight

import (
	"slices"

	"netdelta/result"
	"netdelta/stats"
)

// floors knows what the null checks of a run leave possible, metric by metric. The settings of one workload share what they know,
// apart on one processor and on two: a processor that is woken for each message is noisier than one that never sleeps.
type floors struct {
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
	workload, cpu, metric, unit string
	linear                      bool
}

func newFloors(sets []cellSet, all []batch, o Options) *floors {
	return &floors{sets, all, o, map[floorKey]nulls{}}
}

// of is the noise floor of a setting in a metric. It is 0 only where no setting of the run was to have an A/A control, as in runs
// that are imported; where controls were planned and none is usable, it is infinite.
func (f *floors) of(t *cellSet, m metric) float64 {
	if !f.planned() {
		return 0
	}
	key := floorKey{t.setting.Workload, t.setting.Params.CPU, m.name, m.unit, m.linear}
	checks, known := f.nulls[key]
	if !known {
		checks.of = map[string]stats.Estimate{}
		var run []stats.Estimate
		for _, other := range f.sets {
			if other.control != nil && other.baseline != nil && other.setting.Workload == key.workload && other.setting.Params.CPU == key.cpu {
				p := pairBuilds(m, other.control.ID, []string{other.baseline.ID}, f.all)
				e := f.options.compare(p.builds, f.options.stats(m))
				checks.of[other.baseline.ID] = e
				run = append(run, e)
			}
		}
		checks.run = stats.NewRunFloor(run...)
		f.nulls[key] = checks
	}
	own := stats.Estimate{}
	if t.baseline != nil {
		own = checks.of[t.baseline.ID]
	}
	return checks.run.NoiseFloor(own)
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
