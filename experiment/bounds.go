package experiment

import (
	"netdelta/probe/bounds"
)

// boundsOf is what finds out what bounds an armed seat.
func (st *stage) boundsOf(s *seat) *bounds.Meter {
	programs := false
	for _, w := range st.workloads {
		if w.Name == s.cell.Workload {
			programs = len(w.Demands(s.cell.Params).Programs) > 0
		}
	}
	return bounds.New(s.testbed, s.cpus.list(), programs, s.client.Local() && s.server.Local())
}
