package words

import (
	"fmt"

	"netdelta/result"
	"netdelta/unit"
)

// Across says how the headline deltas of a setting were taken that are across states of the cluster; "" where there are none.
func Across(deltas []result.Delta) string {
	fewest, most := 0, 0
	var first *result.Delta
	for i, d := range deltas {
		switch {
		case d.Across == nil:
			continue
		case first == nil:
			first, fewest, most = &deltas[i], d.Blocks, d.Blocks
		}
		fewest, most = min(fewest, d.Blocks), max(most, d.Blocks)
	}
	if first == nil {
		return ""
	}
	visits := unit.Counted(most, "visit")
	if fewest < most {
		visits = fmt.Sprintf("%d to %s", fewest, visits)
	}
	how := "the figures of the visits are compared as they are"
	if r := first.Across.Reference; r != "" {
		how = fmt.Sprintf("double differences, of what each visit differs from %s in the same visit, which the null checks say is tighter", r)
	}
	return fmt.Sprintf("Against %s, across %s to each state of the cluster, paired block by block: %s.", first.Baseline, visits, how)
}
