package plan

import (
	"netdelta/internal/gather"
	"netdelta/result"
)

// inTurn lists loads as byTurns does, those that the study's claims are about before all others: what a time budget does not hold is first
// of all what no claim needs.
func (r Rules) inTurn(cells []result.Cell, key loadOf) (turns []load, of map[load][]result.Cell) {
	if len(r.Claimed) == 0 {
		return byTurns(cells, key)
	}
	claimed := map[load]bool{}
	for _, c := range cells {
		claimed[key(c)] = claimed[key(c)] || r.Claimed[c.ID]
	}
	of = map[load][]result.Cell{}
	for _, first := range []bool{true, false} {
		own, cellsOf := byTurns(gather.Where(cells, func(c result.Cell) bool { return claimed[key(c)] == first }), key)
		turns = append(turns, own...)
		for l, c := range cellsOf {
			of[l] = c
		}
	}
	return turns, of
}
