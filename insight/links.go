package insight

import (
	"slices"

	"netdelta/result"
	"netdelta/stats"
)

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
		if len(measured) == 0 || c.Role == result.RoleTwin { // the twin is the baseline once more
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
