package plan

import (
	"slices"
	"time"

	"netdelta/internal/gather"
	"netdelta/result"
)

// HaveStates says whether cells are measured in states of a cluster, one after the other.
func HaveStates(cells []result.Cell) bool { return slices.ContainsFunc(cells, counts) }

// counts says whether a cell is measured in one state of its own, and for its own sake.
func counts(c result.Cell) bool { return c.State != "" && c.Role != result.RoleReference }

// States lists the states that cells are measured in for their own sake, in the order of the cells.
func States(cells []result.Cell) []string {
	var all []string
	for _, c := range cells {
		if counts(c) && !slices.Contains(all, c.State) {
			all = append(all, c.State)
		}
	}
	return all
}

// stateOf is the state of the cells of a build, "" without states. The baseline's A/A control is of the baseline's.
func stateOf(cells []result.Cell) string {
	for _, c := range cells {
		if counts(c) {
			return FirstState(c.State)
		}
	}
	return ""
}

// byState sorts cells into those that can be measured side by side: each part has the cells of one state, with the baselines that stand
// in every state. Without states there is one part, of all cells.
func byState(cells []result.Cell) [][]result.Cell {
	states := States(cells)
	if len(states) == 0 {
		return [][]result.Cell{cells}
	}
	all := make([][]result.Cell, len(states))
	for i, state := range states {
		settings := map[result.Setting]bool{}
		for _, c := range cells {
			if c.State == state && counts(c) {
				settings[c.Setting()] = true
			}
		}
		for _, c := range cells {
			if (c.State == state || c.State == "") && settings[c.Setting()] {
				all[i] = append(all[i], c)
			}
		}
	}
	return all
}

// nextState is the part of the participants that the next build has: a random one of those that were in the fewest builds. So each
// state has its turn, in a fresh random order, before one has its next, also in a run that is resumed or in which some are done.
func (s *Scheduler) nextState(participants []result.Cell) []result.Cell {
	parts := byState(participants)
	if len(parts) == 0 {
		return participants // nothing but baselines
	}
	var next []result.Cell
	fewest := 0
	for _, i := range Order(s.rules.Seed, s.next, -1, len(parts)) {
		if b := s.fewestBuilds(parts[i]); next == nil || b < fewest {
			next, fewest = parts[i], b
		}
	}
	return next
}

// fewestBuilds is the least number of builds that a cell of the part was in.
func (s *Scheduler) fewestBuilds(part []result.Cell) int {
	fewest := -1
	for _, c := range part {
		if b := s.builds[c.ID]; counts(c) && (fewest < 0 || b < fewest) {
			fewest = b
		}
	}
	return fewest
}

// behind says of a baseline or A/A control with a state of its own that another cell of its setting was in more builds: the block is not
// complete without it, whatever is known by then.
func (s *Scheduler) behind(c result.Cell) bool {
	if c.Role == result.RoleCell || !counts(c) {
		return false
	}
	return slices.ContainsFunc(s.cells, func(o result.Cell) bool {
		return counts(o) && o.Setting() == c.Setting() && s.builds[o.ID] > s.builds[c.ID]
	})
}

// Visit is a planned visit to a state of the cluster.
type Visit struct {
	State    string
	Networks []string      // that are measured there, the baseline first
	Takes    time.Duration // with as many rounds as it has at least
}

// Visits lists the visits of one block, and says how long all blocks take; there are none without states.
func Visits(cells []result.Cell, costs Costs, rules Rules) (all []Visit, whole time.Duration) {
	cells = Measured(cells)
	n := needOf(costs, rules)
	for i, part := range byState(cells) {
		if !HaveStates(part) {
			return nil, 0
		}
		v := Visit{State: States(cells)[i], Takes: roundUp(costs.Build + n.of(part))}
		for _, c := range part {
			v.Networks = gather.Once(v.Networks, c.Network)
		}
		all = append(all, v)
	}
	return all, roundUp(n.with(cells).in(rules.Builds))
}
