package hops

import (
	"cmp"
	"fmt"
	"slices"

	"netdelta/experiment/tracing"
	"netdelta/probe/hops"
)

// Outliers are the slowest transactions of a network, and what was different about them.
type Outliers struct {
	// Quantile is beyond which transactions are outliers, Threshold its round trip in nanoseconds.
	Quantile  float64 `json:"quantile"`
	Threshold float64 `json:"threshold_ns"`
	// Transactions are all that were looked at, Count those beyond the threshold.
	Transactions int `json:"transactions"`
	Count        int `json:"count"`
	// Reasons are sorted, the commonest among outliers first.
	Reasons []OutlierReason `json:"reasons"`
}

// OutlierReason is something that was different about transactions.
type OutlierReason struct {
	Says string `json:"says"`
	// Outliers and Others are the shares of the outliers and of all other transactions that it holds for: what holds for both
	// alike explains nothing.
	Outliers float64 `json:"outliers"`
	Others   float64 `json:"others"`
	Count    int     `json:"count"`
}

// outlierQuantile is asked for; with fewer than a thousand transactions for each outlier, what there is of the tail is taken.
const (
	outlierQuantile = 0.999
	coarseQuantile  = 0.99
	outliersLeast   = 10
)

// explain sums up what was different about the slowest transactions of all builds; nil where none were looked at.
func explain(c tracing.Cell) *Outliers {
	type seen struct {
		roundTrip int64
		says      string
	}
	var all []seen
	for _, b := range c.Builds {
		for _, e := range b.Explained {
			all = append(all, seen{e.RoundTrip, sayReason(e, b)})
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b seen) int { return cmp.Compare(a.roundTrip, b.roundTrip) })
	o := &Outliers{Quantile: outlierQuantile, Transactions: len(all)}
	if float64(len(all))*(1-outlierQuantile) < outliersLeast {
		o.Quantile = coarseQuantile
	}
	first := min(len(all)-1, int(o.Quantile*float64(len(all))))
	o.Threshold, o.Count = float64(all[first].roundTrip), len(all)-first
	counts := map[string][2]int{}
	for i, s := range all {
		n := counts[s.says]
		if i >= first {
			n[1]++
		} else {
			n[0]++
		}
		counts[s.says] = n
	}
	for says, n := range counts {
		if n[1] > 0 {
			o.Reasons = append(o.Reasons, OutlierReason{says, float64(n[1]) / float64(o.Count), float64(n[0]) / float64(max(first, 1)), n[1]})
		}
	}
	slices.SortFunc(o.Reasons, func(a, b OutlierReason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Says, b.Says))
	})
	return o
}

// sayReason puts in words what was different, with the hop where it was one.
func sayReason(e hops.Explained, b tracing.Traced) string {
	if e.Reason != hops.ReasonHop {
		return string(e.Reason)
	}
	way := b.Request
	if e.Direction == 1 {
		way = b.Response
	}
	if e.Stretch >= len(way) {
		return string(hops.ReasonOtherwise)
	}
	return fmt.Sprintf("%s %s", e.Reason, way[e.Stretch].Hop)
}
