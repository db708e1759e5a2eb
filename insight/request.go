package insight

import (
	"slices"

	"netdelta/result"
)

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
