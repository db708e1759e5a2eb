// Package visits says what each client takes that one thread visits in turn, a few transactions each time, on a machine that is fast at one
// moment and slow at another. Agents use it: unlike package stats it depends on nothing.
package visits

import (
	"math"
	"slices"
)

// Visit is what one visit to a client took.
type Visit struct {
	Client int
	Log    float64 // the logarithm of its median latency
}

const (
	// Around is how many visits before one, and after it, tell the state of the machine at the time.
	Around = 4
	// passes is how often levels are made of states, and states of levels: each pass leaves less than a tenth of what is missing.
	passes = 3
)

// Levels are what clients take, from visits in the order in which they were made: a client's level is the mean of the middle half of its
// visits' logarithms less the state of the machine. Levels are 0 on average over clients, and NaN for a client without visits. The state
// is the median of what the visits around one take beyond their clients' levels. All clients are treated alike, however often they are
// visited: noise that is skewed moves no difference of two levels. beyond is what each visit takes beyond the state.
func Levels(all []Visit, clients int) (levels, beyond []float64) {
	levels, beyond = make([]float64, clients), make([]float64, len(all))
	for i, v := range all {
		beyond[i] = v.Log
	}
	settle(all, beyond, levels)
	for range passes {
		for i, v := range all {
			beyond[i] = v.Log - state(all, levels, i)
		}
		settle(all, beyond, levels)
	}
	return levels, beyond
}

// state is what the visits around one took beyond their clients' levels.
func state(all []Visit, levels []float64, at int) float64 {
	var room [2 * Around]float64
	near := room[:0]
	for i := max(0, at-Around); i < min(len(all), at+Around+1); i++ {
		if i != at {
			near = append(near, all[i].Log-levels[all[i].Client])
		}
	}
	if len(near) == 0 {
		return 0
	}
	return median(near)
}

// settle makes levels of what visits took beyond the state, and takes their mean away from both.
func settle(all []Visit, beyond, levels []float64) {
	of := make([][]float64, len(levels))
	for i, v := range all {
		of[v.Client] = append(of[v.Client], beyond[i])
	}
	sum, n := 0.0, 0.0
	for c, own := range of {
		if levels[c] = math.NaN(); len(own) > 0 {
			levels[c] = middle(own)
			sum, n = sum+levels[c], n+1
		}
	}
	for c := range levels {
		levels[c] -= sum / n
	}
	for i := range beyond {
		beyond[i] -= sum / n
	}
}

// middle is the mean of the middle half of values, of which there is one at least. It sorts them.
func middle(values []float64) float64 {
	slices.Sort(values)
	out := min((len(values)+3)/4, (len(values)-1)/2) // at either end
	sum := 0.0
	for _, x := range values[out : len(values)-out] {
		sum += x
	}
	return sum / float64(len(values)-2*out)
}

// median sorts the values, of which there is one at least.
func median(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
