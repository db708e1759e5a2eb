package plan

import (
	"slices"

	"netdelta/result"
)

// parts sorts cells into those that can be measured side by side, in the order of Apart: each part has the cells of one entry,
// with the baselines that they are held against. Without Apart there is one part, of all cells. A network that is in no entry
// can stand beside all, but is nobody's reason for a build.
func (r Rules) parts(cells []result.Cell) [][]result.Cell {
	if len(r.Apart) == 0 {
		return [][]result.Cell{cells}
	}
	var all [][]result.Cell
	for _, networks := range r.Apart {
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

// turn is the part of the participants that the next build has: of those that were in the fewest builds, a random one. So each
// part has its turn, in a fresh random order, before one has its next; also in a run that is resumed, or in which some are done.
func (s *Scheduler) turn(participants []result.Cell) []result.Cell {
	parts := s.rules.parts(participants)
	if len(parts) == 0 {
		return participants // nothing but baselines
	}
	var turn []result.Cell
	fewest := 0
	for _, i := range Order(s.rules.Seed, s.next, -1, len(parts)) {
		if b := s.taken(parts[i]); turn == nil || b < fewest {
			turn, fewest = parts[i], b
		}
	}
	return turn
}

// taken is in how many builds the cells of a part were, those that were in the fewest.
func (s *Scheduler) taken(part []result.Cell) int {
	fewest := -1
	for _, c := range part {
		if b := s.builds[c.ID]; c.Role == result.RoleCell && (fewest < 0 || b < fewest) {
			fewest = b
		}
	}
	return fewest
}
