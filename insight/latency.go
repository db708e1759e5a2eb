package insight

import (
	"maps"
	"math"
	"slices"
	"time"

	"netdelta/result"
	"netdelta/stats"
)

// splits say where the latency of each cell goes whose server has measured its storage without a network. What is measured is
// the total and the disk; the rest are differences of measured figures. Deltas must be filled in.
func splits(run result.Run, all []batch) []result.Split {
	var splits []result.Split
	for _, d := range run.Deltas {
		if d.Metric != metricP50 || d.Ratio == 0 {
			continue
		}
		disk := diskOf(d.Cell, all)
		if disk <= 0 {
			continue
		}
		s := result.Split{
			Cell: d.Cell, Network: d.Network, Setting: d.Setting, Path: d.Path, Baseline: d.Baseline,
			Total: time.Duration(d.Value), Disk: disk, Common: time.Duration(d.BaselineValue) - disk, Added: time.Duration(d.Difference),
		}
		if d.DifferenceLow != nil && d.DifferenceHigh != nil {
			low, high := time.Duration(*d.DifferenceLow), time.Duration(*d.DifferenceHigh)
			s.AddedLow, s.AddedHigh = &low, &high
		}
		for _, raw := range run.Deltas {
			if raw.Workload == rawLatency && raw.Metric == metricP50 && raw.Network == d.Network && raw.Path == d.Path && alike(raw.Setting, d.Setting) {
				s.RoundTrip = time.Duration(raw.Value)
				break
			}
		}
		splits = append(splits, s)
	}
	return splits
}

// diskOf is the median latency of the storage behind a cell without a network, the median over its trials; 0 where none has it.
func diskOf(cell string, all []batch) time.Duration {
	var disks []float64
	for _, s := range all {
		if t := s.good(cell); t != nil && t.disk != nil && t.disk.P50 > 0 {
			disks = append(disks, float64(t.disk.P50))
		}
	}
	if len(disks) == 0 {
		return 0
	}
	return time.Duration(stats.Median(disks))
}

// replications say of each cell what its cluster measured of its replication, and the rate of its clients.
func replications(cells []result.Cell, sat []batch) []result.Replicated {
	var all []result.Replicated
	rate := rateMetric()
	for _, c := range cells {
		// The A/A control is the baseline once more, and references are the nodes' network in other states.
		if c.Role == result.RoleControl || c.Role == result.RoleReference || c.Skipped != "" {
			continue
		}
		var means, rates []float64
		r := result.Replicated{
			Cell: c.ID, Network: c.Network, Setting: c.Setting(), Path: c.Path,
		}
		for _, s := range sat {
			t := s.good(c.ID)
			if t == nil || t.replication == nil || t.replication.Samples == 0 {
				continue
			}
			means = append(means, float64(t.replication.Mean))
			r.Max = max(r.Max, t.replication.Max)
			if values := rate.values(t); len(values) > 0 {
				rates = append(rates, stats.Median(values))
			}
		}
		if len(means) == 0 {
			continue
		}
		r.Mean = time.Duration(stats.Median(means))
		if len(rates) > 0 {
			r.Rate = stats.Median(rates)
		}
		all = append(all, r)
	}
	return all
}

// rateMetric is the metric of transactions per second.
func rateMetric() metric {
	all := metrics()
	return all[slices.IndexFunc(all, func(m metric) bool { return m.name == metricRate })]
}

// The workloads whose figures are about the network alone.
const (
	rawLatency   = "tcp-rr"
	rawBandwidth = "tcp-stream"
)

// alike says whether two settings are of the same networks: in the same placement, of the same IP, MTU and conditions.
func alike(a, b result.Setting) bool {
	return a.Placement == b.Placement && a.Params.Conditions == b.Params.Conditions && a.Params.MTU == b.Params.MTU && a.Params.Family == b.Params.Family
}

// Correlations holds what applications got done on each network, in transactions per second, against what the network measures
// raw in the same run: the round trip of tcp-rr and the throughput of tcp-stream, in the first setting of each that is of the
// same networks. It takes three networks, the baseline among them. Deltas must be filled in.
func Correlations(run result.Run) []result.Correlation {
	parts := Parts(run)
	var all []result.Correlation
	for _, part := range parts {
		value := pointsOf(part, metricRate)
		if len(value.at) < 3 {
			continue
		}
		for _, raw := range []struct{ workload, metric string }{{rawLatency, metricP50}, {rawBandwidth, metricThroughput}} {
			i := slices.IndexFunc(parts, func(p Part) bool { return p.Setting.Workload == raw.workload && alike(p.Setting, part.Setting) })
			if i < 0 {
				continue
			}
			if c, ok := correlate(value, pointsOf(parts[i], raw.metric), run); ok {
				c.Workload, c.Params, c.Placement, c.Metric, c.Unit = part.Setting.Workload, part.Setting.Params, part.Setting.Placement, metricRate, value.unit
				c.RawWorkload, c.RawParams, c.RawMetric = raw.workload, parts[i].Setting.Params, raw.metric
				all = append(all, c)
			}
		}
	}
	return all
}

// points are the values of a metric in a setting, by network.
type points struct {
	unit  string
	order []result.CorrelationPoint // Value alone
	at    map[string]float64
}

// pointsOf takes them from deltas, in which what the machine did meanwhile has dropped out, and from the baseline.
func pointsOf(part Part, name string) points {
	p := points{at: map[string]float64{}}
	add := func(network, path string, v float64) {
		if key := Name(network, path); v > 0 && p.at[key] == 0 {
			p.at[key] = v
			p.order = append(p.order, result.CorrelationPoint{Network: network, Path: path, Value: v})
		}
	}
	for _, d := range part.Deltas {
		if d.Metric == name && d.Ratio > 0 {
			p.unit = d.Unit
			add(d.Baseline, "", d.BaselineValue)
			add(d.Network, d.Path, d.Value)
		}
	}
	return p
}

// correlate holds the values of networks against their raw figures; it is not ok with fewer than three, or where all are alike.
func correlate(value, raw points, run result.Run) (c result.Correlation, ok bool) {
	var x, y []float64
	for _, p := range value.order {
		if p.Raw = raw.at[Name(p.Network, p.Path)]; p.Raw > 0 {
			c.Points = append(c.Points, p)
			x, y = append(x, math.Log(p.Raw)), append(y, math.Log(p.Value))
		}
	}
	confidence := run.Confidence
	if confidence <= 0 {
		confidence = stats.DefaultConfidence
	}
	s := stats.Correlate(x, y, confidence, run.Seed)
	if math.IsNaN(s.Pearson) || math.IsNaN(s.Spearman) {
		return c, false
	}
	c.RawUnit = raw.unit
	c.Pearson, c.PearsonLow, c.PearsonHigh, c.Spearman, c.P = s.Pearson, finite(s.Low), finite(s.High), s.Spearman, s.P
	switch c.Verdict = result.CorrelationOpen; {
	case s.Low > 0:
		c.Verdict = result.CorrelationRises
	case s.High < 0:
		c.Verdict = result.CorrelationFalls
	}
	return c, true
}

// Request is a request of the user's own: how long it takes, and how many calls across the network it makes one after the other.
type Request struct {
	Took  float64 // in nanoseconds
	Calls int
}

// RequestShare is what a network adds to a request, against the baseline.
type RequestShare struct {
	Delta result.Delta
	// Added is the time of all calls in nanoseconds, and Share what part of the request that is; each with an interval if Known.
	Added, AddedLow, AddedHigh float64
	Share, Low, High           float64
	Known                      bool
}

// Matters says whether a share is beyond a margin: yes, no, or neither where that can't be told.
func (s RequestShare) Matters(margin float64) (yes, no bool) {
	return s.Known && (s.Low > margin || s.High < -margin), s.Known && s.High <= margin && s.Low >= -margin
}

// Shares are what each network adds to the request in each placement. They are taken from the setting that is most like a lone request:
// one that wakes both ends, else the first with round trips. A call is a round trip of that setting's message.
func (r Request) Shares(run result.Run) []RequestShare {
	var all []RequestShare
	parts := Parts(run)
	for _, p := range []result.Placement{result.SameNode, result.CrossNode} {
		of := func(regime string) int {
			return slices.IndexFunc(parts, func(part Part) bool {
				heads := part.Headlines()
				return part.Setting.Placement == p && len(heads) > 0 && heads[0].Unit == "ns" && heads[0].Metric == metricP50 &&
					(regime == "" || part.Setting.Regime() == regime)
			})
		}
		i := of(result.RegimeWaking)
		if i < 0 {
			i = of("")
		}
		if i < 0 {
			continue
		}
		for _, d := range parts[i].Headlines() {
			all = append(all, r.share(d))
		}
	}
	return all
}

func (r Request) share(d result.Delta) RequestShare {
	calls := float64(r.Calls)
	s := RequestShare{Delta: d, Added: calls * d.Difference, Share: calls * d.Difference / r.Took}
	if d.DifferenceLow != nil && d.DifferenceHigh != nil {
		s.Known = true
		s.AddedLow, s.AddedHigh = calls**d.DifferenceLow, calls**d.DifferenceHigh
		s.Low, s.High = s.AddedLow/r.Took, s.AddedHigh/r.Took
	}
	return s
}

// Record is the request with its shares as a run's record holds them.
func (r Request) Record(run result.Run) *result.Request {
	record := &result.Request{Took: r.Took, Calls: r.Calls, Shares: []result.RequestShare{}}
	for _, s := range r.Shares(run) {
		d := s.Delta
		share := result.RequestShare{
			Network: d.Network, Baseline: d.Baseline, Setting: d.Setting, Path: d.Path,
			Added: s.Added, Share: s.Share, Matters: result.MattersUnknown,
		}
		if s.Known {
			share.AddedLow, share.AddedHigh, share.ShareLow, share.ShareHigh = &s.AddedLow, &s.AddedHigh, &s.Low, &s.High
		}
		switch yes, no := s.Matters(run.Margin); {
		case yes:
			share.Matters = result.MattersYes
		case no:
			share.Matters = result.MattersNo
		}
		record.Shares = append(record.Shares, share)
	}
	return record
}

// byClient says how the rates of cells came from their clients.
func byClient(cells []result.Cell, all []batch) (rates []result.SharedRate) {
	for _, c := range cells {
		if c.Role == result.RoleControl || c.Skipped != "" {
			continue
		}
		byNode := map[string][]float64{}
		for _, s := range all {
			t := s.good(c.ID)
			if t == nil {
				continue
			}
			for _, one := range t.clients {
				byNode[one.Node] = append(byNode[one.Node], one.Rate)
			}
		}
		if len(byNode) == 0 {
			continue
		}
		r := result.SharedRate{Cell: c.ID, Network: c.Network, Setting: c.Setting(), Path: c.Path}
		for _, node := range slices.Sorted(maps.Keys(byNode)) {
			r.Clients = append(r.Clients, result.ClientRate{Node: node, Rate: stats.Median(byNode[node])})
		}
		rates = append(rates, r)
	}
	return rates
}
