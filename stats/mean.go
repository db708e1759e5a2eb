package stats

import "math"

// MeanInterval is the mean of independent observations with Student's interval of the given confidence (0.95). Without at
// least two observations the bounds are NaN.
func MeanInterval(x []float64, confidence float64) (mean, low, high float64) {
	mean = Mean(x)
	n := float64(len(x))
	if n < 2 {
		return mean, math.NaN(), math.NaN()
	}
	half := tQuantile(1-(1-confidence)/2, n-1) * math.Sqrt(sampleVariance(x)/n)
	return mean, mean - half, mean + half
}
