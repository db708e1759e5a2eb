package insight_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"netdelta/insight"
	"netdelta/result"
	"netdelta/unit"
)

// states is a simulated run across states of a cluster: gw is the baseline, vxlan and same are further states, and host stands in all of them.
type states struct {
	blocks                      int
	blockSD, visitSD, networkSD float64 // common to a block, to all of a visit, and a network's own in a visit
	vxlan                       float64 // true log ratio to gw
	hostless                    bool
	hostUnderVXLAN              float64 // what the state does to the nodes' own network, and to the network in it alike
}

func (w states) cells() []result.Cell {
	at := func(id, network, state string, role result.Role) result.Cell {
		return result.Cell{ID: id, Network: network, State: state, Role: role, Placement: result.CrossNode, Path: "pod", Workload: "tcp-rr", Params: result.Params{Message: 300}}
	}
	all := []result.Cell{at("gw", "gw", "gw", result.RoleBaseline), at("gw+twin", "gw", "gw+twin", result.RoleControl), at("vxlan", "vxlan", "vxlan", result.RoleCell), at("same", "same", "same", result.RoleCell)}
	if !w.hostless {
		all = append(all, at("host", "host", "gw", result.RoleCell))
		for _, s := range []string{"gw+twin", "vxlan", "same"} {
			all = append(all, at("host@"+s, "host", s, result.RoleReference))
		}
	}
	return all
}

// trials are visits in random order within blocks.
func (w states) trials(seed uint64) []result.Trial {
	const rounds, roundSD, pod = 6, 0.004, 0.2
	random := rand.New(rand.NewPCG(seed, 3))
	var trials []result.Trial
	build := 0
	for range w.blocks {
		block := w.blockSD * random.NormFloat64()
		order := []string{"gw", "gw+twin", "vxlan", "same"}
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, state := range order {
			visit := block + w.visitSD*random.NormFloat64()
			if state == "vxlan" {
				visit += w.hostUnderVXLAN
			}
			for _, c := range w.cells() {
				if c.State != state {
					continue
				}
				own := visit + w.networkSD*random.NormFloat64()
				switch c.Network {
				case "vxlan":
					own += pod + w.vxlan
				case "host":
				default:
					own += pod
				}
				trial := result.Trial{Schema: result.Schema, Cell: c.ID, Role: c.Role, Build: build, Started: time.Unix(int64(build), 0), Finished: time.Unix(int64(build)+1, 0)}
				b := &trial.Bursts
				for round := range rounds {
					b.Round, b.Start, b.Duration, b.Disturbed = append(b.Round, round), append(b.Start, int64(round)), append(b.Duration, 1), append(b.Disturbed, "")
					b.P50 = append(b.P50, baseNS*math.Exp(own+roundSD*random.NormFloat64()))
				}
				trials = append(trials, trial)
			}
			build++
		}
	}
	return trials
}

// What a state does to all that stands in it is no longer in both ends of a delta, and the interval is over visits.
func TestDeltaAcrossStates(t *testing.T) {
	w := states{blocks: 6, blockSD: 0.2, visitSD: 0.01, networkSD: 0.003, vxlan: math.Log(1.3)}
	deltas, null, _ := insight.Deltas(w.cells(), w.trials(1), insight.Options{})
	d := find(t, deltas, "vxlan", "p50")
	if d.Verdict != "slower" || d.Blocks != 6 || d.Rounds != 0 || d.Baseline != "gw" {
		t.Errorf("vxlan: %+v", d)
	}
	near(t, "vxlan", d.Ratio, 1.3, 0.02)
	if d.Across == nil || *d.Across != (result.Across{State: "vxlan", Baseline: "gw", Reference: "host"}) {
		t.Errorf("taken as %+v", d.Across)
	}
	// Side by side with the baseline, in its visits alone.
	host := find(t, deltas, "host", "p50")
	near(t, "host", host.Ratio, math.Exp(-0.2), 0.01)
	if host.Across != nil || host.Blocks != 6 || host.Rounds != 36 {
		t.Errorf("host: %+v", host)
	}
	if len(null) != 1 || null[0].Blocks != 6 || null[0].Across == nil || null[0].Across.State != "gw+twin" {
		t.Errorf("the null check: %+v", null)
	}
}

// The double difference is taken only where the null checks say that it is tighter, and not where it would leave out what a state does to
// the nodes' own network.
func TestReferenceIsTakenWhereItHelps(t *testing.T) {
	quiet := states{blocks: 6, visitSD: 0.001, networkSD: 0.01, vxlan: 0.1}
	common := states{blocks: 6, visitSD: 0.03, networkSD: 0.001, vxlan: 0.1}
	moved := common
	moved.visitSD, moved.networkSD, moved.hostUnderVXLAN = 0.01, 0.002, 0.2
	without := common
	without.hostless = true
	for name, c := range map[string]struct {
		w    states
		want string
		log  float64
		most int
	}{
		// A reference that is the same is taken for a moved one in 5% of runs: 2 of 40, and three standard deviations more 6.
		"common to a visit": {common, "host", 0.1, 6},
		// The null checks of six blocks know the ratio of two scatters, which is two, as well as F with 6 and 6 degrees of freedom: they
		// err in 21% of runs, which costs width and not coverage.
		"own": {quiet, "", 0.1, 16}, "host moves too": {moved, "", 0.3, 1}, "no host": {without, "", 0.1, 0},
	} {
		const runs = 40
		taken, sum := 0, 0.0
		for seed := range runs {
			deltas, _, _ := insight.Deltas(c.w.cells(), c.w.trials(uint64(seed)), insight.Options{HeadlinesOnly: true})
			d := find(t, deltas, "vxlan", "p50")
			if d.Across.Reference == c.want {
				taken++
			}
			sum += math.Log(d.Ratio) / runs
		}
		if runs-taken > c.most || math.Abs(sum-c.log) > 0.01 {
			t.Errorf("%s: taken relative to %q in %d of %d, mean log ratio %.3f, want %.3f", name, c.want, taken, runs, sum, c.log)
		}
	}
}

// Intervals across visits hold the truth as often as they say, in plain and in double differences, at any number of visits.
func TestCoverageAcrossStates(t *testing.T) {
	t.Parallel()
	const runs = 100
	for _, w := range []states{
		{blockSD: 0.05, visitSD: 0.001, networkSD: 0.01}, {visitSD: 0.02, networkSD: 0.02},
		{blockSD: 0.05, visitSD: 0.02, networkSD: 0.004}, {visitSD: 0.02, networkSD: 0.01, hostless: true},
	} {
		w.vxlan = 0.1
		held, claimed := 0, 0
		for _, w.blocks = range []int{2, 3, 4, 6} {
			own, calls := coverage(t, w, runs)
			t.Logf("%+v: %d held, %d false calls of %d", w, own, calls, runs)
			held, claimed = held+own, claimed+calls
		}
		// 95% of 400 are 380, and three standard deviations less 367; 5% are 20, and three more 33.
		if held < 367 || claimed > 33 {
			t.Errorf("%+v: held in %d of %d, false calls in %d", w, held, 4*runs, claimed)
		}
	}
}

// coverage is in how many runs the interval of vxlan holds the truth, and in how many a state that is like the baseline's is called another.
func coverage(t *testing.T, w states, runs int) (held, claimed int) {
	t.Helper()
	for seed := range runs {
		deltas, _, _ := insight.Deltas(w.cells(), w.trials(uint64(seed)), insight.Options{HeadlinesOnly: true, MinBuilds: 2})
		d, same := find(t, deltas, "vxlan", "p50"), find(t, deltas, "same", "p50")
		if *d.RatioLow <= math.Exp(w.vxlan) && math.Exp(w.vxlan) <= *d.RatioHigh {
			held++
		}
		if same.Verdict == "slower" || same.Verdict == "faster" {
			claimed++
		}
	}
	return held, claimed
}

// Claims between levels that are changes of the cluster are answered across visits: of a network itself, and of its delta.
func TestClaimsBetweenStates(t *testing.T) {
	var cells []result.Cell
	for _, mtu := range []unit.Bytes{1500, 9000} {
		state := map[unit.Bytes]string{1500: "as found", 9000: "mtu=9000"}[mtu]
		for _, c := range []result.Cell{{ID: "host", Network: "host", Role: result.RoleBaseline}, {ID: "host+twin", Network: "host", Role: result.RoleControl}, {ID: "pod", Network: "pod", Role: result.RoleCell}} {
			c.ID, c.State, c.Placement, c.Path, c.Workload, c.Params = fmt.Sprint(c.ID, "/", mtu), state, result.CrossNode, "pod", "tcp-rr", result.Params{MTU: mtu}
			cells = append(cells, c)
		}
	}
	random := rand.New(rand.NewPCG(1, 3))
	var trials []result.Trial
	for build := range 12 {
		block := 0.02 * random.NormFloat64()
		for _, c := range cells {
			if (c.State == "as found") != (build%2 == 0) {
				continue
			}
			own := block + 0.01*random.NormFloat64()
			if c.Network == "pod" {
				own += 0.2
				if c.Params.MTU == 9000 {
					own -= 0.15
				}
			}
			trial := result.Trial{Schema: result.Schema, Cell: c.ID, Role: c.Role, Build: build}
			b := &trial.Bursts
			for round := range 6 {
				b.Round, b.Start, b.Duration, b.Disturbed = append(b.Round, round), append(b.Start, int64(round)), append(b.Duration, 1), append(b.Disturbed, "")
				b.P50 = append(b.P50, baseNS*math.Exp(own+0.004*random.NormFloat64()))
			}
			trials = append(trials, trial)
		}
	}
	run := result.Run{Cells: cells, Confidence: 0.95, Margin: 0.02}
	for expect, want := range map[string]string{
		"p50 of pod falls between mtu=1500 and mtu=9000":            insight.Confirmed,
		"p50 of pod rises between mtu=1500 and mtu=9000":            insight.Contradicted,
		"p50 of pod falls by 5%..30% between mtu=1500 and mtu=9000": insight.Confirmed,
		"p50 of pod changes between mtu=1500 and mtu=9000":          insight.Confirmed,
	} {
		run.Claims = append(run.Claims, result.Claim{ID: want, Expect: expect})
	}
	insight.NewJudge(nil).Conclude(&run, insight.Summarize(result.List(trials)))
	answers := insight.Claims(run, trials, nil, insight.Options{})
	for i, c := range run.Claims {
		if answers[i].Verdict != c.ID {
			t.Errorf("%s: %s, want %s: %+v", c.Expect, answers[i].Verdict, c.ID, answers[i])
		}
	}
	if len(run.Effects) == 0 || run.Effects[0].Blocks != 6 || run.Effects[0].Across == nil || run.Effects[0].Across.Baseline != "as found" {
		t.Errorf("effects %+v", run.Effects)
	}
}
