package sysbench

import (
	"math"
	"time"
)

// Report is what one run of a database test printed. Latencies are in nanoseconds and of whole transactions.
type Report struct {
	Version string // of sysbench; "" if it was cut off
	Threads int
	// Target is the rate of transactions per second that was asked for; 0 is as many as there can be.
	Target       float64
	Transactions int64 // that succeeded, in all threads
	// Errors are transactions that failed and were tried again (deadlocks, conflicts between nodes), Reconnects connections
	// that had to be opened anew.
	Errors, Reconnects int64
	Time               time.Duration // of the whole run
	Min, Mean, Max     float64       // Min and Max to 10 µs, for that is how they are printed
	// Percentile is the one that was asked for, in percent, and AtPercentile the latency there; 0 if none was.
	Percentile, AtPercentile float64
	// Seconds is the series of the intervals that were reported, in order; the last of a run is often not.
	Seconds []Second
	// Buckets is the distribution, by rising latency; none unless it was asked for.
	Buckets []Bucket
}

// Second is one line of the series.
type Second struct {
	At          int     // seconds since the start, at its end
	TPS, Errors float64 // transactions and errors per second in it
}

// Bucket is one line of the distribution.
type Bucket struct {
	// Place is its number among those that sysbench has: 1024 from a microsecond to 100 s, on a logarithmic scale.
	Place int
	Count int64
}

// The scale of the buckets, in nanoseconds.
const (
	lowest  = float64(time.Microsecond)
	highest = float64(100 * time.Second)
	places  = 1024
)

// at is the latency at a part of the bucket: 0 is its begin, 0.5 its middle, which is what sysbench prints, and 1 its end.
func (b Bucket) at(part float64) float64 {
	return lowest * math.Pow(highest/lowest, (float64(b.Place)+part-0.5)/(places-1))
}

// placed is the place of the bucket with the given middle.
func placed(middle float64) int {
	return int(math.Round(math.Log(max(middle, lowest)/lowest) / math.Log(highest/lowest) * (places - 1)))
}

// Quantile is the latency that a share q of the transactions stays below, by the distribution, 0 without one. Within a
// bucket transactions are taken to be spread evenly: buckets are 1.8% wide, which is more than networks may differ by.
func (r Report) Quantile(q float64) float64 {
	var all int64
	for _, b := range r.Buckets {
		all += b.Count
	}
	rank := q * float64(all)
	for i, b := range r.Buckets {
		if rank <= float64(b.Count) || i == len(r.Buckets)-1 {
			return b.at(min(rank/float64(b.Count), 1))
		}
		rank -= float64(b.Count)
	}
	return 0
}

// spread is over how many values the transactions of a bucket are spread at most: as many as a histogram of three digits has
// there.
const spread = 16

// Each calls f with latencies in whole nanoseconds, and how many transactions took so long: each bucket's are spread
// evenly within it.
func (r Report) Each(f func(ns, count int64)) {
	for _, b := range r.Buckets {
		parts := min(b.Count, spread)
		for i := range parts {
			count := b.Count*(i+1)/parts - b.Count*i/parts
			f(int64(math.Round(b.at((float64(i)+0.5)/float64(parts)))), count)
		}
	}
}

// Lowest is the least latency: to 10 µs as it is printed, or closer where there is a distribution.
func (r Report) Lowest() float64 {
	if len(r.Buckets) == 0 {
		return r.Min
	}
	const half = float64(5 * time.Microsecond) // of the last digit printed
	return min(max(r.Buckets[0].at(0.5), r.Min-half), r.Min+half)
}
