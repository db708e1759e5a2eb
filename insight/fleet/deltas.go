// Package fleet judges what fleets have measured: each network against the baseline, burst by burst.
package fleet

import (
	"math"
	"slices"

	"netdelta/experiment/fleet"
	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/stats"
)

// Delta is one metric of a network against the baseline of the same rounds, over all builds.
type Delta struct {
	Network  string `json:"network"`
	Baseline string `json:"baseline"`
	Metric   string `json:"metric"`
	Unit     string `json:"unit"`
	Better   string `json:"better"`
	// BaselineValue and Value are medians over bursts.
	BaselineValue float64 `json:"baseline_value"`
	Value         float64 `json:"value"`
	// Ratio is value over baseline; its bounds are null with too few builds for an interval.
	Ratio     float64       `json:"ratio"`
	RatioLow  *float64      `json:"ratio_low"`
	RatioHigh *float64      `json:"ratio_high"`
	P         float64       `json:"p"`
	PAdjusted float64       `json:"p_adjusted"`
	Blocks    int           `json:"blocks"`
	Rounds    int           `json:"rounds"`
	Need      int           `json:"need"`
	Verdict   stats.Verdict `json:"verdict"`
	// Excluded counts rounds that were left out since fewer than 95% of the clients fired, in this network or in the baseline.
	Excluded int `json:"excluded"`
}

// Report is an outcome with its deltas.
type Report struct {
	fleet.Outcome
	Deltas []Delta `json:"deltas"`
	// Null is the baseline against its A/A control: a delta smaller than it is never called real.
	Null []Delta `json:"null"`
}

// complete is the share of clients that a burst needs to be compared: with fewer there is less load, which is another question.
const complete = 0.95

// metric is a figure of a burst.
type metric struct {
	name, unit string
	better     stats.Better
	of         func(fleet.Burst) float64
}

// Judge compares each network with the baseline. The options hold for all deltas.
func Judge(o fleet.Outcome, options stats.Options) Report {
	r := Report{Outcome: o, Deltas: []Delta{}, Null: []Delta{}}
	at := func(role result.Role) *fleet.Network {
		if i := slices.IndexFunc(o.Networks, func(n fleet.Network) bool { return n.Role == role }); i >= 0 {
			return &o.Networks[i]
		}
		return nil
	}
	baseline, control := at(result.RoleBaseline), at(result.RoleControl)
	if baseline == nil || control == nil {
		return r
	}
	for _, m := range metricsOf(o.Networks) {
		r.judge(m, baseline, control, options)
	}
	return r
}

// metricsOf are the figures that bursts have: latencies where there are any, else throughput.
func metricsOf(all []fleet.Network) []metric {
	if !slices.ContainsFunc(all, func(n fleet.Network) bool { return n.Latency != nil }) {
		return []metric{{"throughput", "bit/s", stats.HigherBetter, func(v fleet.Burst) float64 { return v.Throughput / float64(v.Clients) }}}
	}
	return []metric{
		{"p50", "ns", stats.LowerBetter, func(v fleet.Burst) float64 { return v.P50 }},
		{"p99", "ns", stats.LowerBetter, func(v fleet.Burst) float64 { return v.P99 }},
		{"rate", "1/s", stats.HigherBetter, func(v fleet.Burst) float64 { return v.Rate / float64(v.Clients) }},
	}
}

// judge adds the deltas of one metric.
func (r *Report) judge(m metric, baseline, control *fleet.Network, options stats.Options) {
	null, excluded := r.pairs(m, control, baseline, baseline)
	nullEstimate := stats.Compare(null, options)
	floor := stats.NoiseFloor(nullEstimate)
	d := deltaOf(m, nullEstimate, control, baseline, excluded)
	d.PAdjusted, d.Verdict = nullEstimate.P, stats.Judge(nullEstimate, nullEstimate.P, 0, m.better, options)
	r.Null = append(r.Null, d)

	var estimates []stats.Estimate
	var family []float64
	first := len(r.Deltas)
	for i := range r.Networks {
		n := &r.Networks[i]
		if n.Role != result.RoleCell {
			continue
		}
		builds, excluded := r.pairs(m, n, baseline, control)
		e := stats.Compare(builds, options)
		estimates, family = append(estimates, e), append(family, e.P)
		r.Deltas = append(r.Deltas, deltaOf(m, e, n, baseline, excluded))
	}
	for i, p := range stats.Holm(family) {
		d := &r.Deltas[first+i]
		if math.IsNaN(p) {
			p = 1 // nothing was measured
		}
		d.PAdjusted, d.Verdict = p, stats.Judge(estimates[i], p, floor, m.better, options)
	}
}

// pairs pairs the bursts of the same rounds, build by build, and counts the rounds that were left out.
func (r *Report) pairs(m metric, cell, baseline, control *fleet.Network) (builds []stats.Build, excluded int) {
	type key struct{ build, round int }
	index := func(n *fleet.Network) map[key]fleet.Burst {
		all := map[key]fleet.Burst{}
		for _, v := range n.Bursts {
			all[key{v.Build, v.Round}] = v
		}
		return all
	}
	others, controls := index(baseline), index(control)
	type columns struct{ cell, baseline, control []float64 }
	var all []columns
	for _, v := range cell.Bursts {
		for len(all) <= v.Build {
			all = append(all, columns{}) // each build has its place, also one that failed
		}
		b, t := others[key{v.Build, v.Round}], controls[key{v.Build, v.Round}]
		if float64(min(v.Clients, b.Clients, t.Clients)) < complete*float64(r.Clients) {
			excluded++
			continue
		}
		c := &all[v.Build]
		c.cell, c.baseline, c.control = append(c.cell, math.Log(m.of(v))), append(c.baseline, math.Log(m.of(b))), append(c.control, math.Log(m.of(t)))
	}
	for _, c := range all {
		builds = append(builds, stats.Pair(c.cell, c.baseline, c.control))
	}
	return builds, excluded
}

// deltaOf writes an estimate down.
func deltaOf(m metric, e stats.Estimate, n, baseline *fleet.Network, excluded int) Delta {
	d := Delta{
		Network: n.Network, Baseline: baseline.Network, Metric: m.name, Unit: m.unit, Better: string(m.better), P: e.P,
		BaselineValue: medianOf(m, baseline), Value: medianOf(m, n), Blocks: e.Builds, Rounds: e.Rounds, Need: e.Need, Excluded: excluded,
	}
	if !math.IsNaN(e.Center) {
		d.Ratio = math.Exp(e.Center)
	}
	if e.HasInterval {
		low, high := math.Exp(e.Low), math.Exp(e.High)
		d.RatioLow, d.RatioHigh = &low, &high
	}
	return d
}

func medianOf(m metric, n *fleet.Network) float64 {
	all := gather.Each(n.Bursts, m.of)
	if len(all) == 0 {
		return 0
	}
	return stats.Median(all)
}
