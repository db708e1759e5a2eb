package study

import (
	"math"
	"slices"

	"netdelta/result"
	"netdelta/unit"
)

// level is one level of one parameter.
type level struct {
	key  string // as in the file: "message"
	path string // "message[1]"
	text string // as the user would write it
	set  func(*result.Params)
}

// factors lists the parameters that have levels, each with its levels, in a fixed order.
func (l Levels) factors() [][]level {
	var given [][]level
	for _, p := range parameters() {
		if levels := p.levels(&l); len(levels) > 0 {
			given = append(given, levels)
		}
	}
	return given
}

// SearchRate is the level of rate that is written as "search": the highest rate is searched for. It is no rate that could
// be written.
const SearchRate unit.BitsPerSecond = -math.MaxFloat64

func setRate(p *result.Params, v unit.BitsPerSecond) {
	p.Rate, p.Search = v, v == SearchRate
	if p.Search {
		p.Rate = 0
	}
}

// rateLevel is the rate as a level.
func rateLevel(p result.Params) unit.BitsPerSecond {
	if p.Search {
		return SearchRate
	}
	return p.Rate
}

// setFamily leaves out IPv4, which is the default: so that a cell has one name, whether its study speaks of families or not.
func setFamily(p *result.Params, v result.Family) {
	if v != result.IPv4 {
		p.Family = v
	}
}

// Count is how many combinations of levels there are at most: at least 1. Some may come to the same.
func (l Levels) Count() int {
	n := 1
	for _, f := range l.factors() {
		if n > maxCells {
			return n // the product could overflow, and is refused anyway
		}
		n *= len(f)
	}
	return n
}

// Combinations returns every combination of the levels, those that come to the same once; the last parameter varies fastest.
// Without any level it is the one combination in which every parameter has its default.
func (l Levels) Combinations() []result.Params {
	all := []result.Params{{}}
	for _, f := range l.factors() {
		next := make([]result.Params, 0, len(all)*len(f))
		for _, p := range all {
			for _, lv := range f {
				q := p
				lv.set(&q)
				next = append(next, q)
			}
		}
		all = next
	}
	seen := make(map[result.Params]bool, len(all))
	plain := all[:0]
	for _, p := range all {
		p.Conditions = p.Conditions.Plain()
		if !seen[p] {
			seen[p] = true
			plain = append(plain, p)
		}
	}
	return plain
}

func either[T any](a, b []T) []T {
	if len(a) > 0 {
		return a
	}
	return b
}

// Join returns the levels of l and of more together. Where both give levels of a parameter, those of l hold.
func (l Levels) Join(more Levels) Levels {
	joined := more.Clone()
	for _, p := range parameters() {
		p.take(&joined, &l)
	}
	return joined
}

// WithDefaults fills in what p leaves unset from a workload's defaults.
func WithDefaults(p, defaults result.Params) result.Params {
	rate := p.Rate
	for _, f := range parameters() {
		f.fill(&p, &defaults)
	}
	if p.Search {
		p.Rate = rate
	}
	return p
}

// Clone returns a copy that shares no memory with l.
func (l Levels) Clone() Levels {
	var c Levels
	for _, p := range parameters() {
		p.take(&c, &l)
	}
	return c
}

// Without are parameters with one of them left open, named as in a study: for a comparison with others that may differ in it
// alone. What only one of both has on account of it, as the number of rules where the other has no policy, is left open too.
func Without(p, other result.Params, key string) result.Params {
	left := p
	for i, key := range append([]string{key}, companionsOf(key)...) {
		one, known := parameterOf(key)
		if known && (i == 0 || !one.given(p) || !one.given(other)) {
			one.unset(&left)
		}
	}
	return left
}

// companionsOf are the parameters that mean nothing at some levels of another.
func companionsOf(key string) []string {
	var all []string
	for _, c := range companions() {
		if c.of == key || key == "bond.mode" && c.key == "bond.xmit_hash_policy" { // not every mode hashes
			all = append(all, c.key)
		}
	}
	return all
}

// HoldsBeside says whether the condition holds in a cell that is one side of a comparison of two levels of the factor key; "" is
// no comparison. What means nothing at the one level, as the hash policy where there is one link, is no reason against it.
func (c Condition) HoldsBeside(cell result.Cell, key string) bool {
	if slices.Contains(companionsOf(key), c.Key) {
		if p, known := parameterOf(c.Key); known && !p.given(cell.Params) {
			return true
		}
	}
	return c.Holds(cell)
}
