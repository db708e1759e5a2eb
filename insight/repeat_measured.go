package insight

import "netdelta/result"

// MeasuredSpreads are what runs in a lab differ by, as the program extras/bench/trust found it on one machine: docs/statistics.md says which, in how
// many runs and beside which loads.
func MeasuredSpreads() []result.RunSpread {
	waking := result.RunSpread{Regime: result.RegimeWaking, Level: 0.0012, Share: 0.1763, TimeLevel: 0.0016, TimeShare: 0.1523, Freedom: 8}
	of := func(workload string, s result.RunSpread) result.RunSpread {
		s.Workload = workload
		return s
	}
	return []result.RunSpread{
		{Workload: "tcp-rr", Regime: result.RegimeSaturated, Level: 0.0019, Share: 0.0010, TimeLevel: 0.0041, TimeShare: 0.0665, Freedom: 8},
		of("tcp-rr", waking),
		{Workload: "udp-rr", Regime: result.RegimeSaturated, Level: 0, Share: 0.0067, TimeLevel: 0.0064, TimeShare: 0.0982, Freedom: 5},
		of("udp-rr", waking), // not measured: wake-ups are those of tcp-rr
		{Workload: "tcp-crr", Regime: result.RegimeSaturated, Level: 0.0023, Share: 0, TimeLevel: 0, TimeShare: 0.1523, Freedom: 5},
		{Workload: "tcp-stream", Level: 0.0206, Share: 0, Freedom: 5},
	}
}

// unmeasuredSpread is the shape of a spread of which nothing was measured: how far it reaches earlier runs say.
func unmeasuredSpread() result.RunSpread {
	return result.RunSpread{Level: 0.005, Share: 0.05, TimeLevel: 0.005, TimeShare: 0.05}
}
