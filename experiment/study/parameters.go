package study

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"netdelta/result"
	"netdelta/unit"
)

// parameter is a key under which a study gives levels: how they are read, checked and written, and what they set.
type parameter interface {
	name() string
	// reader reads the levels from a file.
	reader(r *reader, l *Levels) func(path string, n *yaml.Node)
	// replace puts levels in place of those that are there; an error names the one that is wrong.
	replace(l *Levels, texts []string) error
	// check holds each level against its bounds.
	check(c *checker, path string, l *Levels)
	// levels lists the levels.
	levels(l *Levels) []level
	// take makes to's levels those of from, unless from has none.
	take(to, from *Levels)
	clear(l *Levels)
	// fill gives p the value of defaults where it has none.
	fill(p *result.Params, defaults *result.Params)
	// given says whether parameters have a value, and unset takes it away.
	given(p result.Params) bool
	unset(p *result.Params)
	// test reads a level as claims have it, and gives the test of parameters for it.
	test(text string) (func(result.Params) bool, error)
	// worded says that levels are words, which are quoted where YAML would take them for something else.
	worded() bool
}

// field is the parameter of one field of Levels and of result.Params.
type field[T comparable] struct {
	key   string
	of    func(*Levels) *[]T
	parse func(string) (T, error)
	text  func(T) string
	// quotes says that what YAML takes for a number or a date has to be in quotes: the levels are words.
	quotes bool
	// in is the parameter's place; of one that is more than a value there are set and get in its stead.
	in    func(*result.Params) *T
	set   func(*result.Params, T)
	get   func(result.Params) T
	bound func(c *checker, path string, v T)
	// known are the words that there are, nil if any will do; idle is what a parameter that is not set is.
	known []string
	idle  T
}

func (f field[T]) test(text string) (func(result.Params) bool, error) {
	want, err := f.parse(text)
	switch {
	case err != nil:
		return nil, err
	case f.known != nil && !slices.Contains(f.known, text):
		return nil, fmt.Errorf("unknown %s %s: %s", f.key, printed(text), suggest(text, f.known))
	}
	return func(p result.Params) bool { return f.value(p) == want }, nil
}

func (f field[T]) given(p result.Params) bool {
	var zero T
	if f.get != nil {
		return f.get(p) != zero
	}
	return *f.in(&p) != zero
}

func (f field[T]) unset(p *result.Params) {
	var zero T
	f.put(p, zero)
}

// value is the parameter's.
func (f field[T]) value(p result.Params) T {
	if f.get != nil {
		return f.get(p)
	}
	var zero T
	if v := *f.in(&p); v != zero {
		return v
	}
	return f.idle
}

func (f field[T]) name() string { return f.key }

func (f field[T]) worded() bool { return f.quotes }

func (f field[T]) reader(r *reader, l *Levels) func(string, *yaml.Node) {
	to := f.of(l)
	if !f.quotes {
		return levels(r, to, f.parse)
	}
	return func(path string, n *yaml.Node) {
		r.each(path, n, func() int { return len(*to) }, func(path string, n *yaml.Node) {
			if text, ok := r.word(path, n); ok {
				if v, err := f.parse(text); err == nil { // every word is read: whether it is known is asked later
					*to = append(*to, v)
				}
			}
		})
	}
}

func (f field[T]) replace(l *Levels, texts []string) error {
	var values []T
	for _, t := range texts {
		v, err := f.parse(t)
		if err != nil {
			return fmt.Errorf("%s: %w", f.key, err)
		}
		values = append(values, v)
	}
	*f.of(l) = values
	return nil
}

func (f field[T]) check(c *checker, path string, l *Levels) {
	each(c, path+"."+f.key, *f.of(l), func(p string, v T) { f.bound(c, p, v) })
}

func (f field[T]) levels(l *Levels) []level {
	values := *f.of(l)
	all := make([]level, len(values))
	for i, v := range values {
		all[i] = level{key: f.key, path: fmt.Sprintf("%s[%d]", f.key, i), text: f.text(v), set: func(p *result.Params) { f.put(p, v) }}
	}
	return all
}

func (f field[T]) put(p *result.Params, v T) {
	if f.set != nil {
		f.set(p, v)
		return
	}
	*f.in(p) = v
}

func (f field[T]) take(to, from *Levels) {
	if values := *f.of(from); len(values) > 0 {
		*f.of(to) = slices.Clone(values)
	}
}

func (f field[T]) clear(l *Levels) { *f.of(l) = nil }

func (f field[T]) fill(p *result.Params, defaults *result.Params) {
	var zero T
	if v := f.in(p); *v == zero {
		*v = *f.in(defaults)
	}
}

// parameters lists all keys, in the order in which their levels are combined: the last varies fastest.
func parameters() []parameter {
	return append([]parameter{
		field[unit.Bytes]{
			key: "message", parse: parseBytes, text: bytesText, bound: bounded[unit.Bytes](1, maxMessage, size),
			of: func(l *Levels) *[]unit.Bytes { return &l.Message }, in: func(p *result.Params) *unit.Bytes { return &p.Message },
		},
		field[int]{
			key: "connections", parse: parseCount, text: strconv.Itoa, bound: bounded(1, maxConnections, decimal),
			of: func(l *Levels) *[]int { return &l.Connections }, in: func(p *result.Params) *int { return &p.Connections },
		},
		field[unit.BitsPerSecond]{
			key: "rate", parse: parseRateLevel, text: rateText, bound: (*checker).rate, set: setRate, get: rateLevel,
			of: func(l *Levels) *[]unit.BitsPerSecond { return &l.Rate }, in: func(p *result.Params) *unit.BitsPerSecond { return &p.Rate },
		},
		field[float64]{
			key: "request_rate", parse: parseFloat, text: floatText, bound: bounded(0.001, maxRequestRate, floatText),
			of: func(l *Levels) *[]float64 { return &l.RequestRate }, in: func(p *result.Params) *float64 { return &p.RequestRate },
		},
	}, append(loads(), append([]parameter{
		words("cpu", func(l *Levels) *[]string { return &l.CPU }, func(p *result.Params) *string { return &p.CPU }, "same", "two", "any"),
		field[time.Duration]{
			key: "busy_poll", parse: parseDuration, text: FormatDuration, bound: bounded(0, maxBusyPoll, FormatDuration),
			of: func(l *Levels) *[]time.Duration { return &l.BusyPoll }, in: func(p *result.Params) *time.Duration { return &p.BusyPoll },
		},
		field[string]{
			key: "congestion_control", quotes: true, parse: parseWord[string], text: stringText, bound: (*checker).algorithm,
			of: func(l *Levels) *[]string { return &l.CongestionControl }, in: func(p *result.Params) *string { return &p.CongestionControl },
		},
		field[bool]{
			key: "nagle", parse: parseBool, text: strconv.FormatBool, bound: func(*checker, string, bool) {},
			of: func(l *Levels) *[]bool { return &l.Nagle }, in: func(p *result.Params) *bool { return &p.Nagle },
		},
		field[unit.Bytes]{
			key: "mtu", parse: parseBytes, text: bytesText, bound: (*checker).mtu,
			of: func(l *Levels) *[]unit.Bytes { return &l.MTU }, in: func(p *result.Params) *unit.Bytes { return &p.MTU },
		},
		family(),
	}, conditions()...)...)...)
}

// parameterOf finds the parameter of a key.
func parameterOf(key string) (parameter, bool) {
	for _, p := range parameters() {
		if p.name() == key {
			return p, true
		}
	}
	return nil, false
}

// parameterNames are the keys of all parameters.
func parameterNames() []string {
	var names []string
	for _, p := range parameters() {
		names = append(names, p.name())
	}
	return names
}

// words is a parameter whose levels are among a few words.
func words[T ~string](key string, of func(*Levels) *[]T, in func(*result.Params) *T, known ...T) field[T] {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	return field[T]{
		key: key, quotes: true, known: names, parse: parseWord[T], text: func(v T) string { return string(v) }, of: of, in: in,
		bound: func(c *checker, path string, v T) { c.oneOf(path, string(v), names...) },
	}
}

// family is the version of IP.
func family() parameter {
	f := words("family", func(l *Levels) *[]result.Family { return &l.Family }, func(p *result.Params) *result.Family { return &p.Family },
		result.IPv4, result.IPv6)
	f.set, f.idle = setFamily, result.IPv4
	return f
}

// otherwise gives a field the value of parameters that are not set.
func otherwise[T comparable](f field[T], idle T) field[T] {
	f.idle = idle
	return f
}

// parseWord takes a word as it is; that it is a known one is checked later, at its place.
func parseWord[T ~string](s string) (T, error) { return T(s), nil }

// bounded is a check of a range.
func bounded[T int | time.Duration | float64 | unit.Bytes | unit.BitsPerSecond](low, high T, text func(T) string) func(*checker, string, T) {
	return func(c *checker, path string, v T) { inRange(c, path, v, low, high, text) }
}
