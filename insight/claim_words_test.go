package insight_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"netdelta/insight"
	"netdelta/result"
)

// setting is a part of a run, with truths of its own.
type setting struct {
	placement result.Placement
	params    result.Params
	logs      map[string]float64
}

// in joins the settings into one run with the world's networks.
func (w world) in(t testing.TB, settings ...setting) (result.Run, []result.Trial) {
	t.Helper()
	run := result.Run{Margin: 0.02, Confidence: 0.95, Seed: 1}
	var trials []result.Trial
	for i, s := range settings {
		w.logs, w.seed = s.logs, w.seed+1
		rename := func(id string) string { return fmt.Sprintf("%s/%d", id, i) }
		for _, c := range w.cells() {
			c.ID, c.Placement, c.Params = rename(c.ID), s.placement, s.params
			run.Cells = append(run.Cells, c)
		}
		for _, trial := range w.trials(t) {
			trial.Cell = rename(trial.Cell)
			trials = append(trials, trial)
		}
	}
	return run, trials
}

// precise is a world whose figures are its truths to all digits that claims print.
func precise() world {
	return world{networks: []string{"bridge", "macvlan", "vxlan"}, builds: 8, rounds: 10, buildSD: 1e-7, roundSD: 1e-7}
}

func logs(bridge, macvlan, vxlan float64) map[string]float64 {
	return map[string]float64{"bridge": math.Log(bridge), "macvlan": math.Log(macvlan), "vxlan": math.Log(vxlan)}
}

func TestClaimTexts(t *testing.T) {
	run, trials := precise().in(t,
		setting{result.SameNode, result.Params{Message: 300}, logs(1.1, 1.05, 1.4)},
		setting{result.CrossNode, result.Params{Message: 300}, logs(1.1, 1.2, 1.3)},
		setting{result.CrossNode, result.Params{Message: 65536}, logs(1.1, 1.05, 2.5)},
		setting{result.CrossNode, result.Params{Message: 300, Family: result.IPv6}, logs(1.15, 1.05, 1.35)},
	)
	cell := run.Cells[2]
	for network, mark := range map[string]func(*result.Cell){
		"ipvlan-l2": func(c *result.Cell) { c.Unsupported = "needs ipvlan" },
		"routed":    func(c *result.Cell) { c.Skipped = "left out by the time budget of 1m" },
		"silent":    func(*result.Cell) {},
	} {
		c := cell
		c.ID, c.Network, c.Role = network, network, result.RoleCell
		mark(&c)
		run.Cells = append(run.Cells, c)
	}
	skipped := cell
	skipped.ID, skipped.Role, skipped.Params.Message, skipped.Skipped = "late", result.RoleBaseline, 2048, "left out"
	run.Cells = append(run.Cells, skipped)
	for _, tc := range []struct{ statement, verdict, measured string }{
		{"p50 of macvlan below bridge, vxlan where placement=same-node", insight.ConfirmedInPart,
			"1 of 2 settings: on one node: macvlan +5.0% [5.0, 5.0], next bridge +10.0% [10.0, 10.0]"},
		{"p50 of macvlan below bridge, vxlan where placement=same-node, message=300|500|1024", insight.ConfirmedInPart,
			"1 of 3 settings: on one node: macvlan +5.0% [5.0, 5.0], next bridge +10.0% [10.0, 10.0]. Not tested: message=500|1024 (not in this run)"},
		{"p50 of macvlan below bridge where placement=same-node, message=300; p50 of macvlan below bridge where workload=http", insight.NotTested,
			"not in this run: workload=http"},
		{"p50 of macvlan above bridge where placement=same-node; rate of macvlan below bridge where workload=http|block", insight.NotTested,
			"not in this run: workload=http|block"},
		{"p50 of macvlan below bridge where placement=same-node, workload=tcp-rr, message=300; p50 of ipip below bridge where workload=tcp-rr, message=300, placement=same-node", insight.ConfirmedInPart,
			"2 of 3 networks: on one node: macvlan +5.0% [5.0, 5.0], next bridge +10.0% [10.0, 10.0]. Not tested: ipip (not in this run)"},
		{"p50 of macvlan below bridge where placement=same-node, message=300; cpu of macvlan below bridge where placement=same-node, message=300", insight.ConfirmedInPart,
			"0 of 1 setting: p50 on one node: macvlan +5.0% [5.0, 5.0], next bridge +10.0% [10.0, 10.0]. Not tested: cpu (not measured)"},
		{"p50 of macvlan below bridge where placement=same-node, message=300; p50 of ipip below bridge where placement=same-node, message=300", insight.ConfirmedInPart,
			"2 of 3 networks: on one node: macvlan +5.0% [5.0, 5.0], next bridge +10.0% [10.0, 10.0]. Not tested: ipip (not in this run)"},
		{"p50 of macvlan below bridge where message=300, family=ipv4", insight.Contradicted,
			"confirmed on one node: macvlan +5.0% [5.0, 5.0], next bridge +10.0% [10.0, 10.0]; " +
				"contradicted across nodes: macvlan +20.0% [20.0, 20.0], bridge +10.0% [10.0, 10.0]"},
		{"p50 of macvlan below bridge", insight.Contradicted,
			"confirmed on one node: macvlan +5.0% [5.0, 5.0], next bridge +10.0% [10.0, 10.0]; " +
				"contradicted across nodes: macvlan +20.0% [20.0, 20.0], bridge +10.0% [10.0, 10.0] (tcp-rr, 300B; 1 of 3 comparisons)"},
		{"p50 of bridge, macvlan above host where family=ipv6", insight.Confirmed,
			"across nodes: macvlan +5.0% [5.0, 5.0] against host"},
		{"p50 of macvlan, bridge, vxlan within 45us of each other where placement=cross-node", insight.ConfirmedInPart,
			"1 of 3 settings: across nodes: vxlan +29.0 µs [29.0, 29.0] against macvlan (tcp-rr, 64KiB; 2 of 9 comparisons)"},
		{"p50 of macvlan, bridge, vxlan within 500us of each other where placement=cross-node", insight.NoTest,
			"across nodes: vxlan +29.0 µs [29.0, 29.0] against macvlan (tcp-rr, 64KiB)"},
		{"p50 of vxlan within 0.5us of bridge where placement=same-node", insight.Contradicted,
			"on one node: vxlan +6.0 µs [6.0, 6.0] against bridge"},
		{"p50 of macvlan within 15us of bridge where placement=same-node; p90 of macvlan within 1us of bridge where placement=same-node", insight.Contradicted,
			"confirmed p50 on one node: macvlan -1.0 µs [-1.0, -1.0] against bridge; contradicted p90 on one node: macvlan -1.2 µs [-1.2, -1.2] against bridge"},
		{"p50 of vxlan changes between message=300 and message=65536 where family=ipv4", insight.ConfirmedInPart,
			"1 of 2 placements, 2 of 3 settings: across nodes: vxlan +30.0% [30.0, 30.0] at message=300, +150% [150, 150] at message=65536"},
		{"p50 of bridge, vxlan changes between message=300 and message=65536", insight.Contradicted,
			"across nodes: bridge +10.0% [10.0, 10.0] at message=300, +10.0% [10.0, 10.0] at message=65536 (1 of 2 comparisons)"},
		{"p50 of macvlan below ipvlan-l2, ipip, ovs, metal, routed, vxlan, unheard where placement=same-node", insight.ConfirmedInPart,
			"2 of 8 networks, 1 of 2 settings: on one node: macvlan +5.0% [5.0, 5.0], next vxlan +40.0% [40.0, 40.0]. Not tested: ipvlan-l2 (unsupported here), " +
				"ipip, ovs and unheard (not in this run), metal (needs a bare-metal baseline), routed (left out by the time budget)"},
		{"p50 of macvlan below silent, bridge where placement=same-node", insight.ConfirmedInPart,
			"2 of 3 networks, 1 of 2 settings: on one node: macvlan +5.0% [5.0, 5.0], next bridge +10.0% [10.0, 10.0]. Not tested: silent (no trial of it counts)"},
		{"p50 of silent below bridge", insight.NotTested, "no trial of it counts: silent"},
		{"p50 of bridge, macvlan above udp-tun, sriov", insight.NotTested, "not in this run: udp-tun and sriov"},
		{"p50 of udp-tun, sriov above vxlan, ovs", insight.NotTested, "not in this run: udp-tun and sriov"},
		{"p50 of host within 2% of metal", insight.NotTested, "needs a bare-metal baseline: metal"},
		{"p50 of routed below bridge where message=2048", insight.NotTested, "left out by the time budget: message=2048"},
		{"p50 of bridge changes between message=300 and message=1MiB", insight.NotTested, "not in this run: message=1MiB"},
		{"p50 of bridge below vxlan where workload=http", insight.NotTested, "not in this run: workload=http"},
		{"p50 of ipvlan-l2 below vxlan where placement=cross-node", insight.NotTested, "not in this run at these levels: ipvlan-l2"},
		{"throughput of bridge below vxlan", insight.NotTested, "not measured: throughput"},
		{"p50 of bridge near vxlan", insight.NotTested, `the statement can't be read: column 15: want below or above or at or within or changes or rises or falls or stays, not "near"`},
	} {
		run.Claims = []result.Claim{{ID: "a", Says: "b", Source: "c", Published: "d", Expect: tc.statement}}
		got := judgedClaims(run, trials)[0]
		if got.Verdict != tc.verdict || got.Measured != tc.measured {
			t.Errorf("%s\n got %s: %s\nwant %s: %s", tc.statement, got.Verdict, got.Measured, tc.verdict, tc.measured)
		}
		if got.ID+got.Says+got.Source+got.Published+got.Expect != "abcd"+tc.statement {
			t.Errorf("the claim itself has changed: %+v", got)
		}
	}
}

// What a study measures in another way than its source is neither confirmed nor contradicted, and its figures are told.
func TestClaimOfWhatDiffers(t *testing.T) {
	run, trials := precise().in(t, setting{result.SameNode, result.Params{Message: 300}, logs(1.1, 1.05, 1.4)})
	for _, tc := range []struct{ statement, verdict, measured string }{
		{"p50 of macvlan below bridge", insight.NotComparable, "on one node: macvlan +5.0% [5.0, 5.0], next bridge +10.0% [10.0, 10.0]. What differs: another store"},
		{"p50 of macvlan above bridge", insight.NotComparable, "on one node: macvlan +5.0% [5.0, 5.0], bridge +10.0% [10.0, 10.0]. What differs: another store"},
		{"p50 of ipip below bridge", insight.NotTested, "not in this run: ipip"},
	} {
		run.Claims = []result.Claim{{Differs: "another store", Expect: tc.statement}}
		if got := judgedClaims(run, trials)[0]; got.Verdict != tc.verdict || got.Measured != tc.measured {
			t.Errorf("%s\n got %s: %s\nwant %s: %s", tc.statement, got.Verdict, got.Measured, tc.verdict, tc.measured)
		}
	}
}

// A longer run has no more of what is unsupported, so that the budget is not named as the reason.
func TestUnsupportedLevelIsNamed(t *testing.T) {
	run, trials := precise().in(t, setting{result.SameNode, result.Params{Message: 300}, logs(1.1, 1.05, 1.4)})
	late := run.Cells[0]
	late.ID, late.Params.Message, late.Skipped = "late", 2048, "left out"
	slow := late
	slow.ID, slow.Params.Conditions.LinkDelay, slow.Skipped, slow.Unsupported = "slow", 500*time.Microsecond, "", "needs netem"
	run.Cells = append(run.Cells, late, slow)
	run.Claims = []result.Claim{{Expect: "p50 of bridge rises between link.delay=0s and link.delay=500us where message=2048"}}
	const want = "left out by the time budget: message=2048; unsupported here: link.delay=500us"
	if got := judgedClaims(run, trials)[0]; got.Verdict != insight.NotTested || got.Measured != want {
		t.Errorf("%s: %s, want %s", got.Verdict, got.Measured, want)
	}
}

func TestClaimOfFewBuildsSaysSo(t *testing.T) {
	w := precise()
	w.builds = 2
	run, trials := w.in(t, setting{result.SameNode, result.Params{}, logs(1.1, 1.05, 1.4)})
	for statement, want := range map[string]string{
		"p50 of macvlan below bridge": "on one node: macvlan +5.0% (2 of 3 builds), bridge +10.0% (2 of 3 builds)",
		"p50: vxlan/host < 1.5":       "on one node: vxlan +40.0% (2 of 3 builds) against host",
	} {
		run.Claims = []result.Claim{{Expect: statement}}
		if got := judgedClaims(run, trials)[0]; got.Verdict != insight.Undecided || got.Measured != want {
			t.Errorf("%s: %s, %s", statement, got.Verdict, got.Measured)
		}
	}
}

// TestClaimsAreBounded holds that a claim of far too many comparisons is refused before they are made.
func TestClaimsAreBounded(t *testing.T) {
	w := precise()
	w.networks, w.builds, w.rounds = nil, 6, 1
	for i := range 142 {
		w.networks = append(w.networks, fmt.Sprintf("n%d", i))
	}
	run, trials := w.in(t, setting{result.SameNode, result.Params{}, nil})
	run.Claims = []result.Claim{{Expect: "p50 of others within 2% of each other"}, {Expect: "p50 of others within 2% of n1"}}
	got := judgedClaims(run, trials)
	if got[0].Verdict != insight.NotTested || !strings.HasPrefix(got[0].Measured, "too many comparisons: it takes more than 10000") {
		t.Errorf("%s, %s", got[0].Verdict, got[0].Measured)
	}
	if got[1].Verdict != insight.Confirmed {
		t.Errorf("%s, %s", got[1].Verdict, got[1].Measured)
	}
}

// TestLossIsClaimedInPoints holds that amounts of loss are differences of shares.
func TestLossIsClaimedInPoints(t *testing.T) {
	w := precise()
	w.stream = true
	run, trials := w.in(t, setting{result.CrossNode, result.Params{}, logs(1, 1, 1)})
	for i := range trials {
		trials[i].Sent = 10_000
		if strings.HasPrefix(trials[i].Cell, "vxlan") {
			trials[i].Lost = 200 + int64(trials[i].Build%2)
		}
	}
	for statement, want := range map[string]string{
		"loss of vxlan above host by 1%..3%": insight.Confirmed, "loss of vxlan above host by 3%": insight.Contradicted, "loss of vxlan within 1% of bridge": insight.Contradicted,
		"loss of vxlan below bridge": insight.Contradicted, "loss of bridge, macvlan within 0.1% of host": insight.Confirmed,
	} {
		run.Claims = []result.Claim{{Expect: statement}}
		got := judgedClaims(run, trials)[0]
		if got.Verdict != want || strings.Contains(statement, "vxlan") && !strings.Contains(got.Measured, "vxlan +2.0 points [2.0, 2.0] against") {
			t.Errorf("%s: %s, %s", statement, got.Verdict, got.Measured)
		}
	}
}
