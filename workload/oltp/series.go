package oltp

import (
	"math"

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
