package insight

import "netdelta/result"

// Part is what a run has of one setting.
type Part struct {
	Setting result.Setting
	// Run has the cells, deltas and null checks of the setting alone, and what the run's verdicts rest on.
	Run result.Run
}

// Parts splits a run by setting, in the order of its cells.
func Parts(run result.Run) []Part {
	var all []Part
	at := map[result.Setting]int{}
	of := func(s result.Setting) *result.Run {
		i, known := at[s]
		if !known {
			i = len(all)
			at[s] = i
			all = append(all, Part{s, result.Run{Confidence: run.Confidence, Margin: run.Margin, Adaptive: run.Adaptive, Exact: run.Exact}})
		}
		return &all[i].Run
	}
	for _, c := range run.Cells {
		own := of(c.Setting())
		own.Cells = append(own.Cells, c)
	}
	for _, n := range run.Null {
		own := of(n.Setting())
		own.Null = append(own.Null, n)
	}
	for _, d := range run.Deltas {
		own := of(d.Setting())
		own.Deltas = append(own.Deltas, d)
	}
	return all
}
