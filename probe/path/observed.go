package path

import (
	"maps"
	"slices"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
)

// RoleObserved is the role of a device that a plan could not name, of which is only known that it carried the load.
const RoleObserved network.Role = "as observed"

// unforeseen are the devices that the plan can't name.
func unforeseen(p network.Plan, counters map[network.Device]testbed.Counters) map[network.Device]bool {
	if !p.Observed {
		return nil
	}
	all := map[network.Device]bool{}
	for d := range counters {
		if p.Unforeseen(d) {
			all[d] = true
		}
	}
	return all
}

// foreseen are the counters of the devices that the plan can name.
func foreseen(p network.Plan, counters map[network.Device]testbed.Counters) map[network.Device]testbed.Counters {
	if !p.Observed {
		return counters
	}
	named := maps.Clone(counters)
	maps.DeleteFunc(named, func(d network.Device, _ testbed.Counters) bool { return p.Unforeseen(d) })
	return named
}

// onWay are the counters of the devices on some ways, without those that others' packets pass.
func onWay(counters map[network.Device]testbed.Counters, ways ...[]network.Hop) map[network.Device]testbed.Counters {
	all := map[network.Device]testbed.Counters{}
	for _, h := range slices.Concat(ways...) {
		if c, there := counters[h.Device]; there {
			all[h.Device] = c
		}
	}
	return all
}

// amongOthers finds devices off the way that more of the load's packets were sampled on than on the way, where counters there say nothing. As
// many pass what is beneath a node's device: the links of its bond, the port of its bridge.
func (j *judgement) amongOthers() {
	if !j.Crowded {
		return
	}
	if j.Sample.Lacks != "" {
		j.weak("what of the load passed other devices of the nodes is not known: needs %s", j.Sample.Lacks)
	}
	onWay := map[network.Space]int{}
	for _, h := range j.crossed() {
		onWay[h.In] = max(onWay[h.In], j.on(h.Device).total)
	}
	for _, d := range slices.SortedFunc(maps.Keys(j.seen), byPlace) {
		if n := j.seen[d].total; float64(n) > (1+mixedShare)*float64(onWay[d.In]) && !j.planned(d) {
			j.find("%s carried %d sampled packets of the load, and the device on the way that the plan says %d", d, n, onWay[d.In])
		}
	}
}

// noted adds what devices that the plan can't name carried: their way is known by nothing else.
func (j *judgement) noted() {
	least := strayShare * j.reference()
	for _, d := range inOrder(j.changed) {
		if !j.Unforeseen[d] {
			continue
		}
		for _, sends := range []bool{true, false} {
			if t := j.changed[d].of(sends); float64(t.bytes) > least {
				j.path.Hops = append(j.path.Hops, result.PathHop{
					Device: d.String(), Role: string(RoleObserved), Sends: sends, Packets: t.packets, Bytes: t.bytes,
				})
			}
		}
	}
}
