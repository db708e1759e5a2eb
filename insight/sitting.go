package insight

import (
	"slices"

	"netdelta/result"
)

// sitting is what was measured together: the trials of one build, by cell. Only trials of one sitting are paired.
type sitting map[string]*summary

// sittings sorts trials, given in the order of the journal, into sittings in the order of builds. A run that was killed
// within a build does the build again when it is resumed: a cell that occurs once more starts a new sitting, which is a
// build of its own. A trial that is in the journal twice (same cell, build and start) counts once.
func sittings(trials []result.Trial) []sitting {
	type key struct {
		cell  string
		build int
		start int64
	}
	seen := map[key]bool{}
	byBuild := map[int][]sitting{}
	var builds []int
	for i := range trials {
		t := &trials[i]
		k := key{t.Cell, t.Build, t.Started.UnixNano()}
		if seen[k] {
			continue
		}
		seen[k] = true
		list := byBuild[t.Build]
		if list == nil {
			builds = append(builds, t.Build)
		}
		if len(list) == 0 || list[len(list)-1][t.Cell] != nil {
			list = append(list, sitting{})
		}
		list[len(list)-1][t.Cell] = &summary{trial: t}
		byBuild[t.Build] = list
	}
	slices.Sort(builds)
	var all []sitting
	for _, build := range builds {
		all = append(all, byBuild[build]...)
	}
	return all
}

// table is a setting with its cells.
type table struct {
	setting        result.Setting
	baseline, twin *result.Cell
	cells          []result.Cell
}

// tables sorts cells by setting. Cells that were not to be measured are left out.
func tables(cells []result.Cell) []table {
	var all []table
	for _, part := range Parts(result.Run{Cells: cells}) {
		t := table{setting: part.Setting}
		for i, c := range part.Cells {
			if c.Unsupported != "" || c.Skipped != "" {
				continue
			}
			switch c.Role {
			case result.RoleBaseline:
				t.baseline = &part.Cells[i]
			case result.RoleTwin:
				t.twin = &part.Cells[i]
			default:
				t.cells = append(t.cells, c)
			}
		}
		all = append(all, t)
	}
	return all
}

// summaries are all trials of the table's cells that count.
func (t table) summaries(all []sitting) []*summary {
	var list []*summary
	for _, s := range all {
		for _, id := range t.ids() {
			if trial := s.good(id); trial != nil {
				list = append(list, trial)
			}
		}
	}
	return list
}

// baselines are how many cells of the table are baselines: at most the baseline and its twin.
func (t table) baselines() int { return len(t.ids()) - len(t.cells) }

// ids are the table's cells, the baseline and its twin first.
func (t table) ids() []string {
	var ids []string
	for _, c := range []*result.Cell{t.baseline, t.twin} {
		if c != nil {
			ids = append(ids, c.ID)
		}
	}
	for _, c := range t.cells {
		ids = append(ids, c.ID)
	}
	return ids
}

// good is the trial of a cell in the sitting, nil if there is none that counts.
func (s sitting) good(id string) *summary {
	if t := s[id]; t != nil && excluded(t.trial) == "" {
		return t
	}
	return nil
}

// excluded is why a trial as a whole enters no delta, "" if it does.
func excluded(t *result.Trial) string {
	switch {
	case t.Failed != "":
		return TrialFailed
	case t.Path != nil && !t.Path.OK:
		return Misrouted
	}
	return ""
}
