package words

import (
	"fmt"
	"slices"

	"netdelta/result"
	"netdelta/unit"
)

// Caveats are at most two lines on what could overturn a choice that is made by a run's figures: they stand with its first table.
func Caveats(run result.Run) []string {
	switch {
	case run.Testbed == result.Imported:
		return []string{"Measured elsewhere: netdelta saw neither the packets' paths nor what else ran."}
	case run.Environment.Cluster != nil:
		return []string{"These nodes, their cards and kernels, the load of this hour: others may differ."}
	}
	if len(run.Environment.Servers) > 0 {
		return []string{"These servers, their cards and kernels, the load of this hour: others may differ."}
	}
	all := []string{"One machine, nodes joined in memory: no card, no wire. Others may well differ."}
	if n := run.Environment.CPU.Count; n > 0 {
		all[0] = fmt.Sprintf("One machine of %s, nodes joined in memory: no card, no wire.", unit.Counted(n, "processor"))
	}
	loopback := func(d result.Delta) bool { return d.Baseline == "host" && d.Placement == result.SameNode }
	if slices.ContainsFunc(run.Deltas, loopback) {
		all = append(all, "On one node host is loopback, whose MTU of 65,535 favours it in large messages.")
	}
	return all
}
