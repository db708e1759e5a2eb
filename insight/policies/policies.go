// Package policies summarises how soon NetworkPolicy objects take effect.
package policies

import (
	"slices"
	"time"

	"netdelta/experiment/policies"
	"netdelta/internal/gather"
	"netdelta/stats"
)

// Latency is how long one change took at one number of policies, from when its request was sent until a probe met it; or how long it took
// from the beginning of a fresh pod's program.
type Latency struct {
	Policies int             `json:"policies"`
	Change   policies.Change `json:"change"`
	Samples  int             `json:"samples"`
	// Median has an interval of 95% from Low to High where there are samples enough.
	Median time.Duration  `json:"p50_ns"`
	Low    *time.Duration `json:"low_ns,omitempty"`
	High   *time.Duration `json:"high_ns,omitempty"`
	Max    time.Duration  `json:"max_ns"`
	// Resolution is the median distance between the last probe before and the first after a change; ClockError the largest.
	Resolution time.Duration `json:"resolution_ns"`
	ClockError time.Duration `json:"clock_error_ns"`
	// Request is the median time of the request itself.
	Request time.Duration `json:"request_ns"`
	// Slipped counts packets that passed of fresh pods which no policy lets in, and SlippedIn the pods.
	Slipped   int `json:"slipped,omitempty"`
	SlippedIn int `json:"slipped_in,omitempty"`
}

// Report is an outcome with its latencies.
type Report struct {
	policies.Outcome
	Latencies []Latency `json:"latencies"`
}

// confidence of the intervals.
const confidence = 0.95

// Judge summarises the samples of an outcome.
func Judge(o policies.Outcome) Report {
	r := Report{Outcome: o}
	var counts []int
	for _, s := range o.Samples {
		counts = gather.Once(counts, s.Policies)
	}
	for _, n := range counts {
		for _, change := range policies.Changes() {
			if l := latency(o.Samples, n, change); l.Samples > 0 {
				r.Latencies = append(r.Latencies, l)
			}
		}
	}
	return r
}

func latency(all []policies.Sample, count int, change policies.Change) Latency {
	l := Latency{Policies: count, Change: change}
	var after, apart, request []float64
	for _, s := range all {
		if s.Policies != count || s.Change != change {
			continue
		}
		after, request = append(after, float64(s.After)), append(request, float64(s.Request))
		apart = append(apart, float64(s.After-s.Before))
		l.ClockError = max(l.ClockError, s.ClockError)
		if l.Slipped += s.Slipped; s.Slipped > 0 {
			l.SlippedIn++
		}
	}
	if l.Samples = len(after); l.Samples == 0 {
		return l
	}
	l.Median, l.Max = time.Duration(stats.Median(after)), time.Duration(slices.Max(after))
	l.Resolution, l.Request = time.Duration(stats.Median(apart)), time.Duration(stats.Median(request))
	if low, high, ok := stats.MedianInterval(after, confidence); ok {
		a, b := time.Duration(low), time.Duration(high)
		l.Low, l.High = &a, &b
	}
	return l
}
