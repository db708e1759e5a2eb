package insight_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
)

// Runs each of which keeps something through all of its builds: another run is where it is predicted, and not in the intervals of the
// runs themselves.
func TestRepeat(t *testing.T) {
	judge := words.NewJudge(nil)
	random := rand.New(rand.NewPCG(8, 8))
	boot := func(seed uint64) insight.Measured {
		w := usual()
		w.seed, w.rounds, w.networks = seed, 10, []string{"bridge"}
		w.logs = map[string]float64{"bridge": math.Log(1.12) + 0.01*random.NormFloat64()}
		m := insight.Measured{Run: result.Run{Cells: w.cells(), Confidence: 0.95, Margin: 0.02}, Trials: insight.Summarize(result.List(w.trials(t)))}
		judge.ConcludeFrom(&m.Run, m.Trials)
		return m
	}
	const worlds = 200
	predicted, within := 0, 0
	for i := range uint64(worlds) {
		runs := []insight.Measured{boot(10*i + 1), boot(10*i + 2), boot(10*i + 3), boot(10*i + 4)}
		next := boot(10*i + 5).Run.Deltas[0]
		repeated := judge.Repeat(runs, insight.Comparing{})
		if len(repeated) != 1 || !repeated[0].Enough || len(repeated[0].Figures) != 4 {
			t.Fatalf("%+v", repeated)
		}
		if p := repeated[0].Prediction; p.NextLow <= next.Ratio && next.Ratio <= p.NextHigh {
			predicted++
		}
		if d := runs[3].Run.Deltas[0]; *d.RatioLow <= next.Ratio && next.Ratio <= *d.RatioHigh {
			within++
		}
	}
	t.Logf("another run is predicted in %d of %d, and inside the interval of the one before in %d", predicted, worlds, within)
	if predicted < 180 || predicted > 199 || within > 120 { // 95% are 190, and three standard deviations 9
		t.Errorf("another run is predicted in %d of %d, and inside the interval of the one before in %d", predicted, worlds, within)
	}
}

// Runs of one boot are told from runs of several, and from runs that do not say.
func TestBoots(t *testing.T) {
	for _, c := range []struct {
		boots []string
		want  int
		says  string
	}{
		{[]string{"a", "a", "a"}, 1, "All were made in one boot"}, {[]string{"a", "b", "a"}, 2, "made in 2 boots"},
		{[]string{"a", "b", "c"}, 3, "in a boot of its own"}, {[]string{"a", "", "a"}, 0, "is not known"},
	} {
		var runs []insight.Measured
		for _, b := range c.boots {
			runs = append(runs, insight.Measured{Run: result.Run{Environment: result.Environment{Boot: b}}})
		}
		boots := insight.Boots(runs)
		if says := words.RepeatedSays(make([]insight.Repeated, 1), len(runs), boots); boots != c.want || !strings.Contains(says, c.says) {
			t.Errorf("%q: %d boots, want %d: %s", c.boots, boots, c.want, says)
		}
	}
}
