package insight

import (
	"fmt"
	"strings"

	"netdelta/result"
	"netdelta/unit"
)

// SplitSays puts a split in words: what is measured, and what is a difference of two measured figures.
func SplitSays(s result.Split) string {
	text := fmt.Sprintf("%s = disk %s, %s in client, server and network %s, %s for %s",
		unit.Duration(s.Total), unit.Duration(s.Disk), unit.Duration(s.Common), s.Baseline, unit.Difference(s.Added), Name(s.Network, s.Path))
	if s.AddedLow != nil && s.AddedHigh != nil {
		text += fmt.Sprintf(" [%s, %s]", unit.Difference(*s.AddedLow), unit.Difference(*s.AddedHigh))
	}
	if s.RoundTrip > 0 {
		text += "; a raw round trip is " + unit.Duration(s.RoundTrip) + " of it"
	}
	return text
}

// SplitMeans says what the parts of splits are.
func SplitMeans() string {
	return "The total and the disk, without a network, are measured; the rest are differences of what is measured. Only the last part depends on the network."
}

// ReplicatedSays puts what a cluster says of its replication in words.
func ReplicatedSays(r result.Replicated) string {
	text := fmt.Sprintf("replication %s (at most %s)", unit.Duration(r.Mean), unit.Duration(r.Max))
	if r.Rate > 0 {
		text += " at " + Value(Unit(result.Delta{Workload: r.Workload, Unit: unitPerSecond}), r.Rate)
	}
	return text
}

// Subject names the setting of a correlation's application.
func Subject(c result.Correlation) string {
	return Load(result.Setting{Workload: c.Workload, Params: c.Params, Placement: c.Placement})
}

// Raw names what a correlation's application is held against.
func Raw(c result.Correlation) string {
	what := "round trip"
	if c.RawMetric != metricP50 {
		what = "throughput"
	}
	return what + " of " + c.RawWorkload
}

// CorrelationSays puts a correlation in words, and says where there are too few networks for it to mean much.
func CorrelationSays(c result.Correlation) string {
	text := fmt.Sprintf("%+.2f", c.Pearson)
	few := c.PearsonLow == nil || c.PearsonHigh == nil
	if !few {
		text += fmt.Sprintf(" [%+.2f, %+.2f]", *c.PearsonLow, *c.PearsonHigh)
	}
	text += fmt.Sprintf(" of logarithms, %+.2f of ranks (p %.2g), over %d networks", c.Spearman, c.P, len(c.Points))
	const wide = 1 // half of all that there is
	switch {
	case few:
		text += "; too few for an interval: it takes four"
	case *c.PearsonHigh-*c.PearsonLow >= wide:
		text += "; they are few, and the interval is wide"
	}
	return text
}

// ServiceSays puts what a daemon took in words: "ceph-osd.1 212 MiB".
func ServiceSays(s result.Service) string {
	text := s.Name
	if s.Memory > 0 {
		text += fmt.Sprintf(" %d MiB", (s.Memory+unit.MiB/2)/unit.MiB)
	}
	if s.Restarts > 0 {
		text += fmt.Sprintf(" (started again %d %s)", s.Restarts, agree(s.Restarts, "time", "times"))
	}
	return text
}

// ServicesSay lists the daemons of a run with what they took at most, "" where there are none.
func ServicesSay(all []result.Service) string {
	parts := make([]string, len(all))
	for i, s := range all {
		parts[i] = ServiceSays(s)
	}
	return strings.Join(parts, ", ")
}
