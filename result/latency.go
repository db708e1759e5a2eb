package result

import "time"

// Split is where the latency of an operation on blocks goes: total = disk + all else. What is else on the baseline is what the
// client, the server and the baseline's own network take; a network adds what it differs by from it. Only that part depends on
// the network.
type Split struct {
	Cell    string `json:"cell"`
	Network string `json:"network"`
	Setting
	Path     string `json:"path"`
	Baseline string `json:"baseline"`
	// Total is the median latency as measured by the client.
	Total time.Duration `json:"total_ns"`
	// Disk is the median latency of the same operation on the server's storage without a network, as measured.
	Disk time.Duration `json:"disk_ns"`
	// Common is the baseline's total less the disk: a difference of two measured figures.
	Common time.Duration `json:"common_ns"`
	// Added is the network's total less the baseline's, the delta of its p50, with its interval.
	Added     time.Duration  `json:"added_ns"`
	AddedLow  *time.Duration `json:"added_low_ns"`
	AddedHigh *time.Duration `json:"added_high_ns"`
	// RoundTrip is the median round trip of tcp-rr over the same network in the same run, 0 where it was not measured; it is
	// part of Common and Added.
	RoundTrip time.Duration `json:"round_trip_ns,omitempty"`
}

// Replicated is how long a cluster took to replicate, and what its clients got done, over all trials of a cell.
type Replicated struct {
	Cell    string `json:"cell"`
	Network string `json:"network"`
	Setting
	Path string `json:"path"`
	// Mean is the median over trials of the mean replication latency, Max the worst of all.
	Mean time.Duration `json:"mean_ns"`
	Max  time.Duration `json:"max_ns"`
	// Rate is the median over trials of the transactions per second.
	Rate float64 `json:"rate"`
}

// Correlation is how what an application got done goes with what its network measures raw, over the networks of a setting.
type Correlation struct {
	Setting
	Metric string `json:"metric"`
	Unit   string `json:"unit"`
	// RawWorkload, RawParams and RawMetric are what it is held against: the median round trip of tcp-rr, or the throughput of
	// tcp-stream, in the same placement under the same conditions.
	RawWorkload string `json:"raw_workload"`
	RawParams   Params `json:"raw_params"`
	RawMetric   string `json:"raw_metric"`
	RawUnit     string `json:"raw_unit"`
	// Points are the networks, the baseline first.
	Points []CorrelationPoint `json:"points"`
	// Pearson is the correlation of the logarithms, with its interval over networks; the bounds are null with fewer than four.
	Pearson     float64  `json:"pearson"`
	PearsonLow  *float64 `json:"pearson_low"`
	PearsonHigh *float64 `json:"pearson_high"`
	// Spearman is the correlation of the ranks, P how often chance alone orders the networks as much alike or unlike.
	Spearman float64 `json:"spearman"`
	P        float64 `json:"p"`
	// Verdict is what the interval of Pearson says: the application's figure rises with the raw one, it falls, or unresolved.
	Verdict string `json:"verdict"`
}

// Verdicts on a correlation.
const (
	CorrelationRises = "rises"
	CorrelationFalls = "falls"
	CorrelationOpen  = "unresolved"
)

// CorrelationPoint is one network: its raw figure and what the application got done on it, each in its unit.
type CorrelationPoint struct {
	Network string  `json:"network"`
	Path    string  `json:"path"`
	Raw     float64 `json:"raw"`
	Value   float64 `json:"value"`
}
