package insight

import (
	"slices"

	"netdelta/result"
	"netdelta/stats"
)

// floors knows what the null checks of a run leave possible, metric by metric. The settings of one workload share what they know.
type floors struct {
	sets    []cellSet
	all     []batch
	options Options
	nulls   map[floorKey]map[string]stats.Estimate // by the baseline's cell
}

// floorKey is a workload's metric on one scale.
type floorKey struct {
	workload, metric, unit string
	linear                 bool
}

func newFloors(sets []cellSet, all []batch, o Options) *floors {
	return &floors{sets, all, o, map[floorKey]map[string]stats.Estimate{}}
}

// of is the noise floor of a setting in a metric. It is 0 only where no setting of the run was to have an A/A control, as in runs
// that are imported; where controls were planned and none is usable, it is infinite.
func (f *floors) of(t *cellSet, m metric) float64 {
	if !f.planned() {
		return 0
	}
	key := floorKey{t.setting.Workload, m.name, m.unit, m.linear}
	nulls, known := f.nulls[key]
	if !known {
		nulls = map[string]stats.Estimate{}
		for _, other := range f.sets {
			if other.control != nil && other.baseline != nil && other.setting.Workload == key.workload {
				p := pairBuilds(m, other.control.ID, []string{other.baseline.ID}, f.all)
				nulls[other.baseline.ID] = f.options.compare(p.builds, f.options.stats(m))
			}
		}
		f.nulls[key] = nulls
	}
	var run []stats.Estimate
	for _, e := range nulls {
		run = append(run, e)
	}
	own := stats.Estimate{}
	if t.baseline != nil {
		own = nulls[t.baseline.ID]
	}
	return stats.NoiseFloor(own, run...)
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
