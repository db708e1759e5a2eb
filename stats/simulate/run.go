package simulate

import "netdelta/stats"

// Run is an experiment that was carried through, as a runner would.
type Run struct {
	Cells []stats.Estimate // by cell
	Null  stats.Estimate
	// Builds is how many builds the cells took together: the cost.
	Builds int
}

// Run carries an experiment through: builds are added, the cells looked at after each, and a cell that is resolved is
// dropped from further builds, from stats.FirstLook on, until all are or maxBuilds is reached. The baseline is in every build.
func (w World) Run(seed uint64, maxBuilds int, o stats.Options, resolved func(stats.Estimate) bool) Run {
	e, run := w.Start(seed), Run{Cells: make([]stats.Estimate, len(w.Shifts))}
	cells, null, done := make([][]stats.Build, len(w.Shifts)), []stats.Build(nil), make([]bool, len(w.Shifts))
	for open := len(cells); open > 0 && len(null) < maxBuilds; {
		sample := e.Build()
		null = append(null, sample.Null())
		for c := range cells {
			if done[c] {
				continue
			}
			run.Builds++
			cells[c] = append(cells[c], sample.Cell(c))
			if len(cells[c]) < stats.FirstLook && len(cells[c]) < maxBuilds {
				continue
			}
			run.Cells[c] = stats.Compare(cells[c], o)
			if resolved(run.Cells[c]) {
				done[c] = true
				open--
			}
		}
	}
	run.Null = stats.Compare(null, o)
	return run
}

// P are the p values of all cells, not corrected.
func (r Run) P() []float64 {
	p := make([]float64, len(r.Cells))
	for c, e := range r.Cells {
		p[c] = e.P
	}
	return p
}
