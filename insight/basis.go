package insight

import "netdelta/result"

// basis is what all comparisons of a run rest on: its cells by setting, its trials by build, and the noise floors of its settings. It is
// made once for all of them.
type basis struct {
	cells   []result.Cell
	sets    []cellSet
	all     []batch
	floors  *floors
	options Options
}

// newBasis takes trials in the order of the journal.
func newBasis(cells []result.Cell, trials []result.Trial, o Options) basis {
	b := basis{cells: cells, sets: cellSets(cells), all: batches(trials), options: o}
	b.floors = newFloors(b.sets, b.all, o)
	return b
}
