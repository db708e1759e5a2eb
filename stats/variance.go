package stats

import "math"

// Variance splits the variance of one round's delta by origin: squares of the natural log scale, each zero or more.
// It tells where more measuring pays: builds, rounds, or longer bursts.
type Variance struct {
	Builds float64 // between builds: what is left when every build is measured for ever
	Rounds float64 // between rounds of one build, beyond what the bursts' own scatter explains
	Bursts float64 // within bursts, by Build.Within: what longer bursts would remove; 0 when that was not measured
}

// Total is the variance of the delta of one round of a random build.
func (v Variance) Total() float64 { return v.Builds + v.Rounds + v.Bursts }

// OfBuildMean is the variance of the mean of a build of so many rounds, at least 1.
func (v Variance) OfBuildMean(rounds int) float64 {
	return v.Builds + (v.Rounds+v.Bursts)/float64(max(rounds, 1))
}

// split estimates the components by moments: what rounds scatter about their build's mean, and what build means
// scatter beyond that. Rounds that resemble their neighbours say less than their number, so the share of a build
// mean's variance that rounds explain is scaled by their autocorrelation time.
func split(builds []Build, means []float64) Variance {
	var squares, freedom, within, halves, explained float64
	for i, b := range builds {
		for _, d := range b.Deltas {
			squares += (d - means[i]) * (d - means[i])
		}
		freedom += float64(len(b.Deltas) - 1)
		for _, w := range b.Within {
			within += w * w
		}
		halves += float64(len(b.Within))
	}
	if freedom == 0 {
		if len(means) < 2 {
			return Variance{}
		}
		return Variance{Builds: sampleVariance(means)}
	}
	round, stretch := squares/freedom, correlationTime(builds, means)
	for _, b := range builds {
		explained += round * min(stretch/float64(len(b.Deltas)), 1) / float64(len(builds))
	}
	v := Variance{Rounds: round}
	if len(means) > 1 {
		v.Builds = max(0, sampleVariance(means)-explained)
	}
	if halves > 0 {
		// The halves of a burst each vary twice as much as the whole, and their difference four times.
		v.Bursts = min(within/halves/4, round)
		v.Rounds = round - v.Bursts
	}
	return v
}

// correlationTime is how many rounds say as much as one independent round: 1 + 2*(r1 + r2 + ...), the sum ending at
// the first autocorrelation below 0.05 (and at a quarter of the rounds), pooled over builds.
func correlationTime(builds []Build, means []float64) float64 {
	time := 1.0
	for lag := 1; ; lag++ {
		var own, cross float64
		for i, b := range builds {
			if lag > len(b.Deltas)/4 {
				continue
			}
			for r, d := range b.Deltas {
				own += (d - means[i]) * (d - means[i])
				if r >= lag {
					cross += (d - means[i]) * (b.Deltas[r-lag] - means[i])
				}
			}
		}
		if own == 0 || cross/own < 0.05 || math.IsNaN(cross/own) {
			return time
		}
		time += 2 * cross / own
	}
}
