package words_test

import (
	"testing"

	"netdelta/report/words"
	"netdelta/result"
)

func TestAcross(t *testing.T) {
	side := result.Delta{Network: "host", Baseline: "gw", Blocks: 6}
	plain := result.Delta{Network: "vxlan", Baseline: "gw", Blocks: 6, Across: &result.Across{State: "vxlan", Baseline: "gw"}}
	double := plain
	double.Blocks, double.Across = 4, &result.Across{State: "wg", Baseline: "gw", Reference: "host"}
	const begin = "Against gw, across "
	for want, deltas := range map[string][]result.Delta{
		"": {side},
		begin + "6 visits to each state of the cluster, paired block by block: the figures of the visits are compared as they are.":                                                                    {side, plain},
		begin + "4 to 6 visits to each state of the cluster, paired block by block: double differences, of what each visit differs from host in the same visit, which the null checks say is tighter.": {double, plain},
	} {
		if got := words.Across(deltas); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
