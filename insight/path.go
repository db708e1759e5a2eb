package insight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
)

// Paths sums up which way the packets of each network went in each placement, in the order of the cells. Trials that failed
// before anything could be proved don't count.
func Paths(cells []result.Cell, trials []result.Trial) []result.PathProof {
	type key struct {
		network   string
		placement result.Placement
		mtu       unit.Bytes
		family    result.Family
	}
	at := map[key]int{}
	of, lacks := map[string]int{}, map[string]string{} // by cell
	var all []result.PathProof
	for _, c := range cells {
		k := key{c.Network, c.Placement, c.Params.MTU, c.Params.Family}
		i, known := at[k]
		if !known {
			i = len(all)
			at[k] = i
			all = append(all, result.PathProof{Network: k.network, Placement: k.placement, MTU: k.mtu, Family: k.family})
		}
		of[c.ID], lacks[c.ID] = i, without(c.Params)
	}
	for _, t := range trials {
		if i, known := of[t.Cell]; known && (t.Failed == "" || t.Path != nil) {
			note(&all[i], t.Path, lacks[t.Cell])
		}
	}
	return slices.DeleteFunc(all, func(p result.PathProof) bool { return p.Trials == 0 })
}

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

// note counts a trial's proof; lacks is what it lacks where there is none.
func note(sum *result.PathProof, p *result.Path, lacks string) {
	sum.Trials++
	weak := []string{lacks}
	if p != nil {
		weak = p.Weak
		if p.OK {
			sum.Proved++
		}
		if p.OK || sum.Seen == nil || !sum.Seen.OK {
			sum.Seen = p
		}
	}
	for _, w := range weak {
		if !slices.Contains(sum.Weak, w) {
			sum.Weak = append(sum.Weak, w)
		}
	}
}

// devicesOf are the devices that a network says its packets cross.
func devicesOf(p result.Path) []string {
	var devices []string
	for _, h := range p.Hops {
		devices = append(devices, h.Device)
	}
	return slices.Compact(devices)
}

// Links sums up how each cell's traffic was spread over the links of the bonds on its way, in the order of the cells, of the
// bonds and of their links. Only trials that count in deltas count here.
func Links(cells []result.Cell, trials []result.Trial) []result.LinkShare {
	of := map[string][]*result.Trial{}
	for i := range trials {
		t := &trials[i]
		if t.Failed == "" && len(t.Links) > 0 && (t.Path == nil || t.Path.OK) {
			of[t.Cell] = append(of[t.Cell], t)
		}
	}
	var all []result.LinkShare
	for _, c := range cells {
		measured := of[c.ID]
		if len(measured) == 0 || c.Role == result.RoleControl { // the A/A control is the baseline once more
			continue
		}
		for _, l := range measured[0].Links {
			s := result.LinkShare{
				Cell: c.ID, Network: c.Network, Workload: c.Workload, Params: c.Params, Placement: c.Placement, Bond: l.Bond, Device: l.Device,
			}
			var shares, used []float64
			for _, t := range measured {
				i := slices.IndexFunc(t.Links, func(o result.LinkUse) bool { return o.Device == l.Device })
				if i < 0 {
					continue
				}
				shares = append(shares, t.Links[i].Share)
				used = append(used, usedOf(t, t.Links[i], float64(c.Params.Conditions.LinkRate)))
			}
			s.Builds, s.Share, s.Used = len(shares), stats.Median(shares), stats.Median(used)
			s.ShareLow, s.ShareHigh = slices.Min(shares), slices.Max(shares)
			all = append(all, s)
		}
	}
	return all
}

// usedOf is the part of a link's rate that the bursts of a trial used, with their warm-up.
func usedOf(t *result.Trial, l result.LinkUse, rate float64) float64 {
	var span int64
	for _, s := range t.Bursts.Span {
		span += s
	}
	if span == 0 || rate == 0 {
		return 0
	}
	const bits, seconds = 8, 1e9
	return float64(l.Sent) * bits / (float64(span) / seconds) / rate
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
			n, begun := failures(t.trial)
			failed, of = failed+n, of+begun
		}
	}
	if failed == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d transactions failed and are in no figure", failed, of)
}

// Services are the daemons behind the trials that count, each once, by name: what they took at most, and how often they had to
// be started again.
func Services(trials []result.Trial) []result.Service {
	most := map[string]result.Service{}
	for _, t := range trials {
		if t.Failed != "" {
			continue
		}
		for _, s := range t.Services {
			had, known := most[s.Name]
			if known {
				s.Memory, s.Restarts = max(s.Memory, had.Memory), max(s.Restarts, had.Restarts)
			}
			most[s.Name] = s
		}
	}
	var all []result.Service
	for _, name := range slices.Sorted(maps.Keys(most)) {
		all = append(all, most[name])
	}
	return all
}
