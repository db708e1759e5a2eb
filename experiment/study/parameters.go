package study

import (
	"fmt"
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
		return FormatDuration(v)
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
		return inRange(c, path, v, time.Duration(d.Low), time.Duration(d.High), FormatDuration)
	case float64:
		return inRange(c, path, v, d.Low, d.High, floatText)
	}
	return true
}
