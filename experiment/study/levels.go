package study

import (
	"fmt"
	"maps"
	"slices"

	"netdelta/result"
)

// level is one level of one parameter.
type level struct {
	of    result.Parameter
	path  string // "message[1]"
	value any
}

// factors lists the parameters that have levels, each with its levels, in the order of the parameters.
func (l Levels) factors(all []result.Parameter) [][]level {
	var given [][]level
	for _, d := range all {
		var levels []level
		for i, v := range l[d.Key] {
			levels = append(levels, level{of: d, path: fmt.Sprintf("%s[%d]", d.Key, i), value: v})
		}
		if levels != nil {
			given = append(given, levels)
		}
	}
	return given
}

// Count is how many combinations of levels there are at most: at least 1. Some may be the same.
func (l Levels) Count() int {
	n := 1
	for _, levels := range l {
		if n > maxCells {
			return n // the product could overflow, and is refused anyway
		}
		n *= max(1, len(levels))
	}
	return n
}

// Combinations returns every combination of a workload's levels and the study's factors, those that mean the same once; the last
// parameter varies fastest. Without any level it is the one combination in which every parameter has its default.
func (s *Study) Combinations(w Workload) []result.Params {
	return w.Levels.Join(s.Factors).combinations(s.parameters())
}

func (l Levels) combinations(declared []result.Parameter) []result.Params {
	all := []result.Params{{}}
	for _, f := range l.factors(declared) {
		next := make([]result.Params, 0, len(all)*len(f))
		for _, p := range all {
			for _, lv := range f {
				next = append(next, set(p, lv.of, lv.value))
			}
		}
		all = next
	}
	seen := make(map[result.Params]bool, len(all))
	plain := all[:0]
	for _, p := range all {
		p.Conditions = p.Conditions.Plain()
		for _, d := range declared {
			if p.Given(d) && !d.Means(p) {
				p = p.With(d, d.Kind.Zero())
			}
		}
		if !seen[p] {
			seen[p] = true
			plain = append(plain, p)
		}
	}
	return plain
}

// Join returns the levels of l and of more together. Where both give levels of a parameter, l's levels hold.
func (l Levels) Join(more Levels) Levels {
	var joined Levels
	for _, levels := range []Levels{more, l} {
		for key, values := range levels {
			if len(values) > 0 {
				if joined == nil {
					joined = Levels{}
				}
				joined[key] = slices.Clone(values)
			}
		}
	}
	return joined
}

// equal says whether two give the same levels.
func (l Levels) equal(other Levels) bool { return maps.EqualFunc(l, other, slices.Equal) }

// WithDefaults fills in what p leaves unset from a workload's defaults.
func WithDefaults(p, defaults result.Params) result.Params {
	for _, d := range result.Parameters(defaults.Own.Declared()...) {
		if !d.Stands && !p.Given(d) && defaults.Given(d) && !(d.Key == rateKey && p.Search) {
			p = p.With(d, defaults.Get(d))
		}
	}
	return p
}

// Without are parameters with one of them left open, named as in a study: for a comparison with others that may differ in it
// alone. What only one of both has on account of it, as the number of rules where the other has no policy, is left open too.
func Without(p, other result.Params, key string) result.Params {
	left := p
	for _, d := range result.Parameters(append(p.Own.Declared(), other.Own.Declared()...)...) {
		if d.Key == key || needs(d, key) && (!p.Given(d) || !other.Given(d)) {
			left = left.With(d, d.Kind.Zero())
			if d.Key == rateKey {
				left.Search = false
			}
		}
	}
	return left
}

// needs says whether a parameter means nothing at some levels of another.
func needs(d result.Parameter, key string) bool {
	switch d.Key {
	case "bond.xmit_hash_policy": // not every mode hashes
		return slices.Contains([]string{"link.count", "link.nodes", "bond.mode"}, key)
	case "bond.mode":
		return key == "link.count" || key == "link.nodes"
	}
	return d.Needs.Key == key
}

// HoldsInComparison says whether the condition holds in a cell that is one side of a comparison of two levels of the factor key; "" is
// no comparison. What means nothing at the one level, as the hash policy where there is one link, is no reason against it.
func (c Condition) HoldsInComparison(cell result.Cell, key string) bool {
	if d, known := parameterOf(result.Parameters(), c.Key); known && key != "" && needs(d, key) && !cell.Params.Given(d) {
		return true
	}
	return c.Holds(cell)
}
