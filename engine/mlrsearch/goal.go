// Package mlrsearch finds the highest rates at which a network loses nothing, or little, in one search of many short
// trials. It is pure: trials are handed to it.
//
// It follows Multiple Loss Ratio search (M. Konstantynowicz, V. Polak: draft-ietf-bmwg-mlrsearch), whose words are in
// parentheses here: a rate (load) is a lower bound of a goal when enough of the time that was spent on it saw no more loss
// than the goal allows, an upper bound when it can't become one any more, and undecided meanwhile. A goal is reached in
// phases (targets), from few short trials and wide bounds to more and longer trials and narrow ones. All goals share all
// trials. docs/rate-search.md tells it at length.
package mlrsearch

import (
	"fmt"
	"math"
	"time"
)

// The defaults of goals, each with its source.
const (
	// PartialLoss is the share that the second goal may lose: the PDR of FD.io CSIT. The first one, the NDR, loses nothing.
	PartialLoss = 0.005
	// ExceedRatio is the share of the time spent on a rate that may see more loss than the goal allows while the rate
	// remains a lower bound: a majority decides, as in FD.io CSIT (Goal Exceed Ratio 50%).
	ExceedRatio = 0.5
	// Width is how far apart the bounds of a goal may be in the end, relative to the upper one. FD.io CSIT has 0.5% for a
	// search of minutes that is done once. Here a search takes part of a second and is done in every round, each time over
	// other rates, so that the mean of all is known better than each one.
	Width = 0.02
	// coarser is how many phases precede the last one, each with twice the width of the next (preceding_targets of FD.io
	// CSIT's implementation, MLRsearch 1.2: 2).
	coarser = 2
	// expansion is by how much the step grows when a bound is sought further and further away (expansion_coefficient of the
	// same: 4).
	expansion = 4
	// finalShare is the part of a search's time that a trial of the last phase takes: one in so many. Both goals together
	// need four to eight of these trials where the goals meet, and twice as many where they don't or trials contradict.
	finalShare = 28
	// initialShare is by how much a trial of the first phase is shorter than one of the last.
	initialShare = 4
	// majorityOf is how many trials of the last phase decide on a rate, if they don't agree sooner. FD.io CSIT has 21 (of a
	// second): here the rounds repeat the whole search instead.
	majorityOf = 3
)

// Goal is what is sought: the highest rate at which no more than a share of what was sent is lost.
type Goal struct {
	// LossRatio is the share that a trial may lose, from 0 (nothing) to below 1.
	LossRatio float64
	// ExceedRatio is the share of the time spent on a rate in which trials may lose more, from 0 to below 1.
	ExceedRatio float64
	// Width is how far apart the bounds may be in the end, relative to the upper one; between 0 and 1.
	Width float64
	// Initial and Final are the lengths of the trials of the first and the last phase.
	Initial, Final time.Duration
	// Sum is how long the trials of a rate last together until the last phase takes it for a bound; fewer do if the rest
	// could not change that.
	Sum time.Duration
	// Coarser is how many phases come before the last one.
	Coarser int
}

func (g Goal) check() error {
	switch {
	case !(g.LossRatio >= 0 && g.LossRatio < 1):
		return fmt.Errorf("a loss ratio of %v is out of range: 0 to below 1", g.LossRatio)
	case !(g.ExceedRatio >= 0 && g.ExceedRatio < 1):
		return fmt.Errorf("an exceed ratio of %v is out of range: 0 to below 1", g.ExceedRatio)
	case !(g.Width > 0 && g.Width < 1):
		return fmt.Errorf("a width of %v is out of range: between 0 and 1", g.Width)
	case g.Initial <= 0 || g.Final < g.Initial || g.Sum < g.Final:
		return fmt.Errorf("trials of %v, then %v, and %v together: each must be positive and no less than the one before", g.Initial, g.Final, g.Sum)
	case g.Coarser < 0 || g.Coarser > 16:
		return fmt.Errorf("%d coarser phases are out of range: 0 to 16", g.Coarser)
	}
	return nil
}

// Config says what to search, and when to stop.
type Config struct {
	// Goals are sought together. They stand in the order of their loss ratios, least first.
	Goals []Goal
	// Least and Most are the rates to search between. The first trial runs at Most, however far that is above what sender
	// and network can do.
	Least, Most float64
	// Unsent is the share of what was due in a trial that the sender may fail to send. A trial in which it fails more tells
	// the sender's limit, not the network's.
	Unsent float64
	// Trials and Time are how many trials there may be, and how long they may take with all that is around them.
	Trials int
	Time   time.Duration
}

// Standard is a search for the rates without loss and with PartialLoss of it, within the given time, by a sender that may
// leave unsent the given share of what is due.
func Standard(within time.Duration, least, most, unsent float64) Config {
	final := within / finalShare
	goal := Goal{
		ExceedRatio: ExceedRatio, Width: Width, Coarser: coarser,
		Initial: final / initialShare, Final: final, Sum: majorityOf * final,
	}
	partial := goal
	partial.LossRatio = PartialLoss
	return Config{
		Goals: []Goal{goal, partial}, Least: least, Most: most, Unsent: unsent,
		// As many as fit even if all of them were short.
		Trials: finalShare * initialShare, Time: within,
	}
}

func (c Config) check() error {
	if len(c.Goals) == 0 {
		return fmt.Errorf("a search needs a goal")
	}
	for i, g := range c.Goals {
		if err := g.check(); err != nil {
			return err
		}
		if i > 0 && g.LossRatio < c.Goals[i-1].LossRatio {
			return fmt.Errorf("a goal of loss ratio %v follows one of %v: put the least first", g.LossRatio, c.Goals[i-1].LossRatio)
		}
	}
	switch {
	case !(c.Least > 0 && c.Most >= c.Least) || math.IsInf(c.Most, 0):
		return fmt.Errorf("rates from %v to %v: the least must be positive, and the most no less", c.Least, c.Most)
	case !(c.Unsent >= 0 && c.Unsent < 1):
		return fmt.Errorf("an unsent share of %v is out of range: 0 to below 1", c.Unsent)
	case c.Trials < 1 || c.Time <= 0:
		return fmt.Errorf("%d trials in %v: a search needs at least one, and time for it", c.Trials, c.Time)
	}
	return nil
}

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
