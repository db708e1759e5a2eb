package insight

import (
	"slices"

	"netdelta/result"
)

// Own is the workload that a run is about: the first of its study, "" of a run without cells. What a study measures beside it explains it.
func Own(run result.Run) string {
	if len(run.Cells) == 0 {
		return ""
	}
	return run.Cells[0].Workload
}

// Answered are the settings that the first screen of a report is about: one load, in each of its placements, across nodes first, since a
// network is chosen for what is between nodes. It is the first load of the run's own workload in which a network has a headline delta, or
// the first of all where none of the own workload was measured.
func Answered(run result.Run) []Part {
	measured := slices.DeleteFunc(Parts(run), func(p Part) bool { return len(p.Headlines()) == 0 })
	at := slices.IndexFunc(measured, func(p Part) bool { return p.Setting.Workload == Own(run) && HasInterval(p.Headlines()[0]) })
	if at < 0 {
		at = slices.IndexFunc(measured, func(p Part) bool { return p.Setting.Workload == Own(run) })
	}
	if len(measured) == 0 {
		return nil
	}
	load := measured[max(at, 0)].Setting
	all := slices.DeleteFunc(measured, func(p Part) bool {
		p.Setting.Placement = load.Placement
		return p.Setting != load
	})
	slices.SortStableFunc(all, func(a, b Part) int { return AcrossFirst(a.Setting.Placement, b.Setting.Placement) })
	return all
}

// AcrossFirst orders placements: across nodes before all else.
func AcrossFirst(a, b result.Placement) int {
	switch across := result.CrossNode; {
	case a == across && b != across:
		return -1
	case b == across && a != across:
		return 1
	}
	return 0
}

// OwnMissing says why nothing of the run's own workload was measured, false if something was, or if the run asked for the networks of
// other workloads alone.
func OwnMissing(run result.Run) (Absence, bool) {
	own := slices.DeleteFunc(slices.Clone(run.Cells), func(c result.Cell) bool { return c.Workload != Own(run) })
	if slices.ContainsFunc(own, func(c result.Cell) bool { return c.Unsupported == "" && c.Skipped == "" }) {
		return Absence{}, false
	}
	all := Absences(own)
	if len(all) == 0 {
		return Absence{}, false
	}
	return all[0], true
}

// ConcludeChoice is Conclude of the networks that pods may have: demonstrations are left out beside others.
func ConcludeChoice(part Part) Conclusion { return Conclude(part.withoutDemonstrations()) }
