package study

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/unit"
)

// parameterOf finds the parameter of a key.
func parameterOf(all []result.Parameter, key string) (result.Parameter, bool) {
	return gather.First(all, func(d result.Parameter) bool { return d.Key == key && !d.Derived })
}

// keysOf are the keys that studies have.
func keysOf(all []result.Parameter) []string {
	var names []string
	for _, d := range all {
		if !d.Derived {
			names = append(names, d.Key)
		}
	}
	return names
}

// SearchRate is the level of rate that is written as "search": the highest rate is searched for. It is no rate that could
// be written.
const SearchRate unit.BitsPerSecond = -math.MaxFloat64

// rateKey is the key of the one parameter with a level that is no value: the rate that is searched for.
const rateKey = "rate"

// set gives parameters a level.
func set(p result.Params, d result.Parameter, v any) result.Params {
	if d.Key == rateKey {
		p.Search = v == SearchRate
		if p.Search {
			v = unit.BitsPerSecond(0)
		}
	}
	return p.With(d, v)
}

// get is the level of parameters, the one that is meant where none is given.
func get(p result.Params, d result.Parameter) any {
	if d.Key == rateKey && p.Search {
		return SearchRate
	}
	if d.Unset != "" && !p.Given(d) {
		if v, err := parse(d, d.Unset); err == nil {
			return v
		}
	}
	return p.Get(d)
}

// parse reads a level. That a word is a known one is checked later, at its place.
func parse(d result.Parameter, s string) (any, error) {
	switch d.Kind {
	case result.KindSwitch:
		if s != "on" && s != "off" {
			return nil, fmt.Errorf("%q is neither on nor off", clip(s))
		}
	case result.KindCount:
		return typeless(parseCount(s))
	case result.KindSize, result.KindOctets:
		return typeless(parseBytes(s))
	case result.KindRate:
		if d.Key == rateKey && s == search {
			return SearchRate, nil
		}
		return typeless(parseRate(s))
	case result.KindNumber:
		return typeless(parseFloat(s))
	case result.KindShare:
		return typeless(parseFraction(s))
	case result.KindDuration:
		return typeless(parseDuration(s))
	case result.KindFlag:
		return typeless(parseBool(s))
	}
	return s, nil
}

func typeless[T any](v T, err error) (any, error) { return v, err }

// search is how a search for the highest rate is written in place of a rate.
const search = "search"

// written is a level as a study file has it: it is read as the same again.
func written(v any) string {
	switch v := v.(type) {
	case unit.Bytes:
		return bytesText(v)
	case unit.BitsPerSecond:
		if v == SearchRate {
			return search
		}
		return strconv.FormatFloat(float64(v), 'f', -1, 64)
	case float64:
		return floatText(v)
	case time.Duration:
		return unit.FormatDuration(v)
	}
	return fmt.Sprint(v)
}

// test reads a level as claims have it, and gives the test of a cell for it.
func test(d result.Parameter, text string) (func(result.Cell) bool, error) {
	want, err := parse(d, text)
	if known := d.Known(); err == nil && known != nil && !slices.Contains(known, text) {
		err = fmt.Errorf("unknown %s %s: %s", d.Key, printed(text), suggest(text, known))
	}
	return func(c result.Cell) bool {
		return get(c.Params, d) == want && (!d.Stands || result.HasRegimes(c.Workload))
	}, err
}

// levels returns a reader of the levels of one parameter, a list or one value.
func (r *reader) levels(l *Levels, d result.Parameter) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) {
		if *l == nil {
			*l = Levels{}
		}
		r.each(path, n, func() int { return len((*l)[d.Key]) }, func(path string, n *yaml.Node) {
			var v any
			var ok bool
			if d.Kind == result.KindWord {
				v, ok = r.word(path, n)
			} else {
				v, ok = scalar(r, path, n, func(s string) (any, error) { return parse(d, s) })
			}
			if ok {
				(*l)[d.Key] = append((*l)[d.Key], v)
			}
		})
	}
}

// bound holds a level against what its parameter can be.
func (c *checker) bound(path string, d result.Parameter, v any) {
	switch d.Key {
	case "mtu":
		c.mtu(path, v.(unit.Bytes))
	case rateKey:
		c.rate(path, d, v.(unit.BitsPerSecond))
	case "link.delay":
		c.linkDelay(path, d, v.(time.Duration))
	case "link.nodes":
		c.nodeLinks(path, v.(string))
	case "congestion_control":
		c.named(path, d, v.(string), algorithmName, "an algorithm", "use one of those in /proc/sys/net/ipv4/tcp_available_congestion_control")
	case "storage_class":
		c.named(path, d, v.(string), className, "a StorageClass", "use one of those that kubectl get storageclass lists")
	default:
		if known := d.Known(); known != nil {
			c.oneOf(path, fmt.Sprint(v), known...)
		} else if d.Low != 0 || d.High != 0 {
			c.ranged(path, d, v)
		}
	}
}

// ranged holds a level against the bounds of its parameter.
func (c *checker) ranged(path string, d result.Parameter, v any) bool {
	switch v := v.(type) {
	case int:
		return inRange(c, path, v, int(d.Low), int(d.High), decimal)
	case unit.Bytes:
		return inRange(c, path, v, unit.Bytes(d.Low), unit.Bytes(d.High), unit.Bytes.String)
	case unit.BitsPerSecond:
		return inRange(c, path, v, unit.BitsPerSecond(d.Low), unit.BitsPerSecond(d.High), unit.BitsPerSecond.String)
	case time.Duration:
		return inRange(c, path, v, time.Duration(d.Low), time.Duration(d.High), unit.FormatDuration)
	case float64:
		return inRange(c, path, v, d.Low, d.High, floatText)
	}
	return true
}

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
