package plan

import (
	"slices"

	"netdelta/result"
)

// byState sorts cells into those that can be measured side by side: each part has the cells of one state, with their baselines.
// Without states there is one part, of all cells. A network without a state is no reason for a build.
func (r Rules) byState(cells []result.Cell) [][]result.Cell {
	if len(r.States) == 0 {
		return [][]result.Cell{cells}
	}
	var all [][]result.Cell
	for _, networks := range r.States {
		settings := map[result.Setting]bool{}
		for _, c := range cells {
			if c.Role == result.RoleCell && slices.Contains(networks, c.Network) {
				settings[c.Setting()] = true
			}
		}
		if len(settings) == 0 {
			continue
		}
		all = append(all, slices.DeleteFunc(slices.Clone(cells), func(c result.Cell) bool {
			return !settings[c.Setting()] || c.Role == result.RoleCell && !slices.Contains(networks, c.Network)
		}))
	}
	return all
}

// nextState is the part of the participants that the next build has: a random one of those that were in the fewest builds. So each
// state has its turn, in a fresh random order, before one has its next, also in a run that is resumed or in which some are done.
func (s *Scheduler) nextState(participants []result.Cell) []result.Cell {
	parts := s.rules.byState(participants)
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
		if b := s.builds[c.ID]; c.Role == result.RoleCell && (fewest < 0 || b < fewest) {
			fewest = b
		}
	}
	return fewest
}
