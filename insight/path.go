package insight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
	unseen   = "no proof: the target is not netdelta's, and nobody looks where its packets arrive"
	mounted  = "no proof: there is no server; volumes are mounted by the nodes, and what they send is not the pods'"
)

// without is what a trial with these parameters lacks that has no proof.
func without(p result.Params) string {
	switch {
	case p.Target != "":
		return unseen
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

// way names the devices that a network says its packets cross: "pod0/eth0 > node0/veth0 > ...".
func way(p result.Path) string {
	var devices []string
	for _, h := range p.Hops {
		if n := len(devices); n == 0 || devices[n-1] != h.Device {
			devices = append(devices, h.Device)
		}
	}
	return strings.Join(devices, " > ")
}

// ProvedWords sum up how many trials were proved to have gone the way that their networks say, and what some proofs lack. They are
// "" where nothing was measured.
func ProvedWords(proofs []result.PathProof) string {
	proved, trials, weak := 0, 0, map[string]int{}
	for _, proof := range proofs {
		proved += proof.Proved
		trials += proof.Trials
		for _, w := range proof.Weak {
			weak[w] += proof.Trials
		}
	}
	if trials == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %d trials proved by the counters of every device", proved, trials)
	if len(weak) == 0 {
		return text + " and a sample of packets"
	}
	for _, w := range slices.Sorted(maps.Keys(weak)) {
		text += fmt.Sprintf("; weaker in %d: %s", weak[w], w)
	}
	return text
}
