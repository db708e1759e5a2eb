package study

import (
	"slices"

	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/result"
)

// Claimed are the cells that claims can be judged by, as their IDs: those of the settings that a clause is about and in which there is
// something to compare. cells are those that can be measured here, with their baselines; defaults are the default parameters by workload,
// and own the parameters that workloads declare.
func Claimed(claims []Claim, cells []result.Cell, defaults map[string]result.Params, own []result.Parameter) map[string]bool {
	filled := slices.Clone(cells)
	for i, c := range filled {
		filled[i].Params = WithDefaults(c.Params, defaults[c.Workload])
	}
	claimed := map[string]bool{}
	for _, claim := range claims {
		clauses, err := ParseExpectation(claim.Expect, own...)
		if err != nil {
			continue // the study's check has said so
		}
		for _, c := range clauses {
			for _, cell := range c.judgedBy(filled) {
				claimed[cell.ID] = true
			}
		}
	}
	return claimed
}

// judgedBy are the cells by which a clause can be judged.
func (c Clause) judgedBy(cells []result.Cell) []result.Cell {
	switch {
	case c.BetweenLevels():
		from, to := c.at(cells, c.From), c.at(cells, c.To)
		both := func(cell result.Cell) bool {
			same := func(o result.Cell) bool { return o.Network == cell.Network }
			return c.names(c.Networks, cell) && slices.ContainsFunc(from, same) && slices.ContainsFunc(to, same)
		}
		return gather.Where(slices.Concat(from, to), both)
	case c.OfCorrelation():
		held := c.at(cells)
		if len(held) == 0 {
			return nil
		}
		return append(held, gather.Where(cells, func(cell result.Cell) bool { return cell.Workload == c.With.Workload })...)
	}
	bySetting := map[result.Setting][]result.Cell{}
	for _, cell := range c.at(cells) {
		bySetting[cell.Setting()] = append(bySetting[cell.Setting()], cell)
	}
	var all []result.Cell
	for _, held := range bySetting {
		subjects := gather.Where(held, func(cell result.Cell) bool { return c.names(c.Networks, cell) })
		against := gather.Where(held, func(cell result.Cell) bool { return c.names(c.Against, cell) })
		if len(subjects) > 0 && len(against) > 0 || c.Relation == EachOther && len(subjects) > 1 {
			all = append(append(all, subjects...), against...)
		}
	}
	return all
}

// at are the cells in which the clause's conditions hold, and one more that is a level.
func (c Clause) at(cells []result.Cell, level ...Condition) []result.Cell {
	return gather.Where(cells, func(cell result.Cell) bool {
		return !slices.ContainsFunc(slices.Concat(c.Where, level), func(w Condition) bool {
			return w.Key != "path" && !w.HoldsInComparison(cell, c.From.Key)
		})
	})
}

// names says whether names of the clause mean a cell's network.
func (c Clause) names(names []string, cell result.Cell) bool {
	named := func(names []string) bool { // claims are about mechanisms, of which a run may have a product by its own name
		return slices.Contains(names, cell.Network) || slices.Contains(names, network.Mechanism(cell.Network))
	}
	return named(names) || slices.Contains(names, Others) && cell.Role == result.RoleCell && !named(slices.Concat(c.Networks, c.Against))
}
