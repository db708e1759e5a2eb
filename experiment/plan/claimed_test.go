package plan_test

import (
	"slices"
	"testing"
	"time"

	"netdelta/experiment/plan"
	"netdelta/result"
)

// TestClaimedFirst: a time budget that does not hold all holds what the study's claims are about, and what turns out not to fit is what no claim
// needs.
func TestClaimedFirst(t *testing.T) {
	cells := settings(4, 4)
	var connections []int
	for _, c := range cells {
		if !slices.Contains(connections, c.Params.Connections) {
			connections = append(connections, c.Params.Connections)
		}
	}
	claimed := connections[2]
	of := rules(time.Minute)
	of.Claimed = map[string]bool{}
	for _, c := range cells {
		if c.Params.Connections == claimed && c.Role == result.RoleCell {
			of.Claimed[c.ID] = true // one is enough for its load
			break
		}
	}
	kept := func(cells []result.Cell) (all []int) {
		for _, c := range cells {
			if c.Skipped == "" && !slices.Contains(all, c.Params.Connections) {
				all = append(all, c.Params.Connections)
			}
		}
		return all
	}
	for of.Budget = 10 * time.Second; ; of.Budget += 5 * time.Second {
		fitted, err := plan.Fit(cells, costs(), of)
		if err != nil && of.Budget < time.Minute {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := kept(fitted.Cells); !slices.Equal(got, []int{claimed}) {
			t.Errorf("the least budget, %v, holds %v, want the claimed load %d", of.Budget, got, claimed)
		}
		break
	}
	of.Budget = time.Minute
	w := &world{burst: 300 * time.Millisecond, perCell: 40 * time.Millisecond, ahead: true} // far longer than was guessed
	s := plan.NewScheduler(cells, of, costs())
	w.run(t, s)
	if got := kept(s.Shed().Mark(cells)); !slices.Equal(got, []int{claimed}) {
		t.Errorf("a slow machine has kept %v, want the claimed load %d", got, claimed)
	}
}
