// Package insight turns trials into deltas, checks, conclusions and advice. It is pure: records in, records out.
//
// Trials of the same build that were measured together are paired round by round: the delta of a round is the logarithm
// of a cell's burst less the mean of the logarithms of the bursts of the baseline and of its A/A control. A round counts when all
// three are there and undisturbed; in a build without the A/A control (or without the baseline) the other one stands alone. A
// build's rounds are one replication; package stats makes the estimate over builds. The null check is the same, with the
// baseline's A/A control against the baseline.
//
// Ranks and claims hold networks against each other in the same way, without the baseline in between: see Judge.Conclude.
package insight

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/workload"
)

// Judge draws conclusions from the trials of runs.
type Judge struct {
	headlines map[string]string        // by workload
	defaults  map[string]result.Params // by workload
	own       []result.Parameter       // that workloads declare
}

// NewJudge makes a judge that knows the headlines and the default parameters of these workloads.
func NewJudge(workloads []workload.Workload) Judge {
	j := Judge{headlines: map[string]string{}, defaults: map[string]result.Params{}, own: workload.Parameters(workloads)}
	for _, w := range workloads {
		j.headlines[w.Name], j.defaults[w.Name] = w.Headline, w.Defaults
	}
	return j
}

// Findings are what a run's trials show in addition to its figures.
type Findings struct {
	Checks []Check
	Claims []Answer // in the order of Run.Claims
	Advice []Advice
}

// Conclude fills in the figures that follow from a run's trials (deltas, null check, effects and what explains them), and returns
// the findings, which package words puts in words.
func (j Judge) Conclude(run *result.Run, trials *Summaries) Findings {
	run.Bind(j.own)
	b := newBasis(run.Cells, trials, j.options(*run))
	c := b.compareAll()
	b.options.forAnotherRun(c.networks)
	run.Deltas, run.Null = judged(c.networks, b.options), judged(c.controls, b.options)
	c.networks, c.controls = nil, nil // a large run has as much of them as of deltas
	run.Contrasts, run.Effects = b.contrasts(), b.effects()
	run.Paths, run.Links, run.Services = paths(b.cells, b.all), links(b.cells, b.all), served(trials)
	run.Account = trials.Audit().Counts(run.Cells)
	run.Clients = byClient(b.cells, b.all)
	run.Splits, run.Replications, run.Correlations = splits(*run, b.all), replications(b.cells, b.all), Correlations(*run)
	return Findings{
		Checks: slices.Concat(busyChecks(b.all), nullChecks(run.Null, b.options.StrictNull), trialChecks(b.all), c.uneven, c.checks),
		Claims: b.claims(*run, j.defaults), Advice: Advise(*run, b.directs(*run)),
	}
}

// Settled tells which cells of a run that is under way need no further builds: their headlines are resolved, and no goal about them is
// undecided. Without goals the histograms need not be unpacked.
func (j Judge) Settled(run result.Run, trials []result.Trial) map[string]bool {
	settled, _ := j.SoFar(run, trials)
	return settled
}

// SoFar is Settled, and the headline deltas that it rests on. They have intervals of this run alone.
func (j Judge) SoFar(run result.Run, trials []result.Trial) (settled map[string]bool, deltas []result.Delta) {
	light := &Summaries{}
	for i := range trials {
		light.all = append(light.all, newSummary(i, &trials[i]))
	}
	o := j.options(run)
	o.HeadlinesOnly, o.unwritten = true, true
	settled, deltas = newBasis(run.Cells, light, o).settled()
	for cell := range j.undecided(run, trials) {
		settled[cell] = false
	}
	return settled, deltas
}

func (j Judge) options(run result.Run) Options {
	return Options{
		Confidence: run.Confidence, Margin: run.Margin, Sequential: run.Adaptive, Headlines: j.headlines, Own: j.own, Exact: run.Exact != nil,
		Repeating: run.Repeating, Unpaired: run.Unpaired, StrictNull: strictNull(run),
	}
}

// Against holds the networks of the part against one of them, in the headline metric, as the record has it: the baseline by the network's own
// delta, turned; all others by their direct contrasts with it. The cheapest stands first. Of what a contrast does not hold, such as the
// difference in time, these deltas have nothing. Networks without a contrast are left out.
func (p Part) Against(name string) []result.Delta {
	heads := p.Headlines()
	at := slices.IndexFunc(heads, func(d result.Delta) bool { return Name(d.Network, d.Path) == name })
	if at < 0 {
		return nil
	}
	all := []result.Delta{inverted(heads[at])}
	for _, d := range heads {
		for _, c := range p.Contrasts {
			if (c.Ratio == 0) != (d.Ratio == 0) {
				continue // it has no amount
			}
			switch {
			case c.Cell == d.Cell && c.Other == heads[at].Cell:
				all = append(all, direct(d, heads[at], c, false))
			case c.Other == d.Cell && c.Cell == heads[at].Cell:
				all = append(all, direct(d, heads[at], c, true))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b result.Delta) int { return cmp.Compare(Cost(a), Cost(b)) })
	return all
}

// direct is a contrast as a delta of one network against another; turned says that the contrast has the two the other way round.
func direct(d, other result.Delta, c result.Contrast, turned bool) result.Delta {
	d.Baseline, d.BaselineValue = Name(other.Network, other.Path), other.Value
	d.Blocks, d.Need, d.P, d.PAdjusted = c.Blocks, 0, nil, c.PAdjusted
	d.Ratio, d.RatioLow, d.RatioHigh = c.Ratio, c.RatioLow, c.RatioHigh
	d.Difference, d.DifferenceLow, d.DifferenceHigh = c.Difference, c.DifferenceLow, c.DifferenceHigh
	if turned {
		if d.Ratio > 0 {
			d.Ratio = 1 / d.Ratio
		}
		d.RatioLow, d.RatioHigh = reciprocal(c.RatioHigh), reciprocal(c.RatioLow)
		d.Difference, d.DifferenceLow, d.DifferenceHigh = -d.Difference, negative(c.DifferenceHigh), negative(c.DifferenceLow)
	}
	switch c.Cheaper {
	case "":
		d.Verdict = string(stats.Unresolved)
	case d.Cell:
		d.Verdict = string(stats.Faster)
	default:
		d.Verdict = string(stats.Slower)
	}
	return d
}

// basis is what all comparisons of a run rest on: its cells by setting, its trials by build, and the noise floors of its settings. It is
// made once for all of them.
type basis struct {
	cells   []result.Cell
	sets    []cellSet
	all     []batch
	floors  *floors
	options Options
	metrics [][]metric // of each setting, the headline first
	across  bool       // states
	// networks is how many cells stand against baselines.
	networks int
	memos    sync.Pool
}

// newBasis sorts the trials of a run.
func newBasis(cells []result.Cell, trials *Summaries, o Options) *basis {
	o.quantile = gather.Remembered(stats.StudentQuantile)
	b := &basis{cells: cells, sets: cellSets(cells), all: batchesOf(cells, trials), options: o, across: acrossStates(cells)}
	b.options.busy = busyShare(b.all)
	b.floors = &floors{basis: b, made: map[nullCheck]stats.Estimate{}, nulls: map[floorKey]nulls{}}
	for i := range b.sets {
		b.networks += len(b.sets[i].cells)
	}
	b.findReferences()
	b.metrics = make([][]metric, len(b.sets))
	inParallel(len(b.sets), func(i int) { b.metrics[i] = b.sets[i].metrics(b.all, o) })
	return b
}

// headline is the headline metric of a setting.
func (b *basis) headline(t *cellSet) metric { return b.metrics[t.at][0] }

// inParallel calls f with 0 to n-1, on all processors.
func inParallel(n int, f func(i int)) {
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wait.Wait()
}
