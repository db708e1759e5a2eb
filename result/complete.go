package result

import "slices"

// Complete returns r with empty instead of missing lists, so that none of them is null in JSON.
func (r Run) Complete() Run {
	r.Environment = r.Environment.complete()
	r.Cells = orEmpty(r.Cells)
	r.Deltas = completeDeltas(r.Deltas)
	r.Null = completeDeltas(r.Null)
	for i, e := range r.Effects {
		if e.Excluded == nil {
			r.Effects = slices.Clone(r.Effects)
			r.Effects[i].Excluded = map[string]int{}
		}
	}
	r.Checks = orEmpty(r.Checks)
	r.Claims = orEmpty(r.Claims)
	r.Advice = orEmpty(r.Advice)
	return r
}

// complete does for the environment what Complete does for the run.
func (e Environment) complete() Environment {
	if e.Sysctls == nil {
		e.Sysctls = map[string]string{}
	}
	e.Links = orEmpty(e.Links)
	e.Measuring = orEmpty(e.Measuring)
	e.Controlling = orEmpty(e.Controlling)
	return e
}

// completeDeltas copies the deltas with a map of exclusions in each.
func completeDeltas(deltas []Delta) []Delta {
	completed := make([]Delta, len(deltas))
	for i, d := range deltas {
		if d.Excluded == nil {
			d.Excluded = map[string]int{}
		}
		completed[i] = d
	}
	return completed
}

// orEmpty returns an empty list for a missing one.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
