package insight

import (
	"slices"

	"netdelta/result"
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
