package mlrsearch

import (
	"math"
	"time"
)

// Outcome is what a trial gave.
type Outcome struct {
	// Due is how much was to be sent (the intended load), Sent how much was (the offered load).
	Due, Sent int64
	// Loss is the share of what was sent that did not arrive, or would not have in a longer trial: 0 to 1.
	Loss float64
	// Rate is the rate at which it arrived.
	Rate float64
	// Elapsed is what the trial took, with all that is around it.
	Elapsed time.Duration
}

// unsent is the share of what was due that was not sent.
func (o Outcome) unsent() float64 {
	if o.Due <= 0 || o.Sent >= o.Due {
		return 0
	}
	return float64(o.Due-o.Sent) / float64(o.Due)
}

// trial is an outcome as goals look at it.
type trial struct {
	duration time.Duration
	loss     float64
	starved  bool // the sender could not send what was due
}

func (t trial) bad(g Goal) bool { return t.starved || t.loss > g.LossRatio }

// load is a rate with the trials that were made at it.
type load struct {
	trials []trial
	rate   float64 // at which the last trial's datagrams arrived
}

// class is what a rate is to a goal in one of its phases.
type class int

const (
	undecided class = iota
	lower
	upper
)

// phase is what one phase of a goal asks of a rate.
type phase struct {
	goal     Goal
	width    int // in steps of the grid
	duration time.Duration
	sum      time.Duration
}

// phases returns the phases of a goal, the coarsest first. Lengths and sums grow by the same factor from one to the next.
func (g Goal) phases(width int) []phase {
	all := make([]phase, g.Coarser+1)
	for i := range all {
		part := 1.0
		if g.Coarser > 0 {
			part = float64(i) / float64(g.Coarser)
		}
		all[i] = phase{goal: g, width: width << (g.Coarser - i), duration: between(g.Initial, g.Final, part), sum: between(g.Initial, g.Sum, part)}
	}
	return all
}

// between is the duration that lies a part of the way from a to b, on a logarithmic scale.
func between(a, b time.Duration, part float64) time.Duration {
	return time.Duration(math.Round(float64(a) * math.Pow(float64(b)/float64(a), part)))
}

// classify says what the load is in a phase, by the rule of the draft's section on load classification: first as if all
// trials that are missing to the sum were good, then as if they were bad. When both agree, they need not be made. Trials
// shorter than the phase's can't make a rate a lower bound, but where they are bad beyond the share that is allowed, they
// count against it.
func (l *load) classify(p phase) class {
	var goodLong, badLong, goodShort, badShort float64
	for _, t := range l.trials {
		d, bad, long := float64(t.duration), t.bad(p.goal), t.duration >= p.duration
		switch {
		case long && bad:
			badLong += d
		case long:
			goodLong += d
		case bad:
			badShort += d
		default:
			goodShort += d
		}
	}
	allowed := p.goal.ExceedRatio
	excess := badLong + max(0, badShort-goodShort*allowed/(1-allowed))
	sum := max(goodLong+excess, float64(p.sum))
	limit := sum * allowed
	switch optimistic, pessimistic := excess <= limit, sum-goodLong <= limit; {
	case optimistic && pessimistic:
		return lower
	case !optimistic && !pessimistic:
		return upper
	}
	return undecided
}

// starved says whether most of the trials that a goal calls bad here were the sender's fault.
func (l *load) starved(g Goal) bool {
	var sender, all time.Duration
	for _, t := range l.trials {
		if t.bad(g) {
			all += t.duration
			if t.starved {
				sender += t.duration
			}
		}
	}
	return 2*sender > all
}
