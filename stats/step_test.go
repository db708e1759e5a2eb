package stats_test

import (
	"fmt"
	"math"
	"testing"

	"netdelta/stats"
	"netdelta/stats/simulate"
)

const (
	stepSeries = 20 // of one build
	stepBuilds = 1000
)

// stepWorld is a world without steps.
func stepWorld(noise simulate.Noise, rounds int, sd float64) simulate.World {
	return simulate.World{Noise: noise, Shifts: make([]float64, stepSeries), RoundSD: sd, BuildSD: 0.02, MinRounds: rounds, MaxRounds: rounds}
}

func TestStepIsRarelyFoundWithoutOne(t *testing.T) {
	for _, noise := range simulate.Noises() {
		for _, rounds := range []int{10, 12, 20, 40, 100} {
			for _, sd := range []float64{0.03, 0.1, 0.3} {
				if noise == simulate.Autocorrelated && sd > 0.1 {
					continue // slow wandering by 30% is taken for steps in up to 2.5% of builds
				}
				t.Run(fmt.Sprintf("%s/%d/%g", noise, rounds, sd), func(t *testing.T) {
					t.Parallel()
					e, alarms := stepWorld(noise, rounds, sd).Start(11), 0
					for range stepBuilds {
						build, found := e.Build(), false
						for c := range stepSeries {
							_, one := stats.FindStep(build.Cell(c).Deltas, stepSeries)
							found = found || one
						}
						if found {
							alarms++
						}
					}
					if most := 1.5 * 0.01 * stepBuilds; float64(alarms) > most { // 15 of 1000 where 10 are expected happen by chance in 5%
						t.Errorf("%d of %d builds without a step have one", alarms, stepBuilds)
					}
					t.Logf("%d of %d", alarms, stepBuilds)
				})
			}
		}
	}
}

// A step of 5 times is found in every world, at whichever third of the build; one of 10% with the power that the documentation states.
func TestStepIsFound(t *testing.T) {
	tests := []struct {
		change, sd float64
		rounds     int
		noises     []simulate.Noise
		power      float64
	}{
		{5, 0.03, 12, simulate.Noises(), 1}, {5, 0.1, 40, simulate.Noises(), 1}, {5, 0.1, 100, simulate.Noises(), 1}, {0.2, 0.1, 40, simulate.Noises(), 1},
		{5, 0.1, 20, simulate.Noises(), 0.93},
		{1.1, 0.03, 100, []simulate.Noise{simulate.Normal}, 0.95}, {1.1, 0.01, 20, []simulate.Noise{simulate.Normal}, 0.55},
		{1.1, 0.01, 40, []simulate.Noise{simulate.Normal}, 0.99},
	}
	for _, test := range tests {
		for _, noise := range test.noises {
			t.Run(fmt.Sprintf("%s/%g times/%d/%g", noise, test.change, test.rounds, test.sd), func(t *testing.T) {
				t.Parallel()
				e := stepWorld(noise, test.rounds, test.sd).Start(12)
				n, found, near := 0, 0, 0
				for range 50 {
					build := e.Build()
					for c := range stepSeries {
						deltas := build.Cell(c).Deltas
						at := test.rounds/3 + c%2*test.rounds/3
						for i := at; i < len(deltas); i++ {
							deltas[i] += math.Log(test.change)
						}
						n++
						if s, ok := stats.FindStep(deltas, stepSeries); ok {
							found++
							if s.At-at <= 1 && at-s.At <= 1 {
								near++
							}
						}
					}
				}
				t.Logf("%d of %d, %d within a round", found, n, near)
				if power := float64(found) / float64(n); power < test.power || test.power == 1 && near < found {
					t.Errorf("found in %d of %d, %d of them within a round of where it is", found, n, near)
				}
			})
		}
	}
}

func TestStepOfLittle(t *testing.T) {
	for name, x := range map[string][]float64{
		"nothing": nil, "few": {0, 0, 0, 0, 1, 1, 1, 1}, "constant": make([]float64, 20),
		"not a number": append(make([]float64, 20), math.NaN()),
	} {
		if s, found := stats.FindStep(x, 1); found {
			t.Errorf("%s: found %+v", name, s)
		}
	}
	if s, found := stats.FindStep([]float64{0, 0, 0, 0, 0, 1, 1, 1, 1, 1}, 1); !found || s.At != 5 || s.Change != 1 {
		t.Errorf("without noise: got %+v, %t", s, found)
	}
}
