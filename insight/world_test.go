package insight_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
)

// world is a simulated run whose truth is known.
type world struct {
	networks []string
	logs     map[string]float64 // true log ratio of each network to the baseline
	builds   int
	rounds   int
	buildSD  float64 // of the log, between builds
	roundSD  float64 // of the log, between bursts
	drift    float64 // log by which everything gets slower from a build's first to its last round
	stream   bool    // throughput instead of latencies
	samples  int     // transactions in each trial's histogram, 0 for none
	seed     uint64
}

// usual is a world of three networks, one of them free.
func usual() world {
	return world{
		networks: []string{"bridge", "macvlan", "vxlan"},
		logs:     map[string]float64{"bridge": math.Log(1.12), "macvlan": 0, "vxlan": math.Log(1.31)},
		builds:   8, rounds: 60, buildSD: 0.002, roundSD: 0.02, drift: 0.3, seed: 1,
	}
}

// baseNS is the baseline's true median latency.
const baseNS = 20_000

// cells are the world's cells: baseline, A/A control and the networks.
func (w world) cells() []result.Cell {
	load := "tcp-rr"
	if w.stream {
		load = "tcp-stream"
	}
	cell := func(id, network string, role result.Role) result.Cell {
		return result.Cell{
			ID: id, Network: network, Placement: result.CrossNode, Path: "pod", Workload: load,
			Params: result.Params{Message: 300}, Role: role,
		}
	}
	cells := []result.Cell{cell("host", "host", result.RoleBaseline), cell("host-twin", "host", result.RoleControl)}
	for _, n := range w.networks {
		cells = append(cells, cell(n, n, result.RoleCell))
	}
	return cells
}

// trials measures the world.
func (w world) trials(tb testing.TB) []result.Trial {
	tb.Helper()
	random := rand.New(rand.NewPCG(w.seed, 7))
	var trials []result.Trial
	for build := range w.builds {
		started := time.Date(2030, 1, 1, 0, build, 0, 0, time.UTC)
		for _, cell := range w.cells() {
			own := w.logs[cell.Network] + w.buildSD*random.NormFloat64()
			trial := result.Trial{
				Schema: result.Schema, Cell: cell.ID, Role: cell.Role, Build: build,
				Started: started, Finished: started.Add(time.Minute),
			}
			b := &trial.Bursts
			for round := range w.rounds {
				drift := w.drift * float64(round) / float64(w.rounds)
				x := baseNS * math.Exp(own+drift+w.roundSD*random.NormFloat64())
				b.Round = append(b.Round, round)
				b.Start = append(b.Start, int64(round)*1e6)
				b.Duration = append(b.Duration, 5e6)
				b.Disturbed = append(b.Disturbed, "")
				if w.stream {
					b.Throughput = append(b.Throughput, 1e14/x)
					continue
				}
				b.P50 = append(b.P50, x)
				b.P90 = append(b.P90, 1.2*x)
				b.Min = append(b.Min, 0.9*x)
				b.Mean = append(b.Mean, 1.1*x)
				b.Split = append(b.Split, w.roundSD*random.NormFloat64())
			}
			if w.samples > 0 {
				trial.Histogram = w.histogram(tb, random, own)
			}
			trials = append(trials, trial)
		}
	}
	return trials
}

// histogram has a tail that is an exponential distribution, so that its percentiles scale as the latencies do.
func (w world) histogram(tb testing.TB, random *rand.Rand, log float64) string {
	tb.Helper()
	h := result.NewHistogram()
	for range w.samples {
		if err := h.RecordValue(int64(baseNS * math.Exp(log) * (0.5 + random.ExpFloat64()))); err != nil {
			tb.Fatal(err)
		}
	}
	text, err := result.EncodeHistogram(h)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// find is the delta of a network in a metric.
func find(t *testing.T, deltas []result.Delta, network, metric string) result.Delta {
	t.Helper()
	for _, d := range deltas {
		if d.Network == network && d.Metric == metric {
			return d
		}
	}
	t.Fatalf("no delta of %s in %s among %d", network, metric, len(deltas))
	return result.Delta{}
}

// near fails unless got is within a share of want.
func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if !(math.Abs(got-want) <= share*math.Abs(want)) {
		t.Errorf("%s is %g, want %g to within %g%%", what, got, want, 100*share)
	}
}

// show prints deltas for a failed test.
func show(deltas []result.Delta) string {
	text := ""
	for _, d := range deltas {
		text += fmt.Sprintf("%s %s %.4f %s blocks %d rounds %d need %d excluded %v warnings %v\n",
			d.Network, d.Metric, d.Ratio, d.Verdict, d.Blocks, d.Rounds, d.Need, d.Excluded, d.Warnings)
	}
	return text
}

// deltasOf are insight.Deltas with the checks in words.
func deltasOf(cells []result.Cell, trials []result.Trial, o insight.Options) (deltas, null []result.Delta, checks []result.Check) {
	deltas, null, found := insight.Deltas(cells, trials, o)
	for _, c := range found {
		checks = append(checks, words.Check(c))
	}
	return deltas, null, checks
}
