package study

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/unit"
)

// Expectation is what a claim says of deltas: every clause must hold. A clause is written in words, or as a comparison of
// deltas under a heading; both mean the same Clause.
//
//	CLAUSE { ; CLAUSE }
//	CLAUSE      METRIC of NETWORKS RELATION [where CONDITION, CONDITION ...]
//	            METRIC rises with METRIC of WORKLOAD [where ...] | METRIC falls with METRIC of WORKLOAD [where ...]
//	            [WORKLOAD] METRIC [, PLACEMENT] [, CONDITION ...]: COMPARISON
//	RELATION    below NETWORKS [by RANGE] | above NETWORKS [by RANGE]
//	            at most AMOUNT above NETWORKS | at most AMOUNT below NETWORKS
//	            within AMOUNT of NETWORKS | within AMOUNT of each other
//	            changes between CONDITION and CONDITION
//	            rises [by RANGE] between CONDITION and CONDITION
//	            falls [by RANGE] between CONDITION and CONDITION
//	            stays within AMOUNT between CONDITION and CONDITION
//	COMPARISON  A/BASE < B/BASE | A < B            and each of them with > in place of <
//	            A/BASE < 1.2 | A/BASE - 1 < 20%
//	            A - BASE < 10us
//	NETWORKS    NAME, NAME ... | others
//	RANGE       AMOUNT (that much or more; also "at least AMOUNT") | AMOUNT..AMOUNT
//	AMOUNT      a percentage (5%) or a time (10us)
//	CONDITION   KEY=VALUE | KEY=VALUE|VALUE ...
type Expectation []Clause

// Clause is one statement of an Expectation.
type Clause struct {
	Metric   string
	Networks []string
	Relation Relation
	// Against are the networks that Networks are held against; Others stands for all networks of the run that the clause
	// does not name, without the baseline. It is empty for EachOther and for what is between two levels.
	Against []string
	// Low and High bound the difference. Below and Above: both are zero for a direction without a figure; High alone is
	// zero where Low is the least and there is no most. AtMostAbove, AtMostBelow, Within, EachOther, Stays: both are the most.
	// Rises and Falls are as Above and Below.
	Low, High Amount
	// From and To are the two levels between which the delta changes (Changes), or the network itself rises, falls or stays.
	From, To Condition
	// With is what a metric goes with over all networks of a setting (RisesWith, FallsWith).
	With  Raw
	Where []Condition
}

// Raw is a figure that networks have raw: the metric of a workload.
type Raw struct{ Metric, Workload string }

// Raws are those that a run holds rates of applications against.
func Raws() []Raw { return []Raw{{"p50", "tcp-rr"}, {"throughput", "tcp-stream"}} }

// Relation is how the networks of a clause stand to what they are held against.
type Relation string

// The relations: every network is below (or above) every one it is held against; is not further above (or below) it than an
// amount; lies within an amount of it; lies within an amount of every other one named; differs in its delta between two
// levels; is itself higher, lower or within an amount at the second of two levels, whatever the baseline does. Of a metric over all
// networks: is higher, or lower, where networks have more of a raw figure.
const (
	Below       Relation = "below"
	Above       Relation = "above"
	AtMostAbove Relation = "at-most-above"
	AtMostBelow Relation = "at-most-below"
	Within      Relation = "within"
	EachOther   Relation = "each-other"
	Changes     Relation = "changes"
	Rises       Relation = "rises"
	Falls       Relation = "falls"
	Stays       Relation = "stays"
	RisesWith   Relation = "rises-with"
	FallsWith   Relation = "falls-with"
)

// Others stands for all networks of the run that a clause does not name.
const Others = "others"

// BetweenLevels says whether the clause is about two levels of a factor.
func (c Clause) BetweenLevels() bool {
	return c.Relation == Changes || c.OfEffect()
}

// OfEffect says whether the clause is about what a factor does to the networks themselves, not to what they cost.
func (c Clause) OfEffect() bool {
	return c.Relation == Rises || c.Relation == Falls || c.Relation == Stays
}

// OfCorrelation says whether the clause is about what goes with what over all networks.
func (c Clause) OfCorrelation() bool { return c.Relation == RisesWith || c.Relation == FallsWith }

// InTime says whether the clause speaks of times, so that differences are taken in them and not as ratios.
func (c Clause) InTime() bool { return c.Low.Absolute != 0 || c.High.Absolute != 0 }

// Amount is a relative or an absolute difference; the other is zero.
type Amount struct {
	Relative float64 // a fraction: 0.05 is 5%
	Absolute time.Duration
}

// Condition restricts a clause to cells in which the factor has one of the values.
type Condition struct {
	Key    string // placement, workload, path or a parameter
	Values []string
}

// String is the condition as it is written: "message=300|500".
func (c Condition) String() string { return c.Key + "=" + strings.Join(c.Values, "|") }

// String is the amount as it is written: "5%", "10us".
func (a Amount) String() string {
	if a.Absolute != 0 {
		return strings.Replace(unit.FormatDuration(a.Absolute), "µ", "u", 1)
	}
	return strconv.FormatFloat(rounded(100*a.Relative, 1e10), 'f', -1, 64) + "%"
}

// heading reads what a comparison is about, up to the colon.
func (p *expectParser) heading(c *Clause) {
	at := p.at()
	if first := p.peek(0); !slices.Contains(claimMetrics(), first) && !slices.Contains([]string{",", ":"}, p.peek(1)) {
		p.next()
		workload := Condition{Key: "workload", Values: []string{first}}
		if _, why := workload.problem(p.known); why != "" {
			p.fail(at, why)
		}
		c.Where = append(c.Where, workload)
	}
	p.metric(c)
	for p.skip(",") {
		at, word := p.at(), p.peek(0)
		if strings.Contains(word, "=") {
			p.where(c, at, p.condition())
			continue
		}
		p.next()
		placement := Condition{Key: "placement", Values: []string{word}}
		if _, why := placement.problem(p.known); why != "" {
			p.fail(at, fmt.Sprintf("want %s, %s or KEY=VALUE, not %s", result.SameNode, result.CrossNode, quoted(word)))
		}
		p.where(c, at, placement)
	}
	p.want(":")
}

// comparison reads two deltas, or a delta and a figure.
func (p *expectParser) comparison(c *Clause) {
	network := p.name()
	c.Networks = []string{network}
	switch {
	case p.skip("/"):
		c.Against = p.names(c.Networks)
		if excess := p.skip("-1"); excess || p.skip("-") {
			if !excess {
				p.want("1")
			}
			p.figure(c, p.want("<", ">"), 1)
			return
		}
		sign := p.want("<", ">")
		if p.peek(1) != "/" {
			p.figure(c, sign, 0)
			return
		}
		base := c.Against[0]
		c.direction(sign)
		c.Against = p.names(c.Networks)
		p.want("/")
		if at, second := p.at(), p.name(); second != base {
			p.fail(at, fmt.Sprintf("%s is held against %s and %s against %s: a comparison has one base", network, base, c.Against[0], second))
		}
	case p.skip("-"):
		c.Against = p.names(c.Networks)
		p.difference(c, p.want("<", ">"))
	default:
		c.direction(p.want("/", "-", "<", ">"))
		c.Against = p.names(c.Networks)
	}
	if len(c.Against) > 1 {
		p.fail(p.at(), "a comparison holds one network against one: write METRIC of A below B, C for several")
	}
}

// direction is the relation that a sign means.
func (c *Clause) direction(sign string) {
	c.Relation = Below
	if sign == ">" {
		c.Relation = Above
	}
}

// figure reads what a ratio is held against: a number or a percentage, more by offset.
func (p *expectParser) figure(c *Clause, sign string, offset float64) {
	at, w := p.at(), p.next()
	number, percent := strings.CutSuffix(w, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	share := rounded(v+offset-1, 1e12) // the change that the ratio is
	if err != nil || !(share > -1 && share <= mostRelative) {
		p.fail(at, fmt.Sprintf("want a ratio such as 1.2 (or 20%% after - 1), or NETWORK/BASE, not %s", quoted(w)))
		return
	}
	c.bound(sign, share < 0, Amount{Relative: math.Abs(share)})
}

// difference reads the time that a difference is held against.
func (p *expectParser) difference(c *Clause, sign string) {
	at, w := p.at(), p.next()
	d, err := time.ParseDuration(w)
	if err != nil || d == math.MinInt64 {
		p.fail(at, fmt.Sprintf("want a time such as 10us, not %s", quoted(w)))
		return
	}
	p.timed(c, at)
	c.bound(sign, d < 0, Amount{Absolute: d.Abs()})
}

// bound makes the clause one of a network that differs by less (or more) than an amount, which is below the other network
// when it is negative.
func (c *Clause) bound(sign string, negative bool, a Amount) {
	switch c.direction(sign); {
	case a == Amount{}:
	case sign == "<" && !negative:
		c.Relation, c.Low, c.High = AtMostAbove, a, a
	case sign == ">" && negative:
		c.Relation, c.Low, c.High = AtMostBelow, a, a
	default:
		c.Low = a
	}
}

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

// Metal is what claims call the machine itself, without any container: published measurements are about it. Testbeds of servers have a
// network of this name; others can't build it.
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
			if !claimID(s) {
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
