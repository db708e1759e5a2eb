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

	"netdelta/internal/property"
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
	property.Check(t, func(t *rapid.T) {
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

// TestPSaysWhatTheIntervalSays: p is below 5% exactly where the 95% interval excludes the value.
func TestPSaysWhatTheIntervalSays(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		e := stats.Compare(drawBuilds(t), stats.Options{MinBuilds: 2})
		at := rapid.Float64Range(-0.1, 0.1).Draw(t, "at")
		if e.High == e.Low {
			return
		}
		if p, outside := e.PAgainst(at), at < e.Low || at > e.High; (p < 0.05) != outside && math.Abs(p-0.05) > 1e-9 {
			t.Fatalf("[%v, %v] and p %v against %v", e.Low, e.High, p, at)
		}
	})
	e := stats.Estimate{Locations: []float64{0.01, math.NaN(), 0.03, 0.02, 0.05}}
	mean, sd := stat.MeanStdDev([]float64{0.01, 0.03, 0.02, 0.05}, nil)
	for _, at := range []float64{0, 0.05} {
		want := 2 * distuv.StudentsT{Sigma: 1, Nu: 3}.Survival(math.Abs(mean-at)/stat.StdErr(sd, 4))
		if got := e.PAgainst(at); !cmp.Equal(got, want, near) {
			t.Errorf("p against %v is %v, want %v", at, got, want)
		}
	}
	for want, locations := range map[float64][]float64{1: {0.3}, 0.25: {0.3, 0.3, 0.3}, 1.0 / 64: slices.Repeat([]float64{-0.1}, 7)} {
		if got := (stats.Estimate{Locations: locations}).PAgainst(0); got != want {
			t.Errorf("p of %v is %v, want %v", locations, got, want)
		}
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
	property.Check(t, func(t *rapid.T) {
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
	builds := slices.Repeat([]stats.Build{{Deltas: []float64{0.5, 0.51}}}, 2)
	e := stats.Compare(builds, stats.Options{})
	if e.HasInterval || !math.IsNaN(e.Low) || e.Need != 3 || e.Builds != 2 || !cmp.Equal(e.Center, 0.505, near) {
		t.Errorf("two builds: %+v", e)
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
		if e.HasInterval || e.P != 1 || !math.IsNaN(e.Center) || stats.Judge(e, 0, 0, stats.LowerBetter, stats.Options{}) != stats.Unresolved || stats.Resolved(e, 1, 0, stats.Options{}) {
			t.Errorf("nothing measured gave %+v", e)
		}
		if !math.IsInf(stats.NoiseFloor(e), 1) {
			t.Error("a null check without an interval gave a noise floor")
		}
	}
	e := stats.Compare(good(), stats.Options{Confidence: 95, Margin: -1, MinBuilds: 1})
	if len(e.Warnings) != 3 || e.Low != clean.Low || !strings.Contains(fmt.Sprint(e.Warnings), "confidence 95 ") || !strings.Contains(fmt.Sprint(e.Warnings), "0.95") {
		t.Errorf("options out of range: %v", e.Warnings)
	}
}

// VisitsHalfWidth is what intervals of visits without noise in common come out as.
func TestVisitsHalfWidth(t *testing.T) {
	for visits, want := range map[int]float64{2: 11.00, 3: 3.04, 6: 1.29} {
		if got := stats.VisitsHalfWidth(visits, stats.Options{}); math.Abs(got-want) > 0.01 {
			t.Errorf("%d visits: %.2f, want %.2f", visits, got, want)
		}
	}
}
