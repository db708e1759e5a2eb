package insight

import (
	"runtime"
	"sync"
	"sync/atomic"

	"netdelta/result"
	"netdelta/stats"
)

// basis is what all comparisons of a run rest on: its cells by setting, its trials by build, and the noise floors of its settings. It is
// made once for all of them. Trials that are not in memory are there for as long as their cells are held.
type basis struct {
	cells   []result.Cell
	sets    []cellSet
	all     []batch
	floors  *floors
	options Options
	trials  *trialsOfCells
	metrics [][]metric // of each setting, once they are known
}

// newBasis takes trials in the order of the journal.
func newBasis(cells []result.Cell, trials result.Trials, o Options) *basis {
	if acrossStates(cells) {
		trials = inMemory(trials) // visits take long: there are few
	}
	b := &basis{cells: cells, sets: cellSets(cells), all: batchesOf(cells, trials), options: o}
	b.trials, b.metrics = newTrialsOfCells(b.all, trials), make([][]metric, len(b.sets))
	b.floors = &floors{basis: b, made: map[nullCheck]stats.Estimate{}, nulls: map[floorKey]nulls{}}
	b.findReferences()
	return b
}

// metricsOf are the metrics of a setting, the headline first. The first time the setting must be held.
func (b *basis) metricsOf(t *cellSet) []metric {
	if b.metrics[t.at] == nil {
		b.metrics[t.at] = t.metrics(b.all, b.options)
	}
	return b.metrics[t.at]
}

// hold has the trials of settings in memory until release.
func (b *basis) hold(sets ...*cellSet) (release func()) {
	var cells []string
	for _, t := range sets {
		for _, c := range t.listed {
			cells = append(cells, c.ID)
		}
	}
	return b.trials.hold(cells...)
}

// trialsOfCells are the trials of a run by cell.
type trialsOfCells struct {
	trials result.Trials // nil if all are in memory anyway
	of     map[string]*cellTrials
}

// cellTrials are the trials of a cell in the order of batches.
type cellTrials struct {
	summaries []*summary
	lock      sync.Mutex
	holders   int
}

func newTrialsOfCells(all []batch, trials result.Trials) *trialsOfCells {
	b := &trialsOfCells{trials: trials, of: map[string]*cellTrials{}}
	if _, inMemory := trials.(result.List); inMemory {
		b.trials = nil
	}
	for _, s := range all {
		for cell, trial := range s {
			if b.of[cell] == nil {
				b.of[cell] = &cellTrials{}
			}
			b.of[cell].summaries = append(b.of[cell].summaries, trial)
		}
	}
	return b
}

// without are the cells that have trials and are not in a list.
func (b *trialsOfCells) without(cells []result.Cell) []string {
	known := map[string]bool{}
	for _, c := range cells {
		known[c.ID] = true
	}
	var others []string
	for cell := range b.of {
		if !known[cell] {
			others = append(others, cell)
		}
	}
	return others
}

// hold has the trials of cells in memory until release. Several may hold the same.
func (b *trialsOfCells) hold(cells ...string) (release func()) {
	if b.trials == nil {
		return func() {}
	}
	for _, cell := range cells {
		b.count(cell, +1)
	}
	return func() {
		for _, cell := range cells {
			b.count(cell, -1)
		}
	}
}

// count changes by one how many hold a cell.
func (b *trialsOfCells) count(cell string, by int) {
	c := b.of[cell]
	if c == nil {
		return // it has no trials
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	c.holders += by
	for _, s := range c.summaries {
		switch {
		case by > 0 && c.holders == 1:
			s.trial = b.trials.Trial(s.index)
		case c.holders == 0:
			s.trial = nil
		}
	}
}

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
