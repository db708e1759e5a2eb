package words

import (
	"fmt"
	"slices"

	"netdelta/result"
)

// Caveats are at most two lines on what could overturn a choice that is made by a run's figures: they stand with its first table.
func Caveats(run result.Run) []string {
	switch {
	case run.Testbed == result.Imported:
		return []string{"Measured elsewhere and imported: netdelta saw neither the paths of the packets nor what else ran."}
	case run.Environment.Cluster != nil:
		return []string{"Measured on these nodes, with their cards, kernels and the load of the hour: another cluster may differ."}
	}
	all := []string{fmt.Sprintf(
		"One machine, whose nodes are joined in memory: no card, no wire, no offload of a card, and %s for all. Neither the percentages nor the times are known to hold on other machines.",
		counted(run.Environment.CPU.Count, "processor"))}
	loopback := func(d result.Delta) bool { return d.Baseline == "host" && d.Placement == result.SameNode }
	if slices.ContainsFunc(run.Deltas, loopback) {
		all = append(all, "On one node host is loopback, with an MTU of 65,535 that no pod has: large messages and streams favour it.")
	}
	return all
}
