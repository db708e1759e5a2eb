package words_test

import (
	"strings"
	"testing"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
)

// An effect of a level that is a change of the cluster says so as well.
func TestEffectAcross(t *testing.T) {
	table := insight.EffectTable{Factor: "mtu", From: "1500", To: "9000", Margin: 0.02, Deltas: []result.Delta{{
		Network: "pod", Baseline: "1500", Headline: true, Judgement: result.Judgement{Verdict: "unresolved", Blocks: 3}, Across: &result.Across{State: "mtu=9000", Baseline: "as found"},
	}}}
	if says := words.Effect(table); !strings.HasSuffix(says, ". Against 1500, across 3 visits to each state of the cluster, paired block by block: the figures of the visits are compared as they are.") {
		t.Errorf("it says %q", says)
	}
}

func TestAcross(t *testing.T) {
	side := result.Delta{Network: "host", Baseline: "gw", Judgement: result.Judgement{Blocks: 6}}
	plain := result.Delta{Network: "vxlan", Baseline: "gw", Judgement: result.Judgement{Blocks: 6}, Across: &result.Across{State: "vxlan", Baseline: "gw"}}
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
