package path

import (
	"maps"

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
