package path

import (
	"fmt"

	"netdelta/network"
	"netdelta/unit"
)

// detour is a direction in which the plan has nothing pass a device that it otherwise has on the way: an end of a pair that a
// program leads packets past. What passes there after all went another way than planned.
type detour struct {
	crossing
	traffic traffic
}

// detours are those directions of planned devices that carried more than a limit.
func detours(changed map[network.Device]change, need map[crossing]unit.Bytes, limit func(network.Device) float64) []detour {
	var all []detour
	for _, d := range inOrder(changed) {
		out, in := crossing{d, true}, crossing{d, false}
		_, sends := need[out]
		_, receives := need[in]
		if sends == receives {
			continue
		}
		x := out
		if sends {
			x = in
		}
		if t := changed[d].of(x.sends); float64(t.bytes) > limit(d) {
			all = append(all, detour{x, t})
		}
	}
	return all
}

// String is a finding.
func (d detour) String() string {
	return fmt.Sprintf("%s %s %d bytes in %d packets; the plan has nothing pass it in that direction",
		d.Device, d.verb(), d.traffic.bytes, d.traffic.packets)
}
