package insight

import (
	"runtime"
	"sync"
	"sync/atomic"

	"netdelta/result"
	"netdelta/stats"
)

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
	o.quantile = remembered(stats.StudentQuantile)
	b := &basis{cells: cells, sets: cellSets(cells), all: batchesOf(cells, trials), options: o, across: acrossStates(cells)}
	b.floors = &floors{basis: b, made: map[nullCheck]stats.Estimate{}, nulls: map[floorKey]nulls{}}
	for i := range b.sets {
		b.networks += len(b.sets[i].cells)
	}
	b.findReferences()
	b.metrics = make([][]metric, len(b.sets))
	inParallel(len(b.sets), func(i int) { b.metrics[i] = b.sets[i].metrics(b.all, o) })
	return b
}

// remembered calls a function of two numbers once for each two.
func remembered(of func(a, b float64) float64) func(a, b float64) float64 {
	var known sync.Map
	return func(a, b float64) float64 {
		x, is := known.Load([2]float64{a, b})
		if !is {
			x = of(a, b)
			known.Store([2]float64{a, b}, x)
		}
		return x.(float64)
	}
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
