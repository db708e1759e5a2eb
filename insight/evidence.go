package insight

import (
	"netdelta/result"
)

// Evidence is a run's trials, sorted for whoever wants to see what stands behind its deltas. It is made once and asked
// setting by setting; what it holds is shared with the trials that it was gathered from, and none of it is changed.
type Evidence struct {
	sittings []sitting
	tables   map[result.Setting]table
}

// Gather sorts the trials of a run's cells. Trials come in the order of the journal.
func Gather(cells []result.Cell, trials []result.Trial) Evidence {
	e := Evidence{sittings: sittings(trials), tables: map[result.Setting]table{}}
	for _, t := range tables(cells) {
		e.tables[t.setting] = t
	}
	return e
}

// Series names one line of a picture: a cell, by the words of the tables.
type Series struct {
	Cell string
	// Name is the network's, with its path where that is not the pod's own address.
	Name string
	Role result.Role
}

// seriesOf are the cells of a table, the baseline and its twin first.
func (t table) seriesOf() []Series {
	var all []Series
	for _, c := range []*result.Cell{t.baseline, t.twin} {
		if c != nil {
			all = append(all, Series{c.ID, Name(c.Network, c.Path), c.Role})
		}
	}
	for _, c := range t.cells {
		all = append(all, Series{c.ID, Name(c.Network, c.Path), c.Role})
	}
	return all
}

// of yields the trials of a cell that count, in the order of builds.
func (e Evidence) of(cell string) []*result.Trial {
	var all []*result.Trial
	for _, s := range e.sittings {
		if good := s.good(cell); good != nil {
			all = append(all, good.trial)
		}
	}
	return all
}
