package stats

import "math"

// Prediction is what the figures of several runs say of another one.
type Prediction struct {
	// Center is the mean over runs, Low and High its confidence interval: where the mean of many such runs lies.
	Center, Low, High float64
	// NextLow and NextHigh are the prediction interval: where the figure of one more run will lie.
	NextLow, NextHigh float64
	Runs              int
}

// PredictRuns is how many runs a prediction takes. Of two the interval is Student's t with one degree of freedom, 16 times as wide as
// the two are apart.
const PredictRuns = 3

// Predict predicts another run from the figures of at least PredictRuns, one for each, made on days or boots like those that are
// meant. Whatever differs between runs is in it: what a boot or a day keeps, and the noise within each run. Both intervals are
// Student's t with the variance between runs; the one for another run is wider by the root of 1+Runs.
func Predict(figures []float64, o Options) (Prediction, bool) {
	o, _ = o.filled()
	x := finite(figures)
	n := float64(len(x))
	p := Prediction{Center: Mean(x), Runs: len(x)}
	if len(x) < PredictRuns {
		return p, false
	}
	half := tQuantile(1-(1-o.Confidence)/2, n-1) * math.Sqrt(sampleVariance(x)/n)
	p.Low, p.High = p.Center-half, p.Center+half
	p.NextLow, p.NextHigh = p.Center-half*math.Sqrt(n+1), p.Center+half*math.Sqrt(n+1)
	return p, true
}
