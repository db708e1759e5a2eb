package insight

import (
	"fmt"
	"slices"
	"strings"

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

// Spread is one side of the links of a bond: how a cell's traffic was spread over them.
type Spread struct {
	Network string
	// Load names the workload with its parameters and conditions.
	Load  string
	Bond  string
	Links []result.LinkShare
}

// Spreads takes the links of each cell and bond together.
func Spreads(links []result.LinkShare) []Spread {
	var all []Spread
	for i, l := range links {
		if i == 0 || links[i-1].Cell != l.Cell || links[i-1].Bond != l.Bond {
			all = append(all, Spread{
				Network: l.Network, Load: Load(result.Setting{Workload: l.Workload, Params: l.Params, Placement: l.Placement}), Bond: l.Bond,
			})
		}
		last := &all[len(all)-1]
		last.Links = append(last.Links, l)
	}
	return all
}

// Shares are those of the links, in their order: "97% 3%".
func (s Spread) Shares() string {
	return s.each(func(l result.LinkShare) float64 { return l.Share })
}

// Used is what each link used of its rate: "98% 3%", "" where links have no rate.
func (s Spread) Used() string {
	if !slices.ContainsFunc(s.Links, func(l result.LinkShare) bool { return l.Used > 0 }) {
		return ""
	}
	return s.each(func(l result.LinkShare) float64 { return l.Used })
}

func (s Spread) each(value func(result.LinkShare) float64) string {
	parts := make([]string, len(s.Links))
	for i, l := range s.Links {
		parts[i] = fmt.Sprintf("%.0f%%", 100*value(l))
	}
	return strings.Join(parts, " ")
}
