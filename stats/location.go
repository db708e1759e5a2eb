package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"netdelta/stats/order"
)

// Mean is the arithmetic mean, NaN of nothing.
func Mean(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// sampleVariance is the sample variance (divisor n-1), NaN of fewer than two values.
func sampleVariance(x []float64) float64 {
	if len(x) < 2 {
		return math.NaN()
	}
	mean, sum := Mean(x), 0.0
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return sum / float64(len(x)-1)
}

// Quantile is order.Quantile.
func Quantile(x []float64, q float64) float64 { return order.Quantile(x, q) }

// Median is the 0.5-quantile.
func Median(x []float64) float64 { return order.Median(x) }

// MAD is the median absolute deviation from the median, scaled by 1.4826 so that it estimates the standard
// deviation of normal data. It ignores up to half of the values being wild. It is NaN of nothing.
func MAD(x []float64) float64 {
	center := Median(x)
	away := make([]float64, len(x))
	for i, v := range x {
		away[i] = math.Abs(v - center)
	}
	return 1.4826 * Median(away)
}

// TrimmedMean is the mean after the share trim, 0 <= trim < 0.5, was cut from each end. It is NaN of nothing and of
// values that hold a NaN.
func TrimmedMean(x []float64, trim float64) float64 {
	if len(x) == 0 || !(trim >= 0 && trim < 0.5) || slices.ContainsFunc(x, math.IsNaN) {
		return math.NaN()
	}
	return trimmedMean(slices.Clone(x), trim)
}

// trimmedMean is TrimmedMean of values without a NaN, which it sorts.
func trimmedMean(x []float64, trim float64) float64 {
	order.Sort(x)
	cut := int(trim * float64(len(x)))
	return Mean(x[cut : len(x)-cut])
}

// HodgesLehmann is the median of the means of all pairs of values, each with itself included: nearly as precise as
// the mean of normal data, and unmoved by up to 29% wild values. It takes n*(n+1)/2 steps. It is NaN of nothing.
func HodgesLehmann(x []float64) float64 {
	pairs := make([]float64, 0, len(x)*(len(x)+1)/2)
	for i, a := range x {
		for _, b := range x[i:] {
			pairs = append(pairs, (a+b)/2)
		}
	}
	return Median(pairs)
}

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

// MedianInterval is an interval of the median of what x was drawn from, whatever its distribution: between two order statistics. The
// values must be finite. ok is false where there are too few of them: 6 for 95%.
func MedianInterval(x []float64, confidence float64) (low, high float64, ok bool) {
	n := len(x)
	// The rank of the median among n values is binomial: the interval leaves out as many at either end as it may.
	b := distuv.Binomial{N: float64(n), P: 0.5}
	cut := -1
	for k := 0; 2*k < n && b.CDF(float64(k)) <= (1-confidence)/2; k++ {
		cut = k
	}
	if cut < 0 {
		return 0, 0, false
	}
	sorted := slices.Sorted(slices.Values(x))
	return sorted[cut], sorted[n-1-cut], true
}

// Variance splits the variance of one round's delta by origin: squares of the natural log scale, each zero or more.
// It tells where more measuring pays: builds, rounds, or longer bursts.
type Variance struct {
	Builds float64 // between builds: what is left when every build is measured for ever
	Rounds float64 // between rounds of one build, beyond what the bursts' own scatter explains
	Bursts float64 // within bursts, by Build.Within: what longer bursts would remove; 0 when that was not measured
}

// Total is the variance of the delta of one round of a random build.
func (v Variance) Total() float64 { return v.Builds + v.Rounds + v.Bursts }

// split estimates the components by moments: what rounds scatter about their build's location, and what builds
// scatter beyond that. Rounds that resemble their neighbours say less than their number, so the share of a build's
// variance that rounds explain is scaled by their autocorrelation time.
//
// The scatter of rounds is winsorized where the location is trimmed (Tukey and McLaughlin 1963): the variance as the
// estimate feels it. With the plain one, a few stalled rounds would make every plan hopeless.
func split(builds []Build, locations []float64) Variance {
	if len(builds) == 0 {
		return Variance{}
	}
	series := make([][]float64, len(builds))
	var squares, freedom, halves, measured, explained float64
	var room []float64
	for i, b := range builds {
		share := 0.0
		if b.paired() {
			share = trim
		}
		series[i] = winsorized(b.Deltas, share, &room)
		squares += squareSum(series[i])
		freedom += float64(len(b.Deltas) - 1)
		halves += squareSum(winsorized(b.Within, share, &room))
		measured += float64(max(0, len(b.Within)-1))
	}
	v, between := Variance{}, 0.0
	if len(locations) > 1 {
		between = sampleVariance(locations)
	}
	if freedom > 0 {
		v.Rounds = squares / freedom
		stretch := correlationTime(series)
		for _, b := range builds {
			explained += v.Rounds * min(stretch/float64(len(b.Deltas)), 1) / float64(len(builds))
		}
	}
	v.Builds = max(0, between-explained)
	if measured > 0 {
		// The halves of a burst each vary twice as much as the whole, and their difference four times.
		v.Bursts = min(halves/measured/4, v.Rounds)
		v.Rounds -= v.Bursts
	}
	return v
}

// winsorized is the series about its mean, with the share of its values at either end moved in to the nearest that
// is kept, scaled so that its sample variance over n is the variance of the trimmed mean. It sorts in room.
func winsorized(x []float64, share float64, room *[]float64) []float64 {
	if len(x) == 0 {
		return nil
	}
	*room = append((*room)[:0], x...)
	sorted := *room
	order.Sort(sorted)
	cut := int(share * float64(len(x)))
	low, high := sorted[cut], sorted[len(x)-1-cut]
	kept := 1 - 2*float64(cut)/float64(len(x))
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = min(max(v, low), high)
	}
	mean := Mean(out)
	for i := range out {
		out[i] = (out[i] - mean) / kept
	}
	return out
}

func squareSum(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return sum
}

// correlationTime is how many rounds say as much as one independent round: 1 + 2*(r1 + r2 + ...), the sum ending at
// the first autocorrelation below 0.05 (and at a quarter of the rounds), pooled over builds. Each series is centered.
func correlationTime(series [][]float64) float64 {
	time := 1.0
	for lag := 1; ; lag++ {
		var own, cross float64
		for _, x := range series {
			if lag > len(x)/4 {
				continue
			}
			own += squareSum(x)
			for r := lag; r < len(x); r++ {
				cross += x[r] * x[r-lag]
			}
		}
		if own == 0 || cross/own < 0.05 {
			return time
		}
		time += 2 * cross / own
	}
}

// Correlation is how two figures go together over a number of objects.
type Correlation struct {
	N int
	// Pearson is the linear correlation, from -1 to 1; NaN with fewer than three objects, or where a figure is the same for all.
	Pearson float64
	// Low and High bound it by Fisher's z ("On the probable error of a coefficient of correlation", 1921): atanh(r) has about
	// a normal distribution with a variance of 1/(N-3). They are NaN with fewer than four objects. A bootstrap over so few objects
	// as there are networks in a run promises 95% and holds 70 to 90%, as a simulation shows; this holds what it says.
	Low, High float64
	// Spearman is the correlation of the ranks. P is how often objects in random order go together as much, in either
	// direction: exact up to eight objects, else from random draws.
	Spearman, P float64
}

// Limits of the permutations.
const (
	exactMost   = 8
	chanceDraws = 20_000
)

// Correlate correlates two figures of the same objects: x[i] and y[i] are the figures of object i. The interval has the given
// confidence (0.95). It takes objects that are independent of one another, and figures that are known well against what they
// differ by from object to object: noise in them makes a correlation look smaller.
func Correlate(x, y []float64, confidence float64, seed uint64) Correlation {
	c := Correlation{N: len(x), Pearson: pearson(x, y), Low: math.NaN(), High: math.NaN(), Spearman: Spearman(x, y), P: math.NaN()}
	if math.IsNaN(c.Pearson) || math.IsNaN(c.Spearman) {
		return c
	}
	if c.N > 3 {
		c.Low, c.High = fisher(c.Pearson, c.N, confidence)
	}
	c.P = c.chance(x, y, seed)
	return c
}

// fisher is the interval about a linear correlation r of n objects, more than three.
func fisher(r float64, n int, confidence float64) (low, high float64) {
	const whole = 1 - 1e-12 // whose z is still a number
	z := math.Atanh(min(max(r, -whole), whole))
	half := math.Sqrt2 * math.Erfinv(confidence) / math.Sqrt(float64(n-3))
	return min(math.Tanh(z-half), r), max(math.Tanh(z+half), r)
}

// pearson is the linear correlation of two series.
func pearson(x, y []float64) float64 {
	if len(x) != len(y) || len(x) < 3 {
		return math.NaN()
	}
	mx, my := Mean(x), Mean(y)
	var both, first, second float64
	for i := range x {
		both += (x[i] - mx) * (y[i] - my)
		first += (x[i] - mx) * (x[i] - mx)
		second += (y[i] - my) * (y[i] - my)
	}
	if first <= 0 || second <= 0 {
		return math.NaN()
	}
	return both / math.Sqrt(first*second)
}

// chance is the share of orders of y whose rank correlation with x is at least as far from none.
func (c Correlation) chance(x, y []float64, seed uint64) float64 {
	a, b := Ranks(x), Ranks(y)
	if len(a) > exactMost {
		return c.draws(a, b, seed)
	}
	hits, all := 0, 0
	orders(slices.Clone(b), len(b), func(order []float64) {
		all++
		if c.asFar(a, order) {
			hits++
		}
	})
	return float64(hits) / float64(all)
}

// draws is chance from random orders of the ranks b; the order that was measured is one of them.
func (c Correlation) draws(a, b []float64, seed uint64) float64 {
	rng := rand.New(rand.NewPCG(seed, 0x636f72))
	order, hits := slices.Clone(b), 1
	for range chanceDraws {
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if c.asFar(a, order) {
			hits++
		}
	}
	return float64(hits) / (chanceDraws + 1)
}

// asFar says whether ranks go together at least as much as those that were measured.
func (c Correlation) asFar(a, b []float64) bool {
	const rounding = 1e-9
	return math.Abs(pearson(a, b)) >= math.Abs(c.Spearman)-rounding
}

// orders visits every order of the first k of a series (Heap, "Permutations by interchanges", 1963).
func orders(of []float64, k int, visit func([]float64)) {
	if k <= 1 {
		visit(of)
		return
	}
	for i := range k {
		orders(of, k-1, visit)
		if i < k-1 {
			j := 0
			if k%2 == 0 {
				j = i
			}
			of[j], of[k-1] = of[k-1], of[j]
		}
	}
}

// Spearman is the rank correlation of two series of equal length: Pearson's correlation of their ranks, where equal values
// share the mean of their ranks (Spearman, "The proof and measurement of association between two things", 1904). It is 1 where
// both order their members alike, -1 where one does it the other way round. With fewer than three pairs, or where all values
// of a series are equal, there is none and it is NaN.
func Spearman(x, y []float64) float64 {
	return pearson(Ranks(x), Ranks(y))
}

// Ranks are the places of values in ascending order, from 1; equal values share the mean of their ranks.
func Ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(x[i], x[j]) })
	ranks := make([]float64, len(x))
	for from := 0; from < len(order); {
		to := from + 1 // what is not a number equals not even itself
		for to < len(order) && x[order[to]] == x[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = float64(from+1+to) / 2
		}
		from = to
	}
	return ranks
}
