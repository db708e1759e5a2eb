package study_test

import (
	"testing"

	"netdelta/experiment/study"
	"netdelta/result"
)

// Where one link is held against two, a condition on the hash of the two holds for the one, which has none.
func TestHoldsInComparison(t *testing.T) {
	one := result.Cell{}
	two := func(hash string) result.Cell {
		return result.Cell{Params: result.Params{Conditions: result.Conditions{LinkCount: 2, BondHash: hash}.Plain()}}
	}
	c := study.Condition{Key: "bond.xmit_hash_policy", Values: []string{"layer2"}}
	for _, k := range []struct {
		cell result.Cell
		key  string
		want bool
	}{
		{one, "link.count", true}, {one, "message", false}, {one, "", false},
		{two("layer2"), "link.count", true}, {two("layer3+4"), "link.count", false}, {two("layer2"), "", true},
	} {
		if got := c.HoldsInComparison(k.cell, k.key); got != k.want {
			t.Errorf("%s next to %q, with %d links hashed by %q: %v, want %v",
				c, k.key, k.cell.Params.Conditions.LinkCount, k.cell.Params.Conditions.BondHash, got, k.want)
		}
	}
	rules := study.Condition{Key: "policy.rules", Values: []string{"1000"}}
	if !rules.HoldsInComparison(one, "policy") || rules.HoldsInComparison(one, "link.count") {
		t.Error("the number of a policy's rules is not seen to mean nothing where there is no policy, or elsewhere too")
	}
}
