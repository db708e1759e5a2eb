package insight

import "netdelta/result"

// Part is what a run has of one setting, with what its verdicts rest on.
type Part struct {
	Setting            result.Setting
	Cells              []result.Cell
	Deltas, Null       []result.Delta
	Confidence, Margin float64
	Adaptive           bool
	Exact              *result.Exact
}

// Parts splits a run by setting, in the order of its cells.
func Parts(run result.Run) []Part {
	var all []Part
	at := map[result.Setting]int{}
	of := func(s result.Setting) *Part {
		i, known := at[s]
		if !known {
			i = len(all)
			at[s] = i
			all = append(all, Part{Setting: s, Confidence: run.Confidence, Margin: run.Margin, Adaptive: run.Adaptive, Exact: run.Exact})
		}
		return &all[i]
	}
	for _, c := range run.Cells {
		part := of(c.Setting())
		part.Cells = append(part.Cells, c)
	}
	for _, n := range run.Null {
		part := of(n.Setting())
		part.Null = append(part.Null, n)
	}
	for _, d := range run.Deltas {
		part := of(d.Setting())
		part.Deltas = append(part.Deltas, d)
	}
	return all
}

// Headlines are the headline deltas of the part, the cheapest network first.
func (p Part) Headlines() []result.Delta { return Headlines(p.Deltas, p.Setting) }
