package hops

import (
	"cmp"
	"math"
	"slices"
)

// Difference is where two networks' round trips differ.
type Difference struct {
	// Total is the other's round trip less the base's, as their hops add up, in nanoseconds.
	Total float64
	// Steps are what differs, the largest first: each a step of the way, of both directions together.
	Steps []StepDifference
	// Rest is what all other steps differ by together, in nanoseconds.
	Rest float64
}

// StepDifference is what a step, such as encapsulation, takes longer in the other network, in nanoseconds.
type StepDifference struct {
	Step       string
	Difference float64
}

// Steps that are named make up at least this share of all differences, whichever way they go.
const namedShare = 0.05

// Conclude sums the hops of both directions by what happens in them. A step is named if one of its hops is known to differ and it makes up
// a twentieth of all that differs.
func Conclude(base, other Way) Difference {
	var d Difference
	sums, known := map[string]float64{}, map[string]bool{}
	for _, line := range slices.Concat(Compare(base.Request, other.Request), Compare(base.Response, other.Response)) {
		step := cmp.Or(line.Other, line.Base).Step
		sums[step] += line.Difference
		d.Total += line.Difference
		known[step] = known[step] || line.Low != nil && line.High != nil && (*line.Low > 0 || *line.High < 0)
	}
	all := 0.0
	for _, x := range sums {
		all += math.Abs(x)
	}
	for step, x := range sums {
		if known[step] && math.Abs(x) >= namedShare*all {
			d.Steps = append(d.Steps, StepDifference{step, x})
		} else {
			d.Rest += x
		}
	}
	slices.SortFunc(d.Steps, func(a, b StepDifference) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Difference), math.Abs(a.Difference)), cmp.Compare(a.Step, b.Step))
	})
	return d
}
