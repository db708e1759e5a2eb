package policies

import (
	"fmt"
	"slices"
	"time"

	"netdelta/experiment/record"
	"netdelta/result"
)

// Sample is one change: as its trial has it, without the repetitions that were disturbed.
type Sample = result.PolicyChange

// Failure is a number of policies at which not all could be measured.
type Failure struct {
	Policies int    `json:"policies"`
	Why      string `json:"why"`
}

// Outcome is what was measured.
type Outcome struct {
	Started  time.Time     `json:"started"`
	Finished time.Time     `json:"finished"`
	Every    time.Duration `json:"every_ns"`
	Repeat   int           `json:"repeat"`
	Samples  []Sample      `json:"samples"`
	// Disturbed counts repetitions that were begun anew since the way opened or closed by itself.
	Disturbed int       `json:"disturbed,omitempty"`
	Failures  []Failure `json:"failures,omitempty"`
}

// Of reads the outcome of a run from its record. A failure counts only while nothing was measured after it.
func Of(run result.Run, trials []result.Trial) Outcome {
	o := Outcome{Started: run.Started, Finished: run.Finished}
	if s := run.Strategy; s != nil {
		o.Every, o.Repeat = s.Every, s.Repeat
	}
	for _, t := range trials {
		p := t.Policy
		if p == nil {
			continue
		}
		o.Disturbed += p.Disturbed
		o.Failures = slices.DeleteFunc(o.Failures, func(f Failure) bool { return f.Policies == p.Policies })
		if t.Failed != "" {
			o.Failures = append(o.Failures, Failure{p.Policies, t.Failed})
			continue
		}
		s := *p
		s.Disturbed = 0
		o.Samples = append(o.Samples, s)
	}
	return o
}

// cells are one for each number of policies and kind of change. All are baselines: what differs is the condition.
func cells(c Config) []result.Cell {
	var all []result.Cell
	for _, change := range Changes() {
		if Fresh(change) && !c.Fresh {
			continue
		}
		for _, n := range c.Counts {
			all = append(all, cell(n, change))
		}
	}
	return all
}

func cell(count int, change Change) result.Cell {
	p := result.Params{Conditions: result.Conditions{Policy: result.PolicyKubernetes, PolicyRules: count}}
	c := record.Cells([]string{"pod"}, "policy-"+string(change), p, false)[0]
	c.ID += fmt.Sprintf("/%d", count)
	return c
}

// keeper writes samples to the record.
type keeper struct {
	rec       *record.Record
	disturbed int // in this run
	pending   int // of these, those that no trial tells of yet
}

func (k *keeper) disturb() { k.disturbed, k.pending = k.disturbed+1, k.pending+1 }

// measured counts the repetitions that were measured of both changes.
func (k *keeper) measured(count int, changes ...Change) int {
	least := len(k.rec.Trials)
	for _, change := range changes {
		n := 0
		for _, t := range k.rec.Trials {
			if t.Cell == cell(count, change).ID && t.Failed == "" {
				n++
			}
		}
		least = min(least, n)
	}
	return least
}

func (k *keeper) add(samples ...Sample) error {
	for _, s := range samples {
		c := cell(s.Policies, s.Change)
		after := float64(s.After)
		err := k.keep(c, result.Trial{
			Bursts: result.Bursts{Round: []int{0}, Start: []int64{0}, Duration: []int64{max(0, s.After.Nanoseconds())}, P50: []float64{after}},
			Policy: &s,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fail records why not all could be measured at a number of policies.
func (k *keeper) fail(count int, why error) error {
	return k.keep(cell(count, Refused), result.Trial{Policy: &result.PolicyChange{Policies: count}, Failed: why.Error()})
}

func (k *keeper) keep(c result.Cell, t result.Trial) error {
	t.Build, t.Started = k.rec.Of(c.ID), time.Now()
	t.Policy.Disturbed, k.pending = k.pending, 0
	return k.rec.Add(c, t)
}
