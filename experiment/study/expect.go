package study

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Expectation is what a claim says of deltas: every clause must hold.
//
//	CLAUSE { ; CLAUSE }
//	CLAUSE    METRIC of NETWORKS RELATION [where KEY=VALUE, KEY=VALUE|VALUE ...]
//	RELATION  below NETWORKS [by RANGE] | above NETWORKS [by RANGE]
//	          within AMOUNT of NETWORK | within AMOUNT of each other
//	          changes between KEY=VALUE and KEY=VALUE
//	NETWORKS  NAME, NAME ... | others
//	RANGE     AMOUNT | AMOUNT..AMOUNT
//	AMOUNT    a percentage (5%) or a time (10us)
type Expectation []Clause

// Clause is one statement of an Expectation.
type Clause struct {
	Metric   string
	Networks []string
	Relation Relation
	// Against are the networks that Networks are held against; Others stands for all networks of the run that the clause
	// does not name, without the baseline. It is empty for EachOther and Changes.
	Against []string
	// Low and High bound the difference: both zero for a direction without a figure, equal for Within and EachOther.
	Low, High Amount
	// From and To are the two levels between which the delta changes (Changes).
	From, To Condition
	Where    []Condition
}

// Relation is how the networks of a clause stand to what they are held against.
type Relation string

// The relations: every network is below (or above) every one it is held against; lies within an amount of it; lies within
// an amount of every other one named; differs in its delta between two levels.
const (
	Below     Relation = "below"
	Above     Relation = "above"
	Within    Relation = "within"
	EachOther Relation = "each-other"
	Changes   Relation = "changes"
)

// Others stands for all networks of the run that a clause does not name.
const Others = "others"

// Amount is a relative or an absolute difference; the other is zero.
type Amount struct {
	Relative float64 // a fraction: 0.05 is 5%
	Absolute time.Duration
}

// Condition restricts a clause to cells in which the factor has one of the values.
type Condition struct {
	Key    string // placement, workload, message, connections, rate, mtu or path
	Values []string
}

// ParseExpectation reads the language of claims. Networks are checked in form only: a claim may be about a network that
// this program does not have, and is then not tested.
func ParseExpectation(s string) (Expectation, error) {
	var all Expectation
	for clause := range strings.SplitSeq(s, ";") {
		p := &expectParser{words: strings.Fields(strings.ReplaceAll(clause, ",", " , "))}
		c, err := p.clause()
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// expectParser reads a clause word by word. After the first error it only returns it again.
type expectParser struct {
	words []string
	err   error
}

func (p *expectParser) peek() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

func (p *expectParser) next() string {
	w := p.peek()
	if w != "" {
		p.words = p.words[1:]
	}
	return w
}

func (p *expectParser) want(words ...string) string {
	w := p.next()
	if !slices.Contains(words, w) {
		p.fail(fmt.Sprintf("want %s, not %s", strings.Join(words, " or "), quoted(w)))
	}
	return w
}

func (p *expectParser) fail(why string) {
	if p.err == nil {
		p.err = errors.New(why)
	}
}

func quoted(w string) string {
	if w == "" {
		return "the end"
	}
	return printed(w)
}

func (p *expectParser) clause() (c Clause, err error) {
	metrics := []string{"p50", "p90", "p99", "p99.9", "mean", "min", "throughput", "loss", "cpu"}
	if c.Metric = p.next(); !slices.Contains(metrics, c.Metric) {
		return c, fmt.Errorf("unknown metric %s: %s", quoted(c.Metric), suggest(c.Metric, metrics))
	}
	p.want("of")
	c.Networks = p.names()
	switch relation := p.want("below", "above", "within", "changes"); relation {
	case "below", "above":
		c.Relation, c.Against = Relation(relation), p.names()
		if p.peek() == "by" {
			p.next()
			c.Low, c.High = p.span()
		}
	case "within":
		c.Relation, c.High = Within, p.amount(p.next())
		c.Low = c.High
		p.want("of")
		if p.peek() == "each" {
			p.next()
			p.want("other")
			c.Relation = EachOther
		} else {
			c.Against = p.names()
		}
	case "changes":
		c.Relation = Changes
		p.want("between")
		c.From = p.condition()
		p.want("and")
		c.To = p.condition()
		if c.From.Key != c.To.Key {
			p.fail(fmt.Sprintf("changes between two levels of one factor, not of %s and %s", c.From.Key, c.To.Key))
		}
	}
	if p.peek() == "where" {
		p.next()
		c.Where = append(c.Where, p.condition())
		for p.peek() == "," {
			p.next()
			c.Where = append(c.Where, p.condition())
		}
	}
	if p.err == nil && len(p.words) > 0 {
		p.fail(fmt.Sprintf("unexpected %s", quoted(p.peek())))
	}
	return c, p.err
}

func (p *expectParser) names() []string {
	names := []string{p.name()}
	for p.peek() == "," && p.err == nil {
		p.next()
		n := p.name()
		if slices.Contains(names, n) {
			p.fail(fmt.Sprintf("network %s is there twice", n))
		}
		names = append(names, n)
	}
	return names
}

func (p *expectParser) name() string {
	n := p.next()
	if !claimID.MatchString(n) {
		p.fail(fmt.Sprintf("want the name of a network, not %s", quoted(n)))
	}
	return n
}

func (p *expectParser) span() (low, high Amount) {
	w := p.next()
	from, to, ok := strings.Cut(w, "..")
	if !ok {
		a := p.amount(w)
		return a, a
	}
	low, high = p.amount(from), p.amount(to)
	if (low.Relative > 0) != (high.Relative > 0) || low.Relative > high.Relative || low.Absolute > high.Absolute {
		p.fail(fmt.Sprintf("%s is not a range", quoted(w)))
	}
	return low, high
}

func (p *expectParser) amount(w string) Amount {
	if number, ok := strings.CutSuffix(w, "%"); ok {
		if v, err := strconv.ParseFloat(number, 64); err == nil && v > 0 && v <= 10_000 {
			return Amount{Relative: v / 100}
		}
	} else if d, err := time.ParseDuration(w); err == nil && d > 0 {
		return Amount{Absolute: d}
	}
	p.fail(fmt.Sprintf("want an amount such as 5%% or 10us, not %s", quoted(w)))
	return Amount{}
}

func (p *expectParser) condition() Condition {
	w := p.next()
	key, value, _ := strings.Cut(w, "=")
	known := []string{"placement", "workload", "message", "connections", "rate", "mtu", "path"}
	if !slices.Contains(known, key) {
		p.fail(fmt.Sprintf("unknown factor %s: %s", quoted(key), suggest(key, known)))
	}
	values := strings.Split(value, "|")
	if slices.Contains(values, "") {
		p.fail(fmt.Sprintf("%s has no value: write for example placement=same-node", quoted(w)))
	}
	return Condition{Key: key, Values: values}
}
