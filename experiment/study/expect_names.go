package study

import (
	"fmt"
	"math"
	"slices"

	"netdelta/internal/gather"
	"netdelta/result"
)

// claimMetrics are what claims may be about.
func claimMetrics() []string {
	return []string{
		"p50", "p90", "p99", "p99.9", "mean", "min", "throughput", "loss", "cpu",
		"no_drop", "partial_drop", "p50_at_10", "p50_at_50", "p50_at_90", "request", "response", "rate",
	}
}

// timeless are the metrics that are no times, so that no claim can give a time for them.
func timeless(metric string) bool {
	return slices.Contains([]string{"rate", "throughput", "loss", "no_drop", "partial_drop"}, metric)
}

// Metal is what claims call the machine itself, without any container: published measurements are about it, and no testbed
// of this program can build it.
const Metal = "metal"

// vocabulary is what claims may name. Without networks, these and workloads are checked in form only: a record of a run may come
// from a program that knew others.
type vocabulary struct {
	networks, workloads []string
	parameters          []result.Parameter
}

// vocabulary is what exists, and Metal.
func (k Known) vocabulary() *vocabulary {
	v := &vocabulary{parameters: k.parameters(), networks: append(slices.Concat(k.Networks, k.elsewhere), Others, Metal)}
	for _, w := range k.Workloads {
		v.workloads = append(v.workloads, w.Name)
	}
	return v
}

// factor is what a condition can be about.
type factor struct {
	key string
	// read gives the test of a cell for a value, or what is wrong with the value.
	read func(value string) (holds func(result.Cell) bool, err error)
}

// conditionFactors are all that a condition can be about.
func conditionFactors(parameters []result.Parameter) []factor {
	all := []factor{
		named("placement", []string{string(result.SameNode), string(result.CrossNode)},
			func(c result.Cell) string { return string(c.Placement) }),
		typed("workload", func(s string) (string, error) {
			if !claimID.MatchString(s) {
				return "", fmt.Errorf("%s is not the name of a workload", printed(s))
			}
			return s, nil
		}, func(c result.Cell) string { return c.Workload }),
		named("path", []string{"pod", "service", "nodeport", "host"}, func(c result.Cell) string { return c.Path }),
	}
	for _, d := range parameters {
		if !d.Derived {
			all = append(all, factor{d.Key, func(value string) (func(result.Cell) bool, error) { return test(d, value) }})
		}
	}
	return all
}

// typed is a factor whose values are quantities; of gives a cell's.
func typed[T comparable, C any](key string, parse func(string) (T, error), of func(result.Cell) C) factor {
	return factor{key, func(value string) (func(result.Cell) bool, error) {
		want, err := parse(value)
		return func(c result.Cell) bool { return any(of(c)) == any(want) }, err
	}}
}

// named is a factor whose values are a few words.
func named(key string, known []string, of func(result.Cell) string) factor {
	return typed(key, func(s string) (string, error) {
		if !slices.Contains(known, s) {
			return "", fmt.Errorf("unknown %s %s: %s", key, printed(s), suggest(s, known))
		}
		return s, nil
	}, of)
}

// factorOf finds the factor of a key.
func factorOf(parameters []result.Parameter, key string) (factor, bool) {
	return gather.First(conditionFactors(parameters), func(f factor) bool { return f.key == key })
}

// Holds says whether the factor has one of the condition's values in a cell whose parameters have their defaults filled in
// (WithDefaults). A key or value that ParseExpectation would refuse holds nowhere.
func (c Condition) Holds(cell result.Cell) bool {
	f, ok := factorOf(result.Parameters(cell.Params.Own.Declared()...), c.Key)
	return ok && slices.ContainsFunc(c.Values, func(value string) bool {
		holds, err := f.read(value)
		return err == nil && holds(cell)
	})
}

// problem says what is wrong with a condition, and in which part of it; "" if nothing is.
func (c Condition) problem(v *vocabulary) (part, why string) {
	keys := gather.Each(conditionFactors(v.parameters), func(f factor) string { return f.key })
	f, ok := factorOf(v.parameters, c.Key)
	if !ok {
		return c.Key, fmt.Sprintf("unknown factor %s: %s", quoted(c.Key), suggest(c.Key, keys))
	}
	for i, value := range c.Values {
		if slices.Contains(c.Values[:i], value) {
			return value, fmt.Sprintf("value %s is there twice", printed(value))
		}
		if _, err := f.read(value); err != nil {
			return value, err.Error()
		}
		if c.Key == "workload" && v.networks != nil && !slices.Contains(v.workloads, value) {
			return value, fmt.Sprintf("unknown workload %s: %s", printed(value), suggest(value, v.workloads))
		}
	}
	return "", ""
}

// rounded keeps what anyone writes of digits, so that a value and what it is printed as are the same number.
func rounded(v, scale float64) float64 { return math.Round(v*scale) / scale }

// correlation reads what a metric goes with over all networks.
func (p *expectParser) correlation(c *Clause) {
	if c.Relation = RisesWith; p.next() == "falls" {
		c.Relation = FallsWith
	}
	if at := p.last.at; c.Metric != "rate" {
		p.fail(at, "only a rate is held against raw figures of networks: rate rises with throughput of tcp-stream")
	}
	p.want("with")
	at := p.at()
	c.With.Metric = p.next()
	p.want("of")
	c.With.Workload = p.next()
	if !slices.Contains(Raws(), c.With) {
		p.fail(at, "want p50 of tcp-rr or throughput of tcp-stream, which are the raw figures of networks")
	}
}
