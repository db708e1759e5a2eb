package insight

import "netdelta/result"

// MeasuredSpreads are what runs in a lab differ by, as `make bench WHICH=trust` found it: see docs/statistics.md for the machine, the runs and
// the loads.
func MeasuredSpreads() []result.RunSpread {
	return []result.RunSpread{
		{Workload: "tcp-rr", Regime: result.RegimeSaturated, Level: 0.002, Share: 0.02, TimeLevel: 0.002, TimeShare: 0.02, Freedom: 11},
		{Workload: "tcp-rr", Regime: result.RegimeWaking, Level: 0.005, Share: 0.05, TimeLevel: 0.005, TimeShare: 0.05, Freedom: 11},
	}
}

// unmeasuredSpread is the shape of a spread of which nothing was measured: how far it reaches earlier runs say.
func unmeasuredSpread() result.RunSpread {
	return result.RunSpread{Level: 0.005, Share: 0.05, TimeLevel: 0.005, TimeShare: 0.05}
}
