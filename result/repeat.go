package result

import "math"

// Interval is an interval of a delta: of its ratio, and of its difference in the metric's unit. Bounds are null where there is none.
type Interval struct {
	RatioLow       *float64 `json:"ratio_low"`
	RatioHigh      *float64 `json:"ratio_high"`
	DifferenceLow  *float64 `json:"difference_low"`
	DifferenceHigh *float64 `json:"difference_high"`
}

// Repeating is what runs on one machine differ by beyond what the builds of each run show. The intervals of a run's deltas allow for it: they
// are for repeating the run on the same machine, at another time and after another boot.
type Repeating struct {
	// Runs is how many earlier runs on this machine the spreads rest on; 0 where none is known, and all is measured on another machine.
	Runs    int         `json:"runs"`
	Spreads []RunSpread `json:"spreads"`
}

// RunSpread is what the deltas of one workload in one regime scatter by from run to run, as standard deviations.
type RunSpread struct {
	Workload string `json:"workload"`
	Regime   string `json:"regime,omitempty"` // as Setting.Regime gives it
	// Level is of a delta of any size, on the scale of the logarithm of the ratio: 0.002 is 0.2%.
	Level float64 `json:"level"`
	// Share is of the part of the larger figure that the two differ by: of 1-1/ratio for a slower network, of 1-ratio for a faster one.
	Share float64 `json:"share"`
	// TimeLevel and TimeShare are of the added time, of metrics that are times: shares of the baseline's time and of the added time.
	TimeLevel float64 `json:"time_level"`
	TimeShare float64 `json:"time_share"`
	// Freedom is how many degrees of freedom they are known with.
	Freedom float64 `json:"freedom"`
}

// OfRatio is the standard deviation of the logarithm of a ratio, between runs whose logarithm is about this.
func (s RunSpread) OfRatio(log float64) float64 {
	return math.Hypot(s.Level, s.Share*-math.Expm1(-math.Abs(log)))
}

// OfTime is the standard deviation of an added time, in its unit, beside a baseline's time in the same unit.
func (s RunSpread) OfTime(added, baseline float64) float64 {
	return math.Hypot(s.TimeLevel*baseline, s.TimeShare*added)
}

// Spread is the spread between runs of a workload in a regime; false where none is known.
func (r *Repeating) Spread(workload, regime string) (RunSpread, bool) {
	if r == nil {
		return RunSpread{}, false
	}
	for _, s := range r.Spreads {
		if s.Workload == workload && s.Regime == regime {
			return s, true
		}
	}
	return RunSpread{}, false
}
