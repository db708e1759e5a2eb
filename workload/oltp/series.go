package oltp

import (
	"cmp"
	"math"
	"time"

	"netdelta/result"
	"netdelta/workload/tool/sysbench"
)

// series cuts a run that begins at the given second of the trial into its seconds. They hold as many transactions as the run:
// sysbench rounds its seconds, and does not report the last one.
func series(r sysbench.Report, at float64) []result.Second {
	var points []result.Second
	var before int64
	for i, s := range r.Seconds {
		upTo := min(before+int64(math.Round(s.TPS)), r.Transactions)
		if float64(i+1) >= r.Time.Seconds() {
			upTo = r.Transactions
		}
		points = append(points, result.Second{At: at + float64(i), Span: 1, Transactions: upTo - before})
		before = upTo
	}
	rest := r.Time.Seconds() - float64(len(r.Seconds))
	switch {
	case before == r.Transactions:
	case rest > 0.1 || len(points) == 0:
		points = append(points, result.Second{At: at + float64(len(points)), Span: max(rest, 0), Transactions: r.Transactions - before})
	default: // the last transactions end a little after the last second
		points[len(points)-1].Transactions += r.Transactions - before
	}
	return points
}

// between is what replication took between two readings of its figures; nil where nothing was replicated. Its least and its
// greatest are those since the figures were cleared.
func between(before, after *result.Replication) *result.Replication {
	if before == nil || after == nil || after.Samples < before.Samples {
		return after
	}
	if after.Samples == before.Samples {
		return nil
	}
	sum := after.Mean.Seconds()*float64(after.Samples) - before.Mean.Seconds()*float64(before.Samples)
	r := *after
	r.Samples -= before.Samples
	r.Mean = min(max(time.Duration(sum/float64(r.Samples)*float64(time.Second)), r.Min), r.Max)
	return &r
}

// merge is what two spans of replication were together; either may be nil.
func merge(a, b *result.Replication) *result.Replication {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	all := a.Samples + b.Samples
	mean := (a.Mean.Seconds()*float64(a.Samples) + b.Mean.Seconds()*float64(b.Samples)) / float64(all)
	return &result.Replication{
		Min: min(a.Min, b.Min), Mean: time.Duration(mean * float64(time.Second)), Max: max(a.Max, b.Max), Samples: all,
	}
}
