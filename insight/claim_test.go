package insight_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/internal/property"
	"netdelta/report/words"
	"netdelta/result"
)

// claimed is a run of the world that makes statements.
func (w world) claimed(t testing.TB, statements ...string) (result.Run, []result.Trial) {
	t.Helper()
	run, trials := result.Run{Cells: w.cells(), Margin: 0.02, Confidence: 0.95, Seed: 1}, w.trials(t)
	for _, s := range statements {
		run.Claims = append(run.Claims, result.Claim{ID: "c", Expect: s, Verdict: insight.NotTested})
	}
	return run, trials
}

// judgedClaims are the claims of a run by its trials.
func judgedClaims(run result.Run, trials []result.Trial) []result.Claim {
	run.Deltas, run.Null, _ = insight.Deltas(run.Cells, trials, insight.Options{})
	return inWords(run.Claims, insight.Claims(run, trials, map[string]result.Params{"tcp-rr": {Connections: 1}}, insight.Options{Margin: 0.02}))
}

// inWords are claims with what was found of them.
func inWords(claims []result.Claim, answers []insight.Answer) []result.Claim {
	judged := slices.Clone(claims)
	for i, a := range answers {
		judged[i].Verdict, judged[i].Measured = a.Verdict, words.Measured(a)
	}
	return judged
}

func TestClaimVerdicts(t *testing.T) {
	for statement, want := range map[string]string{
		// Against the baseline, and directly; the truth is bridge +12%, macvlan 0, vxlan +31% of 20 µs.
		"p50 of bridge above host":                                         insight.Confirmed,
		"p50 of host below bridge, vxlan":                                  insight.Confirmed,
		"p50 of host above bridge, vxlan":                                  insight.Contradicted,
		"p50 of bridge below vxlan":                                        insight.Confirmed,
		"p50 of vxlan below bridge":                                        insight.Contradicted,
		"p50 of bridge below vxlan, macvlan":                               insight.Contradicted,
		"p50 of macvlan below host":                                        insight.Undecided,
		"p50 of macvlan below host, vxlan":                                 insight.Undecided,
		"p50 of others above macvlan":                                      insight.Confirmed,
		"tcp-rr p50, cross-node: macvlan/host < bridge/host":               insight.Confirmed,
		"tcp-rr p50: vxlan/host > 1.2":                                     insight.Confirmed,
		"p50: vxlan/host > 1.5":                                            insight.Contradicted,
		"p50: vxlan/host > 1.31":                                           insight.Undecided,
		"p50: bridge/host < 1.05":                                          insight.Contradicted,
		"p50: macvlan/host - 1 < 5%":                                       insight.Confirmed,
		"p50: bridge/host > 0.95":                                          insight.Confirmed,
		"p50 of vxlan at most 5% below host":                               insight.Confirmed,
		"p50 of host at most 5% below vxlan":                               insight.Contradicted,
		"p50 of vxlan above host by 25%..40%":                              insight.Confirmed,
		"p50 of vxlan above host by 5%..10%":                               insight.Contradicted,
		"p50 of vxlan above host by 40%..50%":                              insight.Contradicted,
		"p50 of macvlan within 2% of host":                                 insight.Confirmed,
		"p50 of bridge within 2% of host":                                  insight.Contradicted,
		"p50 of macvlan within 0.05% of host":                              insight.Undecided,
		"p50 of others within 50% of each other":                           insight.Confirmed,
		"p50 of macvlan, bridge, vxlan within 20% of each other":           insight.Contradicted,
		"p50: vxlan - host < 10us":                                         insight.Confirmed,
		"p50: vxlan - host > 10us":                                         insight.Contradicted,
		"p50 of bridge, macvlan within 5us of host":                        insight.Confirmed,
		"p50 of vxlan above bridge by 2us..8us":                            insight.Confirmed,
		"p50 of vxlan below bridge; p50 of bridge above host":              insight.Contradicted,
		"p50 of macvlan below ipip, vxlan":                                 insight.ConfirmedInPart,
		"p50 of bridge above host where connections=1, message=300":        insight.Confirmed,
		"p50 of bridge above host where family=ipv4, placement=cross-node": insight.Confirmed,
		"p50 of bridge above host where family=ipv6":                       insight.NotTested,
		"p50 of bridge above host where placement=same-node":               insight.NotTested,
		"p50 of host within 2% of metal":                                   insight.NotTested,
		"p50 of macvlan, metal within 2% of each other":                    insight.NotTested,
		"cpu of bridge above host":                                         insight.NotTested,
		"p50 of routed above host":                                         insight.NotTested,
		"p50 of bridge changes between message=300 and message=65536":      insight.NotTested,
		"p50 of brid": insight.NotTested,
	} {
		w := usual()
		w.builds, w.rounds = 10, 40
		run, trials := w.claimed(t, statement)
		if got := judgedClaims(run, trials)[0]; got.Verdict != want || got.Measured == "" {
			t.Errorf("%s\n got %s: %s\nwant %s", statement, got.Verdict, got.Measured, want)
		}
	}
}

// TestClaimNeedsBuilds holds that builds too few for an interval decide nothing, and that a few decide what is plain.
func TestClaimNeedsBuilds(t *testing.T) {
	w := usual()
	for builds, want := range map[int]string{2: insight.Undecided, 3: insight.Confirmed, 6: insight.Confirmed} {
		w.builds = builds
		run, trials := w.claimed(t, "p50 of vxlan above bridge")
		run.Deltas, _, _ = insight.Deltas(run.Cells, trials, insight.Options{})
		for _, sequential := range []bool{false, true} {
			if got := inWords(run.Claims, insight.Claims(run, trials, nil, insight.Options{Sequential: sequential}))[0]; got.Verdict != want {
				t.Errorf("%d builds, sequential %v: %s, %s", builds, sequential, got.Verdict, got.Measured)
			}
		}
	}
}

// TestClaimOfALostTrial holds that a network which has nothing in one of the settings leaves the claim confirmed in part.
func TestClaimOfALostTrial(t *testing.T) {
	run, trials := precise().in(t,
		setting{result.CrossNode, result.Params{Message: 300}, logs(1.1, 1.05, 1.4)}, setting{result.CrossNode, result.Params{Message: 1024}, logs(1.1, 1.05, 1.4)})
	run.Claims = []result.Claim{{Expect: "p50 of macvlan below bridge, vxlan"}}
	if got := judgedClaims(run, trials)[0]; got.Verdict != insight.Confirmed {
		t.Errorf("%s: %s", got.Verdict, got.Measured)
	}
	for i := range trials {
		if trials[i].Cell == "vxlan/1" {
			trials[i].Failed = "it hung"
		}
	}
	if got := judgedClaims(run, trials)[0]; got.Verdict != insight.ConfirmedInPart || !strings.HasPrefix(got.Measured, "1 of 2 settings: ") {
		t.Errorf("without vxlan at 1 KiB: %s: %s", got.Verdict, got.Measured)
	}
}

// TestClaimsErrSeldom simulates runs whose truth is exactly at the border of a claim: no more of them than the level
// allows may confirm or contradict it. Where the truth is clear, nearly all runs must see it.
func TestClaimsErrSeldom(t *testing.T) {
	const runs = 200
	w := world{networks: []string{"a", "b", "c"}, builds: 8, rounds: 12, buildSD: 0.004, roundSD: 0.01}
	for _, tc := range []struct {
		statement      string
		a, b, c        float64 // true ratios
		confirmed      [2]float64
		contradictions [2]float64
	}{
		{"p50 of a below b", 1, 1, 1, [2]float64{0, 0.05}, [2]float64{0, 0.05}},
		{"p50 of a below b, c", 1, 1, 1.1, [2]float64{0, 0.05}, [2]float64{0, 0.05}},
		{"p50 of a, b, c within 5% of each other", 1, 1.05, 1.02, [2]float64{0, 0.05}, [2]float64{0, 0.05}},
		{"p50: a/host < 1.1", 1.1, 1, 1, [2]float64{0, 0.05}, [2]float64{0, 0.05}},
		{"p50: a - host > 2us", 1.1, 1, 1, [2]float64{0, 0.05}, [2]float64{0, 0.05}},
		{"p50 of a below b, c", 1, 1.03, 1.04, [2]float64{0.9, 1}, [2]float64{0, 0}},
		{"p50 of a below b, c", 1.04, 1, 1.1, [2]float64{0, 0}, [2]float64{0.9, 1}},
		{"p50 of a, b within 5% of c", 1, 1.01, 1.01, [2]float64{0.9, 1}, [2]float64{0, 0.005}},
		{"p50 of a, b within 5% of c", 1, 1.01, 1.1, [2]float64{0, 0}, [2]float64{0.9, 1}},
	} {
		w.logs = map[string]float64{"a": math.Log(tc.a), "b": math.Log(tc.b), "c": math.Log(tc.c)}
		counts := map[string]float64{}
		for seed := range uint64(runs) {
			w.seed = seed
			run, trials := w.claimed(t, tc.statement)
			counts[insight.Claims(run, trials, nil, insight.Options{})[0].Verdict] += 1.0 / runs
		}
		// Three standard errors of a share of 5% in so many runs.
		slack := 3 * math.Sqrt(0.05*0.95/runs)
		for verdict, limits := range map[string][2]float64{insight.Confirmed: tc.confirmed, insight.Contradicted: tc.contradictions} {
			if got := counts[verdict]; got < limits[0]-1e-9 || got > limits[1]+slack*min(1, limits[1]*20) {
				t.Errorf("%s, truth %g %g %g: %s in %.3f of runs, want %g to %g", tc.statement, tc.a, tc.b, tc.c, verdict, got, limits[0], limits[1])
			}
		}
	}
}

// TestClaimsKnowNoNames holds that neither the names of networks nor the order of trials make a difference.
func TestClaimsKnowNoNames(t *testing.T) {
	statements := []string{"p50 of bridge below vxlan", "p50 of others within 5% of each other", "p50 of macvlan within 1us of host; p90 of bridge above macvlan"}
	w := usual()
	w.rounds = 8
	run, trials := w.claimed(t, statements...)
	want := judgedClaims(run, trials)
	property.Check(t, func(t *rapid.T) {
		names := rapid.Permutation([]string{"zeta", "alpha", "mu", "bridge", "vxlan"}).Draw(t, "names")
		rename := strings.NewReplacer("bridge", names[0], "macvlan", names[1], "vxlan", names[2])
		other := run
		other.Cells, other.Claims = slices.Clone(run.Cells), slices.Clone(run.Claims)
		for i := range other.Cells {
			other.Cells[i].Network = rename.Replace(other.Cells[i].Network)
		}
		for i := range other.Claims {
			other.Claims[i].Expect = rename.Replace(other.Claims[i].Expect)
		}
		shuffled := slices.Clone(trials)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		for i, got := range judgedClaims(other, shuffled) {
			if got.Verdict != want[i].Verdict || got.Measured != rename.Replace(want[i].Measured) {
				t.Fatalf("%s as %v:\n got %s: %s\nwant %s: %s", statements[i], names, got.Verdict, got.Measured, want[i].Verdict, rename.Replace(want[i].Measured))
			}
		}
	})
}

// TestClaimsSpeakOfEveryMetric holds that whatever is measured can be claimed.
func TestClaimsSpeakOfEveryMetric(t *testing.T) {
	for _, name := range insight.Metrics() {
		if _, err := study.ParseExpectation(name + " of bridge below vxlan"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestClaimsOfTheStudies holds that no claim of the built-in study is lost on the way: each is judged, or says why not.
func TestClaimsOfTheStudies(t *testing.T) {
	w := usual()
	run, trials := w.claimed(t)
	run.Claims = latencyClaims(t)
	verdicts := map[string]string{}
	for _, c := range judgedClaims(run, trials) {
		verdicts[c.ID] = c.Verdict
	}
	want := map[string]string{
		"host-on-par": insight.NotTested, "macvlan-closest": insight.ConfirmedInPart, "same-node-close": insight.NotTested, "calico-overlay-ahead": insight.NotTested,
		"cross-node-close": insight.NoTest, "userspace-tunnel-costs": insight.NotTested, "sriov-same-node": insight.NotTested, "large-tcp-differs": insight.NotTested,
		"cross-node-cpu": insight.NotTested, "order": insight.Undecided,
	}
	if diff := cmp.Diff(want, verdicts); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}
