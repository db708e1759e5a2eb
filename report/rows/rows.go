// Package rows makes flat tables of a run, for programs that know tables and nothing of netdelta: what the CSV and the
// Parquet files hold. The levels of a cell are repeated in each row, so that a table can be read by itself.
package rows

import (
	"iter"
	"slices"
	"time"

	"netdelta/insight"
	"netdelta/result"
)

// Level columns name what a row was measured in. A parameter that is 0 or empty is the workload's default, or one that the
// workload has not.
type Level struct {
	Run               string  `parquet:"run"`
	Cell              string  `parquet:"cell"`
	Network           string  `parquet:"network"`
	Placement         string  `parquet:"placement"`
	Path              string  `parquet:"path"`
	Workload          string  `parquet:"workload"`
	Message           int64   `parquet:"message_bytes"`
	Connections       int64   `parquet:"connections"`
	Rate              float64 `parquet:"rate_bits_per_second"`
	RequestRate       float64 `parquet:"requests_per_second"`
	CPU               string  `parquet:"cpu"`
	BusyPoll          int64   `parquet:"busy_poll_ns"`
	CongestionControl string  `parquet:"congestion_control"`
	Nagle             bool    `parquet:"nagle"`
	MTU               int64   `parquet:"mtu_bytes"`
	Family            string  `parquet:"family"`
	Search            bool    `parquet:"search"`
	Engine            string  `parquet:"engine"`
	File              int64   `parquet:"file_bytes"`
	Reconnect         bool    `parquet:"reconnect"`
	Store             string  `parquet:"store"`
	Operation         string  `parquet:"operation"`
	Block             int64   `parquet:"block_bytes"`
	Depth             int64   `parquet:"depth"`
	Clients           int64   `parquet:"clients"`
	Reads             float64 `parquet:"reads"`
	Fsync             int64   `parquet:"fsync"`
	OSDs              int64   `parquet:"osds"`
	ClientPods        int64   `parquet:"client_pods"`
	IO                string  `parquet:"io"`
	Mix               string  `parquet:"mix"`
	Tables            int64   `parquet:"tables"`
	Rows              int64   `parquet:"rows"`
	Threads           int64   `parquet:"threads"`
	Target            string  `parquet:"target"`
	StorageClass      string  `parquet:"storage_class"`
	Iterations        int64   `parquet:"iterations"`
	Servers           int64   `parquet:"servers"`
	Data              string  `parquet:"data"`
	Conditions
}

// Conditions columns are what a row was measured under, plain: 0 or empty is as the testbed has it, or none.
type Conditions struct {
	LinkRate        float64 `parquet:"link_rate_bits_per_second"`
	LinkDelay       int64   `parquet:"link_delay_ns"`
	LinkLoss        float64 `parquet:"link_loss"`
	LinkCount       int64   `parquet:"link_count"`
	BondMode        string  `parquet:"bond_mode"`
	BondHash        string  `parquet:"bond_xmit_hash_policy"`
	TSO             string  `parquet:"offload_tso"`
	GSO             string  `parquet:"offload_gso"`
	GRO             string  `parquet:"offload_gro"`
	LRO             string  `parquet:"offload_lro"`
	RPS             string  `parquet:"rps"`
	BridgeNetfilter string  `parquet:"bridge_netfilter"`
	Policy          string  `parquet:"policy"`
	PolicyRules     int64   `parquet:"policy_rules"`
	Service         string  `parquet:"service"`
	Services        int64   `parquet:"services"`
	From            string  `parquet:"from"`
	Encryption      string  `parquet:"encryption"`
	QoS             string  `parquet:"qos"`
	PolicyPods      int64   `parquet:"policy_pods"`
	NodeLinks       string  `parquet:"node_links"`
}

// Delta is a row of the table deltas: a result.Delta. What it has in common with an Effect is no struct of its own, since parquet-go makes
// a null in an embedded struct a zero.
type Delta struct {
	Level
	Baseline string `parquet:"baseline"`
	// Null marks the null check: the baseline against its A/A control.
	Null           bool     `parquet:"null_check"`
	Metric         string   `parquet:"metric"`
	Headline       bool     `parquet:"headline"`
	Unit           string   `parquet:"unit"`
	Better         string   `parquet:"better"`
	BaselineValue  float64  `parquet:"baseline_value"`
	Value          float64  `parquet:"value"`
	Ratio          *float64 `parquet:"ratio"`
	RatioLow       *float64 `parquet:"ratio_low"`
	RatioHigh      *float64 `parquet:"ratio_high"`
	Difference     float64  `parquet:"difference"`
	DifferenceLow  *float64 `parquet:"difference_low"`
	DifferenceHigh *float64 `parquet:"difference_high"`
	// The interval of the run alone, where the one above is for repeating it.
	WithinRatioLow       *float64         `parquet:"within_ratio_low"`
	WithinRatioHigh      *float64         `parquet:"within_ratio_high"`
	WithinDifferenceLow  *float64         `parquet:"within_difference_low"`
	WithinDifferenceHigh *float64         `parquet:"within_difference_high"`
	P                    *float64         `parquet:"p"`
	PAdjusted            *float64         `parquet:"p_adjusted"`
	Blocks               int64            `parquet:"blocks"`
	Rounds               int64            `parquet:"rounds"`
	Need                 int64            `parquet:"need"`
	Verdict              string           `parquet:"verdict"`
	Excluded             map[string]int64 `parquet:"excluded"`
	SDBuilds             *float64         `parquet:"sd_builds"`
	SDRounds             *float64         `parquet:"sd_rounds"`
	SDBursts             *float64         `parquet:"sd_bursts"`
	Floor                *float64         `parquet:"floor"`
	Bound                string           `parquet:"bound"`
	Warnings             []string         `parquet:"warnings,list"`
	States
}

// States columns say which states of a cluster a delta is across: a result.Across. Other deltas have none.
type States struct {
	State          string `parquet:"state"`
	BaselineState  string `parquet:"baseline_state"`
	StateReference string `parquet:"state_reference"`
}

// states are the states that a delta is across, if it is.
func states(a *result.Across) States {
	if a == nil {
		return States{}
	}
	return States{a.State, a.Baseline, a.Reference}
}

// Effect is a row of the table effects: a result.Effect. Its levels are its cell's.
type Effect struct {
	Level
	Reference      string           `parquet:"reference"`
	Factor         string           `parquet:"factor"`
	From           string           `parquet:"from_level"`
	To             string           `parquet:"to_level"`
	Metric         string           `parquet:"metric"`
	Headline       bool             `parquet:"headline"`
	Unit           string           `parquet:"unit"`
	Better         string           `parquet:"better"`
	FromValue      float64          `parquet:"from_value"`
	Value          float64          `parquet:"value"`
	Ratio          *float64         `parquet:"ratio"`
	RatioLow       *float64         `parquet:"ratio_low"`
	RatioHigh      *float64         `parquet:"ratio_high"`
	Difference     float64          `parquet:"difference"`
	DifferenceLow  *float64         `parquet:"difference_low"`
	DifferenceHigh *float64         `parquet:"difference_high"`
	P              *float64         `parquet:"p"`
	PAdjusted      *float64         `parquet:"p_adjusted"`
	Blocks         int64            `parquet:"blocks"`
	Rounds         int64            `parquet:"rounds"`
	Need           int64            `parquet:"need"`
	Verdict        string           `parquet:"verdict"`
	Excluded       map[string]int64 `parquet:"excluded"`
	Warnings       []string         `parquet:"warnings,list"`
	States
}

// Trial is a row of the table trials: what one cell measured in one build. Latencies are over all undisturbed
// transactions.
type Trial struct {
	Level
	Role          string    `parquet:"role"`
	Build         int64     `parquet:"build"`
	Started       time.Time `parquet:"started,timestamp(microsecond)"`
	Finished      time.Time `parquet:"finished,timestamp(microsecond)"`
	Bursts        int64     `parquet:"bursts"`
	Disturbed     int64     `parquet:"disturbed_bursts"`
	Transactions  int64     `parquet:"transactions"`
	Bytes         int64     `parquet:"bytes"`
	Sent          int64     `parquet:"sent"`
	Lost          int64     `parquet:"lost"`
	Reordered     int64     `parquet:"reordered"`
	Errors        int64     `parquet:"errors"`
	P50           *int64    `parquet:"p50_ns"`
	P90           *int64    `parquet:"p90_ns"`
	P99           *int64    `parquet:"p99_ns"`
	P999          *int64    `parquet:"p99_9_ns"`
	Max           *int64    `parquet:"max_ns"`
	Retransmits   *int64    `parquet:"tcp_retransmits"`
	MinRTT        *int64    `parquet:"tcp_min_rtt_ns"`
	Cwnd          *int64    `parquet:"tcp_cwnd"`
	MSS           *int64    `parquet:"tcp_mss_bytes"`
	Congestion    *string   `parquet:"tcp_congestion_control"`
	PathOK        *bool     `parquet:"path_ok"`
	PathFindings  []string  `parquet:"path_findings,list"`
	PathWeak      []string  `parquet:"path_weak,list"`
	Encapsulation string    `parquet:"encapsulation"`
	Overhead      int64     `parquet:"overhead_bytes"`
	PathMTU       int64     `parquet:"path_mtu_bytes"`
	ClientCPU     int64     `parquet:"client_cpu"`
	ServerCPU     int64     `parquet:"server_cpu"`
	// Bound is what kept the trial from doing more; the shares are as in result.Bound, null where they could not be read.
	Bound     string   `parquet:"bound"`
	LinkShare *float64 `parquet:"link_share"`
	CPUShare  *float64 `parquet:"cpu_share"`
	DiskShare *float64 `parquet:"disk_share"`
	// Disk and Replication are what the server measured of its storage and its replication.
	DiskRate    *float64 `parquet:"disk_operations_per_second"`
	DiskP50     *int64   `parquet:"disk_p50_ns"`
	Replication *int64   `parquet:"replication_mean_ns"`
	Failed      string   `parquet:"failed"`
}

// Burst is a row of the table bursts. A figure that the workload has not is null.
type Burst struct {
	Level
	Role         string   `parquet:"role"`
	Build        int64    `parquet:"build"`
	Round        int64    `parquet:"round"`
	Start        int64    `parquet:"start_ns"`
	Duration     int64    `parquet:"duration_ns"`
	Span         *int64   `parquet:"span_ns"`
	Transactions *int64   `parquet:"transactions"`
	Lost         *int64   `parquet:"lost"`
	Min          *float64 `parquet:"min_ns"`
	P50          *float64 `parquet:"p50_ns"`
	P90          *float64 `parquet:"p90_ns"`
	P99          *float64 `parquet:"p99_ns"`
	Mean         *float64 `parquet:"mean_ns"`
	Max          *float64 `parquet:"max_ns"`
	Split        *float64 `parquet:"split"`
	SweepLevel   *float64 `parquet:"sweep_level"`
	Throughput   *float64 `parquet:"throughput_bits_per_second"`
	Rate         *float64 `parquet:"transactions_per_second"`
	Errors       *int64   `parquet:"errors"`
	ClientCPU    *int64   `parquet:"client_cpu_ns"`
	ServerCPU    *int64   `parquet:"server_cpu_ns"`
	KernelCPU    *int64   `parquet:"kernel_cpu_ns"`
	Work         *int64   `parquet:"work"`
	Moved        *int64   `parquet:"moved_bytes"`
	NoDrop       *float64 `parquet:"no_drop_bits_per_second"`
	PartialDrop  *float64 `parquet:"partial_drop_bits_per_second"`
	AtLeast      *bool    `parquet:"at_least"`
	Load10       *float64 `parquet:"load10_ns"`
	Load50       *float64 `parquet:"load50_ns"`
	Load90       *float64 `parquet:"load90_ns"`
	// Disturbed says why the burst enters no delta; "" if it does.
	Disturbed string `parquet:"disturbed"`
	// Pair is the index of the burst's pair of nodes, null where a run has none.
	Pair *int64 `parquet:"pair"`
}

// Check is a row of the table checks: a result.Check.
type Check struct {
	Run      string `parquet:"run"`
	Trial    string `parquet:"trial"`
	Check    string `parquet:"check"`
	OK       bool   `parquet:"ok"`
	Expected string `parquet:"expected"`
	Observed string `parquet:"observed"`
}

// Claim is a row of the table claims: a result.Claim.
type Claim struct {
	Run       string `parquet:"run"`
	ID        string `parquet:"id"`
	Says      string `parquet:"says"`
	Source    string `parquet:"source"`
	Published string `parquet:"published"`
	Differs   string `parquet:"differs"`
	Expect    string `parquet:"expect"`
	Measured  string `parquet:"measured"`
	Verdict   string `parquet:"verdict"`
}

// The tables' names, as a user asks for them.
const (
	TableDeltas  = "deltas"
	TableEffects = "effects"
	TableTrials  = "trials"
	TableBursts  = "bursts"
	TableChecks  = "checks"
	TableClaims  = "claims"
)

// Tables lists the tables' names, the one that is meant when none is named first.
func Tables() []string {
	return []string{TableDeltas, TableEffects, TableTrials, TableBursts, TableChecks, TableClaims}
}

// each makes a row of each entry of a list.
func each[T, Row any](list []T, row func(i int, entry T) Row) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for i, entry := range list {
			if !yield(row(i, entry)) {
				return
			}
		}
	}
}

// Deltas are the rows of the table deltas: the null checks first, then the networks.
func Deltas(run result.Run) iter.Seq[Delta] {
	return each(slices.Concat(run.Null, run.Deltas), func(i int, d result.Delta) Delta { return delta(run.Run, d, i < len(run.Null)) })
}

func delta(run string, d result.Delta, null bool) Delta {
	cell := result.Cell{ID: d.Cell, Network: d.Network, Placement: d.Placement, Path: d.Path, Workload: d.Workload, Params: d.Params}
	row := Delta{
		Level: level(run, cell), Baseline: d.Baseline, Null: null, Metric: d.Metric, Headline: d.Headline,
		Unit: d.Unit, Better: d.Better, BaselineValue: d.BaselineValue, Value: d.Value, RatioLow: d.RatioLow, RatioHigh: d.RatioHigh,
		Difference: d.Difference, DifferenceLow: d.DifferenceLow, DifferenceHigh: d.DifferenceHigh, P: d.P, PAdjusted: d.PAdjusted,
		Blocks: int64(d.Blocks), Rounds: int64(d.Rounds), Need: int64(d.Need), Verdict: d.Verdict, Floor: d.Floor, Bound: d.Bound, Warnings: d.Warnings,
		Excluded: map[string]int64{}, States: states(d.Across),
	}
	if w := d.Within; w != nil {
		row.WithinRatioLow, row.WithinRatioHigh, row.WithinDifferenceLow, row.WithinDifferenceHigh = w.RatioLow, w.RatioHigh, w.DifferenceLow, w.DifferenceHigh
	}
	for reason, n := range d.Excluded {
		row.Excluded[reason] = int64(n)
	}
	if d.Ratio != 0 {
		row.Ratio = &d.Ratio
	}
	if v := d.Variance; v != nil {
		row.SDBuilds, row.SDRounds, row.SDBursts = &v.Builds, &v.Rounds, &v.Bursts
	}
	return row
}

// Effects are the rows of the table effects.
func Effects(run result.Run) iter.Seq[Effect] {
	return each(run.Effects, func(_ int, e result.Effect) Effect {
		d := delta(run.Run, insight.AsDelta(e), false)
		return Effect{
			Level: d.Level, Reference: e.Reference, Factor: e.Factor, From: e.From, To: e.To, Metric: d.Metric, Headline: d.Headline,
			Unit: d.Unit, Better: d.Better, FromValue: d.BaselineValue, Value: d.Value, Ratio: d.Ratio, RatioLow: d.RatioLow, RatioHigh: d.RatioHigh,
			Difference: d.Difference, DifferenceLow: d.DifferenceLow, DifferenceHigh: d.DifferenceHigh, P: d.P, PAdjusted: d.PAdjusted,
			Blocks: d.Blocks, Rounds: d.Rounds, Need: d.Need, Verdict: d.Verdict, Excluded: d.Excluded, Warnings: d.Warnings,
			States: states(e.Across),
		}
	})
}

// Checks are the rows of the table checks.
func Checks(run result.Run) iter.Seq[Check] {
	return each(run.Checks, func(_ int, c result.Check) Check {
		return Check{run.Run, c.Trial, c.Check, c.OK, c.Expected, c.Observed}
	})
}

// Claims are the rows of the table claims.
func Claims(run result.Run) iter.Seq[Claim] {
	return each(run.Claims, func(_ int, c result.Claim) Claim {
		return Claim{run.Run, c.ID, c.Says, c.Source, c.Published, c.Differs, c.Expect, c.Measured, c.Verdict}
	})
}

// level are the levels of a cell.
func level(run string, c result.Cell) Level {
	p := c.Params
	return Level{
		Run: run, Cell: c.ID, Network: c.Network, Placement: string(c.Placement), Path: c.Path, Workload: c.Workload,
		Message: int64(p.Message), Connections: int64(p.Connections), Rate: float64(p.Rate), RequestRate: p.RequestRate, CPU: p.CPU,
		BusyPoll: int64(p.BusyPoll), CongestionControl: p.CongestionControl, Nagle: p.Nagle, MTU: int64(p.MTU),
		Family: string(p.Family), Search: p.Search, Engine: p.Engine, File: int64(p.File), Reconnect: p.Reconnect,
		Store: p.Own.Word("store"), Operation: p.Own.Word("operation"), Block: int64(p.Own.Size("block")), Depth: int64(p.Own.Count("depth")),
		Reads: p.Own.Share("reads"), Fsync: int64(p.Own.Count("fsync")), OSDs: int64(p.Own.Count("osds")), ClientPods: int64(p.Own.Count("client_pods")), IO: p.Own.Word("io"), Clients: int64(p.Clients),
		Mix: p.Own.Word("mix"), Tables: int64(p.Own.Count("tables")), Rows: int64(p.Own.Count("rows")), Threads: int64(p.Own.Count("threads")),
		Target: p.Target, StorageClass: p.StorageClass,
		Iterations: int64(p.Own.Count("iterations")), Servers: int64(p.Own.Count("servers")), Data: p.Own.Word("data"),
		Conditions: conditions(p.Conditions),
	}
}

func conditions(c result.Conditions) Conditions {
	return Conditions{
		LinkRate: float64(c.LinkRate), LinkDelay: int64(c.LinkDelay), LinkLoss: c.LinkLoss, LinkCount: int64(c.LinkCount),
		BondMode: c.BondMode, BondHash: c.BondHash, NodeLinks: c.NodeLinks, TSO: string(c.TSO), GSO: string(c.GSO), GRO: string(c.GRO), LRO: string(c.LRO),
		RPS: string(c.RPS), BridgeNetfilter: string(c.BridgeNetfilter), Policy: c.Policy, PolicyRules: int64(c.PolicyRules), PolicyPods: int64(c.PolicyPods), Service: c.Service, Services: int64(c.Services),
		From: c.From, Encryption: c.Encryption, QoS: c.QoS,
	}
}
