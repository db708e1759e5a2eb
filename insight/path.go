package insight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
)

// What a trial without a proof lacks.
const (
	unproved = "no proof: this testbed does not show its devices"
	external = "no proof: the target is external, so nothing watches where its packets arrive"
	mounted  = "no proof: volumes are mounted by the nodes, so pods have no server"
)

// without is what a trial with these parameters lacks that has no proof.
func without(p result.Params) string {
	switch {
	case p.Target != "":
		return external
	case p.StorageClass != "":
		return mounted
	}
	return unproved
}

// devicesOf are the devices that a network says its packets cross.
func devicesOf(p result.Path) []string {
	devices := gather.Each(p.Hops, func(h result.PathHop) string { return h.Device })
	return slices.Compact(devices)
}

// links sum up how each cell's traffic was spread over the links of the bonds on its way, in the order of the cells, of the
// bonds and of their links. Only trials that count in deltas count here.
func links(cells []result.Cell, batches []batch) []result.LinkShare {
	var all []result.LinkShare
	for _, c := range cells {
		if c.Role == result.RoleControl { // the A/A control is the baseline once more
			continue
		}
		var measured []*summary
		for _, s := range batches {
			if t := s.good(c.ID); t != nil && len(t.links) > 0 {
				measured = append(measured, t)
			}
		}
		if len(measured) == 0 {
			continue
		}
		for _, l := range measured[0].links {
			s := result.LinkShare{
				Cell: c.ID, Network: c.Network, Setting: c.Setting(), Bond: l.Bond, Device: l.Device,
			}
			var shares, used []float64
			for _, t := range measured {
				i := slices.IndexFunc(t.links, func(o result.LinkUse) bool { return o.Device == l.Device })
				if i < 0 {
					continue
				}
				shares = append(shares, t.links[i].Share)
				used = append(used, t.used(t.links[i], cmp.Or(t.links[i].Rate, c.Params.Conditions.LinkRate)))
			}
			s.Builds, s.Share, s.Used = len(shares), stats.Median(shares), stats.Median(used)
			s.ShareLow, s.ShareHigh = slices.Min(shares), slices.Max(shares)
			all = append(all, s)
		}
	}
	return all
}

// used is the part of a link's rate that the bursts of a trial used, with their warm-up.
func (s *summary) used(l result.LinkUse, rate unit.BitsPerSecond) float64 {
	var span int64
	for _, ns := range s.spans {
		span += ns
	}
	if span == 0 || rate == 0 {
		return 0
	}
	const bits, seconds = 8, 1e9
	return float64(l.Sent) * bits / (float64(span) / seconds) / float64(rate)
}

// Unwell begins the reason of a burst that was left out because a daemon that serves it failed.
const Unwell = "service unwell"

// unwellServices counts the bursts that were left out because a daemon failed, by what was wrong with it.
func unwellServices(b result.Bursts) map[string]int {
	found := map[string]int{}
	for _, reason := range b.Disturbed {
		if why, ok := strings.CutPrefix(reason, Unwell); ok {
			found[strings.TrimPrefix(why, ": ")]++
		}
	}
	return found
}

// failures are the transactions of a trial that failed, of so many that were begun: as the trial sums them up, or without
// such a sum as its bursts count them.
func failures(t *result.Trial) (failed, of int64) {
	failed = t.Errors
	done := t.Transactions
	if failed == 0 {
		done = 0
		for i, n := range t.Bursts.Errors {
			failed += n
			if i < len(t.Bursts.Transactions) {
				done += t.Bursts.Transactions[i]
			}
		}
	}
	return failed, done + failed
}

// failedShare warns of the transactions of a cell that failed, which no figure holds; "" if none did.
func failedShare(cell string, all []batch) string {
	failed, of := int64(0), int64(0)
	for _, s := range all {
		if t := s.good(cell); t != nil {
			failed, of = failed+t.errors, of+t.begun
		}
	}
	if failed == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d transactions failed and are in no figure", failed, of)
}
