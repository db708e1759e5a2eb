package stats

import "math"

// mostBuilds bounds what BuildsFor answers.
const mostBuilds = 100_000

// BuildsFor plans a measurement: the least number of builds, each of roundsPerBuild rounds, for which the interval at
// the confidence is expected to be no wider than +-halfWidth (on the log scale, above 0). It is at least 2. When no
// number up to 100,000 will do, or the question makes no sense, it is 100,000. Zero confidence means 0.95.
//
// If rounds and not builds make up most of v.OfBuildMean(roundsPerBuild), longer builds are the cheaper way.
func BuildsFor(halfWidth float64, v Variance, roundsPerBuild int, confidence float64) int {
	o, _ := Options{Confidence: confidence}.filled()
	spread := v.OfBuildMean(roundsPerBuild)
	enough := func(builds int) bool {
		t := tQuantile(0.5+o.Confidence/2, float64(builds-1))
		return t*math.Sqrt(spread/float64(builds)) <= halfWidth
	}
	if !(halfWidth > 0) || !enough(mostBuilds) {
		return mostBuilds
	}
	low, high := 1, mostBuilds // enough(high) holds, low is too few
	for high-low > 1 {
		if middle := (low + high) / 2; enough(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}
