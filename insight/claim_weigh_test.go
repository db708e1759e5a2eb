package insight_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"netdelta/insight"
	"netdelta/result"
	"netdelta/stats"
)

// slowed multiplies the latencies of a cell's trials, of one build or, with -1, of all.
func slowed(trials []result.Trial, cell string, build int, by float64) {
	for i := range trials {
		if t := &trials[i]; t.Cell == cell && (build < 0 || t.Build == build) {
			for k := range t.Bursts.P50 {
				t.Bursts.P50[k] *= by
			}
		}
	}
}

// TestClaimsMindTheNullCheck holds that a direction smaller than what the baseline differs by from itself decides nothing,
// and that the baseline of a comparison is the mean of both its set-ups.
func TestClaimsMindTheNullCheck(t *testing.T) {
	both := []setting{
		{result.CrossNode, result.Params{Message: 300}, logs(1.01, 1, 1.12)},
		{result.CrossNode, result.Params{Message: 1024}, logs(1.06, 1, 1.30)},
	}
	run, trials := precise().in(t, both...)
	slowed(trials, "host-twin/0", -1, 1.03)
	slowed(trials, "host-twin/1", -1, 1.03)
	for statement, want := range map[string]string{
		"p50 of macvlan below bridge where message=300":                     insight.Undecided,
		"p50 of bridge below macvlan where message=300":                     insight.Undecided,
		"p50 of macvlan below vxlan where message=300":                      insight.Confirmed,
		"p50 of vxlan below macvlan where message=300":                      insight.Contradicted,
		"p50 of bridge changes between message=300 and message=1024":        insight.Undecided, // 5%, and the floors add up to 6%
		"p50 of vxlan changes between message=300 and message=1024":         insight.Confirmed,
		"p50 of macvlan within 0.5% of bridge where message=300":            insight.Undecided, // 1%, and the floor is 3%
		"p50 of macvlan within 0.5% of vxlan where message=300":             insight.Contradicted,
		"p50 of bridge above macvlan by 0.5%..1.5% where message=300":       insight.Confirmed,
		"p50 of vxlan, bridge above host by 4%..30% where message=1024":     insight.Confirmed,
		"p50 of vxlan, bridge above host by 5%..30% where message=1024":     insight.Undecided, // 6% less 1.5%
		"p50 of vxlan, bridge above host by 10%..30% where message=1024":    insight.Contradicted,
		"p50 of host at most 5.5% below bridge, macvlan where message=1024": insight.Confirmed,
	} {
		run.Claims = []result.Claim{{Expect: statement}}
		if got := judgedClaims(run, trials)[0]; got.Verdict != want {
			t.Errorf("%s: %s, %s", statement, got.Verdict, got.Measured)
		}
	}
	run.Deltas, _, _ = insight.Deltas(run.Cells, trials, insight.Options{})
	for _, d := range run.Deltas {
		if d.Metric == "p50" && d.Network == "vxlan" && d.Params.Message == 300 {
			run.Claims = []result.Claim{{Expect: "p50 of vxlan above host where message=300"}}
			want := "across nodes: vxlan " + fmt.Sprintf("%+.1f%% [%.1f, %.1f]", 100*(d.Ratio-1), 100*(*d.RatioLow-1), 100*(*d.RatioHigh-1)) + " against host"
			if got := judgedClaims(run, trials)[0].Measured; got != want {
				t.Errorf("held against the baseline: %s, as a delta: %s", got, want)
			}
		}
	}
}

// TestOneWildBuildContradictsNothing holds that both the interval and the p value have to speak against a claim: with one
// wild build all builds may point one way while the interval says nothing.
func TestOneWildBuildContradictsNothing(t *testing.T) {
	w := precise()
	w.buildSD = 1e-4
	run, trials := w.in(t, setting{result.CrossNode, result.Params{}, logs(1.05, 1, 1)})
	run.Claims = []result.Claim{{Expect: "p50 of bridge below macvlan"}}
	if got := judgedClaims(run, trials)[0]; got.Verdict != insight.Contradicted {
		t.Errorf("steady builds: %s, %s", got.Verdict, got.Measured)
	}
	slowed(trials, "bridge/0", 3, 8)
	if got := judgedClaims(run, trials)[0]; got.Verdict != insight.Undecided {
		t.Errorf("with a wild build: %s, %s", got.Verdict, got.Measured)
	}
}

// TestContradictionsAreCorrected holds that a claim which errs in two ways gives each half of what it may err, and that what
// did not change is shown to, over all networks at once.
func TestContradictionsAreCorrected(t *testing.T) {
	const direction, change = "p50 of vxlan below bridge where message=300", "p50 of vxlan changes between message=300 and message=1024"
	w := precise()
	w.buildSD, w.roundSD, w.drift = 0, 0, 0
	for builds, want := range map[int][2]string{8: {insight.Contradicted, insight.Undecided}, 9: {insight.Contradicted, insight.Contradicted}} {
		w.builds = builds // builds that agree to the last digit: p is 2/2^8, just below a quarter of 5%, and twice that is above
		run, trials := w.in(t,
			setting{result.CrossNode, result.Params{Message: 300}, logs(1.1, 1, 1.5)},
			setting{result.CrossNode, result.Params{Message: 1024}, logs(1.1, 1, 1.2)})
		run.Claims = []result.Claim{{Expect: direction}, {Expect: direction + "; " + change}}
		for i, got := range inWords(run.Claims, insight.Claims(run, trials, nil, insight.Options{Sequential: true})) {
			if got.Verdict != want[i] {
				t.Errorf("%d builds, %s: %s, %s", builds, got.Expect, got.Verdict, got.Measured)
			}
		}
	}
	var steady []stats.Build
	for i := range 8 {
		x := 0.0198 // a half width of 1.8% at 95%, of 2.1% at 97.5%
		if i%2 == 0 {
			x = -x
		}
		steady = append(steady, stats.Build{Deltas: []float64{x}})
	}
	if alone, two := insight.Unchanged(steady, 1), insight.Unchanged(steady, 2); !alone || two {
		t.Errorf("unchanged to within 2%%: %v alone, %v of two", alone, two)
	}
}

// TestClaimsCompareLikePaths holds that a server's name is part of the setting.
func TestClaimsCompareLikePaths(t *testing.T) {
	run, trials := precise().in(t, setting{result.CrossNode, result.Params{}, logs(1.1, 1, 1.3)})
	more, moreTrials := precise().in(t, setting{result.CrossNode, result.Params{}, logs(1.5, 1, 1.6)})
	for _, c := range more.Cells {
		if c.Role == result.RoleCell {
			c.ID, c.Path = c.ID+"/service", "service"
			run.Cells = append(run.Cells, c)
		}
	}
	for _, trial := range moreTrials {
		if !strings.HasPrefix(trial.Cell, "host") {
			trial.Cell += "/service"
			trials = append(trials, trial)
		}
	}
	slices.SortStableFunc(trials, func(a, b result.Trial) int { return a.Build - b.Build })
	for statement, want := range map[string]string{
		"p50 of bridge below vxlan":                  "across nodes: bridge (service) +50.0% [50.0, 50.0], next vxlan (service) +60.0% [60.0, 60.0]",
		"p50 of bridge below vxlan where path=pod":   "across nodes: bridge +10.0% [10.0, 10.0], next vxlan +30.0% [30.0, 30.0]",
		"p50 of vxlan above host where path=service": "across nodes: vxlan (service) +60.0% [60.0, 60.0] against host",
		"p50 of vxlan, bridge above host by 1%..99%": "across nodes: bridge +10.0% [10.0, 10.0] against host",
	} {
		run.Claims = []result.Claim{{Expect: statement}}
		if got := judgedClaims(run, trials)[0]; got.Verdict != insight.Confirmed || got.Measured != want {
			t.Errorf("%s\n got %s: %s\nwant %s", statement, got.Verdict, got.Measured, want)
		}
	}
}
