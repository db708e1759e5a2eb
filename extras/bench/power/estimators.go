package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"netdelta/stats"
)

// estimator is a way to an interval at 95%, to be held against the others.
type estimator struct {
	name     string
	interval func(builds []stats.Build, random *rand.Rand) (low, high float64)
}

// location reduces the deltas of one build to one number.
type location struct {
	name string
	of   func([]float64) float64
}

const confidence = 0.95

// estimators lists the candidates; the first is the one that package stats uses, called through its front door. The
// others see only the deltas.
func estimators() []estimator {
	mean := location{"mean", stats.Mean}
	return []estimator{
		{"**t, 20% trimmed mean of both pairings**", func(b []stats.Build, _ *rand.Rand) (float64, float64) {
			e := stats.Compare(b, stats.Options{})
			return e.Low, e.High
		}},
		student(mean),
		student(location{"10% trimmed mean", func(x []float64) float64 { return stats.TrimmedMean(x, 0.1) }}),
		student(location{"Hodges-Lehmann", stats.HodgesLehmann}),
		student(location{"median", stats.Median}),
		{"random effects, Hartung-Knapp", hartungKnapp},
		{"cluster bootstrap, percentile", bootstrap(mean, false)},
		{"cluster bootstrap, BCa", bootstrap(mean, true)},
		{"t over all rounds (no builds)", pooled},
	}
}

// tQuantile is half the width of a standardised interval of Student's t.
func tQuantile(freedom float64) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(0.5 + confidence/2)
}

func means(builds []stats.Build, l location) []float64 {
	m := make([]float64, len(builds))
	for i, b := range builds {
		m[i] = l.of(b.Deltas)
	}
	return m
}

func variance(x []float64) float64 {
	mean, sum := stats.Mean(x), 0.0
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return sum / float64(len(x)-1)
}

// student is the t interval over one number for each build.
func student(l location) estimator {
	return estimator{"t, " + l.name, func(builds []stats.Build, _ *rand.Rand) (float64, float64) {
		m := means(builds, l)
		half := tQuantile(float64(len(m)-1)) * math.Sqrt(variance(m)/float64(len(m)))
		return stats.Mean(m) - half, stats.Mean(m) + half
	}}
}

// hartungKnapp weighs builds by the inverse of their variance (between builds by DerSimonian and Laird, within builds
// pooled), with the interval of Hartung and Knapp.
func hartungKnapp(builds []stats.Build, _ *rand.Rand) (low, high float64) {
	m := means(builds, location{"mean", stats.Mean})
	var squares, freedom float64
	for i, b := range builds {
		for _, d := range b.Deltas {
			squares += (d - m[i]) * (d - m[i])
		}
		freedom += float64(len(b.Deltas) - 1)
	}
	weighted := func(between float64) (center, total, totalSquares, q float64) {
		sum := 0.0
		for i, b := range builds {
			w := 1 / (between + squares/freedom/float64(len(b.Deltas)))
			total, totalSquares, sum = total+w, totalSquares+w*w, sum+w*m[i]
		}
		center = sum / total
		for i, b := range builds {
			w := 1 / (between + squares/freedom/float64(len(b.Deltas)))
			q += w * (m[i] - center) * (m[i] - center)
		}
		return center, total, totalSquares, q
	}
	n := float64(len(m))
	_, total, totalSquares, q := weighted(0)
	center, total, _, q := weighted(max(0, (q-(n-1))/(total-totalSquares/total)))
	half := tQuantile(n-1) * math.Sqrt(q/(n-1)/total)
	return center - half, center + half
}

const resamples = 999

// bootstrap resamples builds, with the percentile interval or the bias-corrected and accelerated one (Efron 1987).
// Resampling rounds within the drawn builds too would only add variance that the build means already hold.
func bootstrap(l location, bca bool) func([]stats.Build, *rand.Rand) (float64, float64) {
	normal := distuv.UnitNormal
	return func(builds []stats.Build, random *rand.Rand) (low, high float64) {
		m := means(builds, l)
		center, drawn, below := stats.Mean(m), make([]float64, resamples), 0.0
		for i := range drawn {
			for range m {
				drawn[i] += m[random.IntN(len(m))]
			}
			drawn[i] /= float64(len(m))
			if drawn[i] < center {
				below++
			}
		}
		slices.Sort(drawn)
		at := func(p float64) float64 { return drawn[int(math.Round(p*(resamples-1)))] }
		if !bca {
			return at((1 - confidence) / 2), at((1 + confidence) / 2)
		}
		var cubes, squares float64
		for _, v := range m {
			d := center - v
			cubes, squares = cubes+d*d*d, squares+d*d
		}
		bias, acceleration := normal.Quantile(below/resamples), -cubes/(6*math.Pow(squares, 1.5))
		adjust := func(p float64) float64 {
			z := bias + normal.Quantile(p)
			return normal.CDF(bias + z/(1-acceleration*z))
		}
		return at(adjust((1 - confidence) / 2)), at(adjust((1 + confidence) / 2))
	}
}

// pooled takes every round for independent: what a tool does that knows no builds.
func pooled(builds []stats.Build, _ *rand.Rand) (low, high float64) {
	var all []float64
	for _, b := range builds {
		all = append(all, b.Deltas...)
	}
	half := tQuantile(float64(len(all)-1)) * math.Sqrt(variance(all)/float64(len(all)))
	return stats.Mean(all) - half, stats.Mean(all) + half
}

// twoSided is the p value of a t statistic.
func twoSided(t, freedom float64) float64 {
	return 2 * distuv.StudentsT{Sigma: 1, Nu: freedom}.Survival(math.Abs(t))
}
