package study

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"netdelta/result"
)

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
