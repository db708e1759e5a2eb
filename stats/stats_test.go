package stats_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"netdelta/stats"
)

var near = cmpopts.EquateApprox(1e-9, 1e-12)

func TestLocationsAgreeWithGonumAndByHand(t *testing.T) {
	x := []float64{3, 1, 4, 1, 5, 9, 2, 6, 5, 3}
	sorted := slices.Sorted(slices.Values(x))
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"mean", stats.Mean(x), stat.Mean(x, nil)},
		{"median", stats.Median(x), 3.5},
		{"median of odd", stats.Median(x[:5]), 3},
		{"least", stats.Quantile(x, 0), 1}, {"most", stats.Quantile(x, 1), 9},
		{"quartile", stats.Quantile(x, 0.25), 2.25},
		{"trimmed", stats.TrimmedMean(x, 0.2), stat.Mean(sorted[2:8], nil)},
		{"mad", stats.MAD(x), 1.4826 * 1.5},
		{"hodges-lehmann", stats.HodgesLehmann([]float64{1, 2, 6}), 2.75},
	} {
		if !cmp.Equal(c.got, c.want, near) {
			t.Errorf("%s is %v, want %v", c.name, c.got, c.want)
		}
	}
	for name, got := range map[string]float64{
		"mean of nothing": stats.Mean(nil), "median of nothing": stats.Median(nil), "quantile 2": stats.Quantile(x, 2), "quantile NaN": stats.Quantile(x, math.NaN()),
		"trim half": stats.TrimmedMean(x, 0.5), "median of NaN": stats.Median([]float64{1, math.NaN()}), "mad of nothing": stats.MAD(nil), "hodges-lehmann of nothing": stats.HodgesLehmann(nil),
	} {
		if !math.IsNaN(got) {
			t.Errorf("%s is %v, want NaN", name, got)
		}
	}
}

// TestSignFlipCountsEveryAssignment holds the count that meets in the middle against a plain one.
func TestSignFlipCountsEveryAssignment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(-1, 1), rapid.SampledFrom([]float64{0, 0.5, -0.5, 1})), 1, 11).Draw(t, "x")
		observed, total := 0.0, 0.0
		for _, v := range x {
			observed, total = observed+v, total+math.Abs(v)
		}
		hits := 0
		for signs := range 1 << len(x) {
			sum := 0.0
			for i, v := range x {
				if signs>>i&1 != 0 {
					v = -v
				}
				sum += v
			}
			if math.Abs(sum) >= math.Abs(observed)-1e-12*total {
				hits++
			}
		}
		want := float64(hits) / float64(int(1)<<len(x))
		if got := stats.SignFlip(x, 1); math.Abs(got-want) > 1e-12 {
			t.Fatalf("p is %v, a plain count gives %v", got, want)
		}
	})
}

func TestSignFlipFloorAndDraws(t *testing.T) {
	for n := 1; n <= 32; n++ {
		if got, want := stats.SignFlip(slices.Repeat([]float64{-0.2}, n), 1), 2/math.Exp2(float64(n)); !cmp.Equal(got, want, near) {
			t.Errorf("p of %d builds that agree is %v, want %v", n, got, want)
		}
	}
	random, x := rand.New(rand.NewPCG(5, 5)), make([]float64, 60)
	for i := range x {
		x[i] = 0.25 + random.NormFloat64()
	}
	drawn := stats.SignFlip(x, 7)
	// With sixty normal values the distribution of the sum under flips is close to normal.
	var squares float64
	for _, v := range x {
		squares += v * v
	}
	want := 2 * distuv.UnitNormal.Survival(math.Abs(stat.Mean(x, nil)*60)/math.Sqrt(squares))
	if math.Abs(drawn-want) > 0.15*want {
		t.Errorf("drawn p is %v, the normal approximation %v", drawn, want)
	}
	if drawn != stats.SignFlip(x, 7) {
		t.Error("the same seed gave another p")
	}
	if p := stats.SignFlip(slices.Repeat([]float64{1}, 60), 1); !(p > 0 && p < 1e-4) {
		t.Errorf("p of 60 builds that agree is %v: it must be small and never 0", p)
	}
	for _, empty := range [][]float64{nil, {0, 0}, {math.NaN()}, {math.Inf(1)}} {
		if p := stats.SignFlip(empty, 1); p != 1 {
			t.Errorf("p of %v is %v, want 1", empty, p)
		}
	}
}

func TestNeedForIsWhereSignificanceBegins(t *testing.T) {
	for _, confidence := range []float64{0.9, 0.95, 0.99} {
		for _, family := range []int{1, 2, 5, 14, 100, 1000} {
			n := stats.NeedFor(family, confidence)
			reached := func(n int) bool {
				p := slices.Repeat([]float64{2 / math.Exp2(float64(n))}, family)
				return stats.Holm(p)[0] <= 1-confidence+1e-12
			}
			if !reached(n) || reached(n-1) {
				t.Errorf("a family of %d at %g needs %d builds, but significance begins elsewhere", family, confidence, n)
			}
		}
	}
	if a, b := stats.NeedFor(0, 7), stats.NeedFor(1, 0.95); a != b {
		t.Errorf("nonsense needs %d builds, want the default of %d", a, b)
	}
}

func TestCorrectionsAgainstR(t *testing.T) {
	// R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm").
	p := []float64{0.01, 0.04, 0.03, 0.005}
	if diff := cmp.Diff([]float64{0.03, 0.06, 0.06, 0.02}, stats.Holm(p), near); diff != "" {
		t.Error(diff)
	}
	got := stats.Holm([]float64{math.NaN(), 0.01, -1})
	if !math.IsNaN(got[0]) || !math.IsNaN(got[2]) || !cmp.Equal(got[1], 0.03, near) {
		t.Errorf("nonsense among the p values gave %v", got)
	}
}

func TestCorrectionsAreMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 30).Draw(t, "p")
		holm := stats.Holm(p)
		for i := range p {
			bonferroni := min(1, p[i]*float64(len(p)))
			if holm[i] < p[i] || holm[i] > bonferroni {
				t.Fatalf("p %v: Holm %v", p[i], holm[i])
			}
			for j := range p {
				if p[i] <= p[j] && holm[i] > holm[j] {
					t.Fatalf("corrections turn the order of %v and %v", p[i], p[j])
				}
			}
		}
	})
}

func TestStepDownIsNeverBelowTheRawP(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		builds := rapid.IntRange(3, 9).Draw(t, "builds")
		family := rapid.SliceOfN(rapid.SliceOfN(rapid.Float64Range(-1, 1), builds, builds), 1, 6).Draw(t, "family")
		got := stats.StepDown(family, 1)
		for i, x := range family {
			raw := stats.SignFlip(x, 1)
			if got[i] < raw-1e-9 || got[i] > 1 {
				t.Fatalf("step-down p %v of a raw p %v in a family of %d", got[i], raw, len(family))
			}
		}
		if alone := stats.StepDown(family[:1], 1)[0]; math.Abs(alone-stats.SignFlip(family[0], 1)) > 1e-9 {
			t.Fatalf("alone the step-down p is %v, the raw one %v", alone, stats.SignFlip(family[0], 1))
		}
	})
}

func TestStepDownOfAnyFamilyIsDecidedBySixBuilds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var family [][]float64
	for i := range 40 {
		family = append(family, nil)
		for range 6 {
			family[i] = append(family[i], 0.2*float64(i%2)+0.001*random.NormFloat64())
		}
	}
	family = append(family, nil, []float64{0, 0, 0}, []float64{math.NaN(), 0.3})
	got := stats.StepDown(family, 1)
	for i := range 40 {
		if i%2 == 1 && !cmp.Equal(got[i], 2.0/64, near) {
			t.Errorf("a shift of 20%% in six builds has p %v in a family of %d, want 1/32", got[i], len(family))
		}
	}
	if !math.IsNaN(got[40]) || got[41] != 1 || got[42] != 1 {
		t.Errorf("nothing, zeros and a single build gave %v", got[40:])
	}
	long := make([][]float64, 3)
	for b := range 24 {
		long[0] = append(long[0], 0.1+0.01*random.NormFloat64())
		long[1] = append(long[1], 0.01*random.NormFloat64())
		if b%2 == 0 {
			long[2] = append(long[2], 0.1+0.01*random.NormFloat64())
		} else {
			long[2] = append(long[2], math.NaN())
		}
	}
	if got := stats.StepDown(long, 3); got[0] > 0.001 || got[1] < 0.05 || got[2] > 0.01 {
		t.Errorf("24 builds, some missing: %v", got)
	}
}

// drawBuilds draws paired builds, of unequal numbers of rounds.
func drawBuilds(t *rapid.T) []stats.Build {
	value := rapid.Float64Range(-0.1, 0.1)
	builds := make([]stats.Build, rapid.IntRange(2, 9).Draw(t, "builds"))
	for b := range builds {
		rounds := rapid.IntRange(1, 12).Draw(t, "rounds")
		draw := func(name string) []float64 { return rapid.SliceOfN(value, rounds, rounds).Draw(t, name) }
		builds[b] = stats.Pair(draw("cell"), draw("baseline"), draw("twin"))
	}
	return builds
}

// transformed multiplies by scale and shifts the deltas by shift.
func transformed(builds []stats.Build, scale, shift float64) []stats.Build {
	out := make([]stats.Build, len(builds))
	for i, b := range builds {
		for r := range b.Deltas {
			out[i].Deltas = append(out[i].Deltas, scale*b.Deltas[r]+shift)
			out[i].HalfGaps = append(out[i].HalfGaps, scale*b.HalfGaps[r])
		}
	}
	return out
}

func TestCompareIsInvariant(t *testing.T) {
	options := stats.Options{MinBuilds: 2}
	rapid.Check(t, func(t *rapid.T) {
		builds := drawBuilds(t)
		e := stats.Compare(builds, options)
		check := func(what string, got stats.Estimate, center, low, high, p float64) {
			if !cmp.Equal([]float64{got.Center, got.Low, got.High, got.P}, []float64{center, low, high, p}, near) {
				t.Fatalf("%s: %v [%v, %v] p %v; want %v [%v, %v] p %v", what, got.Center, got.Low, got.High, got.P, center, low, high, p)
			}
		}
		check("turned", stats.Compare(transformed(builds, -1, 0), options), -e.Center, -e.High, -e.Low, e.P)
		check("scaled", stats.Compare(transformed(builds, 3, 0), options), 3*e.Center, 3*e.Low, 3*e.High, e.P)
		shifted := stats.Compare(transformed(builds, 1, 0.5), options)
		check("shifted", shifted, e.Center+0.5, e.Low+0.5, e.High+0.5, shifted.P)
		mixed := slices.Clone(builds)
		rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		check("in another order", stats.Compare(mixed, options), e.Center, e.Low, e.High, e.P)
		if wider := stats.Compare(builds, stats.Options{MinBuilds: 2, Sequential: true}); wider.HalfWidth() < e.HalfWidth() {
			t.Fatal("looking made the interval narrower")
		}
	})
}

// TestCompareIsStudentsInterval holds the interval against gonum: one round in each build makes it the plain t
// interval of the deltas.
func TestCompareIsStudentsInterval(t *testing.T) {
	x := []float64{0.010, 0.013, 0.008, 0.011, 0.014, 0.009, 0.012}
	var builds []stats.Build
	for _, v := range x {
		builds = append(builds, stats.Build{Deltas: []float64{v}})
	}
	e := stats.Compare(builds, stats.Options{Confidence: 0.9})
	mean, sd := stat.MeanStdDev(x, nil)
	half := distuv.StudentsT{Sigma: 1, Nu: 6}.Quantile(0.95) * stat.StdErr(sd, 7)
	if !cmp.Equal([]float64{e.Center, e.Low, e.High}, []float64{mean, mean - half, mean + half}, near) {
		t.Errorf("%v [%v, %v], want %v +- %v", e.Center, e.Low, e.High, mean, half)
	}
	if e.Builds != 7 || e.Rounds != 7 || len(e.Locations) != 7 || e.Need != stats.DefaultMinBuilds {
		t.Errorf("counts: %+v", e)
	}
}

func TestTooFewBuildsGiveNoInterval(t *testing.T) {
	builds := slices.Repeat([]stats.Build{{Deltas: []float64{0.5, 0.51}}}, 5)
	e := stats.Compare(builds, stats.Options{})
	if e.HasInterval || !math.IsNaN(e.Low) || e.Need != 6 || e.Builds != 5 || !cmp.Equal(e.Center, 0.505, near) {
		t.Errorf("five builds: %+v", e)
	}
	if v := stats.Judge(e, 0, 0, stats.LowerBetter, stats.Options{}); v != stats.Unresolved {
		t.Errorf("without an interval the verdict is %s", v)
	}
}

func TestNonsenseBecomesWarnings(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	good := func() []stats.Build {
		random, builds := rand.New(rand.NewPCG(3, 4)), make([]stats.Build, 8)
		for b := range builds {
			for range 10 {
				builds[b].Deltas = append(builds[b].Deltas, 0.05+0.01*random.NormFloat64())
			}
		}
		return builds
	}
	clean := stats.Compare(good(), stats.Options{})
	for _, c := range []struct {
		name   string
		spoil  func([]stats.Build) []stats.Build
		want   error
		builds int
	}{
		{"nothing", func(b []stats.Build) []stats.Build { return b }, nil, 8},
		{"a NaN round", func(b []stats.Build) []stats.Build { b[0].Deltas = append(b[0].Deltas, nan); return b }, stats.ErrNotFinite, 8},
		{"the log of zero", func(b []stats.Build) []stats.Build { b[0].Deltas = append(b[0].Deltas, math.Log(0)); return b }, stats.ErrNotFinite, 8},
		{"an absurd round", func(b []stats.Build) []stats.Build { b[3].Deltas = append(b[3].Deltas, 1e300); return b }, stats.ErrNotFinite, 8},
		{"an empty build", func(b []stats.Build) []stats.Build { return append(b, stats.Build{}) }, stats.ErrNoRounds, 8},
		{"a build of Inf", func(b []stats.Build) []stats.Build { return append(b, stats.Build{Deltas: []float64{inf, -inf}}) }, stats.ErrNoRounds, 8},
		{"a NaN twin", func(b []stats.Build) []stats.Build {
			return append(b, stats.Build{Deltas: []float64{9}, HalfGaps: []float64{nan}})
		}, stats.ErrNoRounds, 8},
		{"NaN within", func(b []stats.Build) []stats.Build { b[0].Within = []float64{nan, 1}; return b }, nil, 8},
	} {
		e := stats.Compare(c.spoil(good()), stats.Options{})
		if c.want == nil && len(e.Warnings) != 0 || c.want != nil && !errors.Is(errors.Join(e.Warnings...), c.want) {
			t.Errorf("%s: warnings %v, want %v", c.name, e.Warnings, c.want)
		}
		if e.Builds != c.builds || !cmp.Equal(e.Low, clean.Low, near) || !cmp.Equal(e.High, clean.High, near) {
			t.Errorf("%s moved the estimate to [%v, %v] of %d builds", c.name, e.Low, e.High, e.Builds)
		}
	}
	for _, builds := range [][]stats.Build{nil, {}, slices.Repeat([]stats.Build{{}}, 9), slices.Repeat([]stats.Build{{Deltas: []float64{nan}}}, 9), slices.Repeat([]stats.Build{{Deltas: []float64{1e300}}}, 9)} {
		e := stats.Compare(builds, stats.Options{})
		if e.HasInterval || e.P != 1 || !math.IsNaN(e.Center) || stats.Judge(e, 0, 0, stats.LowerBetter, stats.Options{}) != stats.Unresolved || stats.Resolved(e, 1, stats.Options{}) {
			t.Errorf("nothing measured gave %+v", e)
		}
		if !math.IsInf(stats.NoiseFloor(e), 1) {
			t.Error("a null check without an interval gave a noise floor")
		}
	}
	e := stats.Compare(good(), stats.Options{Confidence: 95, Margin: -1, MinBuilds: 1})
	if len(e.Warnings) != 3 || e.Low != clean.Low || !strings.Contains(fmt.Sprint(e.Warnings), "confidence 95 is out of range: 0.95 is used") {
		t.Errorf("options out of range: %v", e.Warnings)
	}
}
