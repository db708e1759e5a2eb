package reporttest

import "netdelta/result"

// Exact is how a run counted that was never counted.
func Exact() *result.Exact {
	return &result.Exact{
		Seeds: []uint64{1, 2, 3}, PerInstruction: 2, Transactions: 400, Emulator: "10.0.2", Processor: "max", Image: "0123456789abcdef",
	}
}

// ExactComparison is an exact run compared with one in time, in one setting with three networks whose names need escaping.
func ExactComparison() *result.ExactComparison {
	rho := 0.5
	return &result.ExactComparison{
		Run: "latency-exact", Exact: *Exact(), Correlation: &rho,
		Settings: []result.ExactSetting{{
			Workload: "tcp-rr", Params: result.Params{Message: 300}, Placement: result.CrossNode, Baseline: "host", Metric: "p50", Correlation: &rho,
			Networks: []result.ExactNetwork{
				{Network: "bridge", Native: 1.12, Exact: 1.1955, NativeRank: 1, ExactRank: 1, NativeVerdict: "slower", ExactVerdict: "slower", Request: 3590, Response: 3608},
				{Network: "net|<b>", Native: 1.5, Exact: 1.3704, NativeRank: 3, ExactRank: 2, NativeVerdict: "slower", ExactVerdict: "slower", Request: 6828, Response: 6795},
				{Network: "vxlan", Native: 1.31, Exact: 1.5, NativeRank: 2, ExactRank: 3, NativeVerdict: "slower", ExactVerdict: "slower", Request: -12, Response: 8000},
			},
		}},
	}
}
