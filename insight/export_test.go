package insight

import (
	"slices"

	"netdelta/result"
	"netdelta/stats"
)

// The comparisons of a run one by one, in place of Judge.Conclude.

func Deltas(cells []result.Cell, trials []result.Trial, o Options) (deltas, null []result.Delta, checks []Check) {
	b := newBasis(cells, Summarize(result.List(trials)), o)
	c := b.compareAll()
	return judged(c.networks, b.options), judged(c.controls, b.options), slices.Concat(busyChecks(b.all), trialChecks(b.all), c.uneven, c.checks)
}

func Effects(cells []result.Cell, trials []result.Trial, o Options) []result.Effect {
	return newBasis(cells, Summarize(result.List(trials)), o).effects()
}

func Contrasts(cells []result.Cell, trials []result.Trial, o Options) []result.Contrast {
	b := newBasis(cells, Summarize(result.List(trials)), o)
	b.compareAll()
	return b.contrasts()
}

func Paths(cells []result.Cell, trials []result.Trial) []result.PathProof {
	return paths(cells, batches(Summarize(result.List(trials))))
}

func Links(cells []result.Cell, trials []result.Trial) []result.LinkShare {
	return links(cells, batches(Summarize(result.List(trials))))
}

func Directs(run result.Run, trials []result.Trial, o Options) []result.Delta {
	return newBasis(run.Cells, Summarize(result.List(trials)), o).directs(run)
}

func Claims(run result.Run, trials []result.Trial, defaults map[string]result.Params, o Options) []Answer {
	return newBasis(run.Cells, Summarize(result.List(trials)), o).claims(run, defaults)
}

// Settled compares headlines alone, as a run does that asks after each build.
func Settled(cells []result.Cell, trials []result.Trial, o Options) map[string]bool {
	o.HeadlinesOnly, o.unwritten = true, true
	settled, _ := newBasis(cells, Summarize(result.List(trials)), o).settled()
	return settled
}

// What the tests, which put findings in words, see of the inside.
const (
	MetricP50, MetricThroughput, MetricLoss, MetricCPU = metricP50, metricThroughput, metricLoss, metricCPU

	Unproved, External, Mounted = unproved, external, mounted

	DistributionPoints, TailSamples = distributionPoints, tailSamples
)

func CostRange(d result.Delta) (low, high float64) { return costRange(d) }

func Readable(count int64) []float64 { return readable(count) }

func DifferOnly(a, b result.Setting, key string) bool { return differOnly(a, b, key) }

func Differences(before, after result.Run) []result.Difference { return differences(before, after) }

func ClaimLevel(o Options) float64 { return o.stats(metrics()[0]).ClaimLevel() }

// Unchanged is answer.unchanged of a change between levels with these builds.
func Unchanged(builds []stats.Build, tests int) bool {
	a := answer{question: question{metric: metrics()[0]}, builds: builds}
	a.estimate = stats.Compare(builds, stats.Options{})
	return a.unchanged(Options{}, tests)
}

// Steps are the steps of all factors: "policy: baseline > cell".
func Steps(cells []result.Cell) []string {
	var all []string
	for _, s := range steps(cellSets(cells)) {
		all = append(all, s.factor+": "+s.references[0]+" > "+s.cell.ID)
	}
	return all
}

func Moved(c result.Change) (known bool, side int) { return moved(c) }
