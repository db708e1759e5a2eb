package result

import (
	"time"

	"netdelta/unit"
)

// Role says what part a trial plays in its comparison.
type Role string

const (
	// RoleCell is an ordinary cell: it is compared against the baseline.
	RoleCell Role = "cell"
	// RoleBaseline is the network that all others are held against.
	RoleBaseline Role = "baseline"
	// RoleControl is the second, independently built set-up of the baseline: the null check.
	RoleControl Role = "twin"
	// RoleReference is the nodes' own network, measured together with the networks of a state of the cluster: it shows what the machines
	// do meanwhile.
	RoleReference Role = "reference"
)

// Placement says whether client and server share a node.
type Placement string

// The placements.
const (
	SameNode  Placement = "same-node"
	CrossNode Placement = "cross-node"
)

// Family is a version of IP.
type Family string

// The families.
const (
	IPv4 Family = "ipv4"
	IPv6 Family = "ipv6"
)

// Cell is one combination of levels.
type Cell struct {
	// ID names the cell within its run: short, stable, made of its levels.
	ID        string    `json:"id"`
	Network   string    `json:"network"`
	Placement Placement `json:"placement"`
	// Path is how the client names the server: pod, service, nodeport or host.
	Path     string `json:"path"`
	Workload string `json:"workload"`
	Params   Params `json:"params"`
	Role     Role   `json:"role"`
	// State names the state of the cluster in which the cell is measured. It is "" where nothing is changed, and of a baseline that stands
	// in every state.
	State string `json:"state,omitempty"`
	// Unsupported says why the cell could not be measured here, "" if it can.
	Unsupported string `json:"unsupported,omitempty"`
	// InGuest says that a guest (--testbed vm) has what the cell lacked here.
	InGuest bool `json:"in_guest,omitempty"`
	// Skipped says why the cell was left out of this run though it could be measured (the budget), "" if it was not.
	Skipped string `json:"skipped,omitempty"`
}

// Bursts are the bursts of one trial, column by column: entry i of each column belongs to the same burst.
// Latencies are nanoseconds, throughput is bits per second; columns that a workload does not have are empty.
type Bursts struct {
	Round    []int   `json:"round"`
	Start    []int64 `json:"start_ns"` // since the start of the run
	Duration []int64 `json:"duration_ns"`
	// Span is how long the burst took as a whole, with its warm-up and until its end was known to the client: what the
	// network held up, wherever in the burst.
	Span         []int64   `json:"span_ns,omitempty"`
	Transactions []int64   `json:"transactions,omitempty"`
	Lost         []int64   `json:"lost,omitempty"`
	Min          []float64 `json:"min,omitempty"`
	P50          []float64 `json:"p50,omitempty"`
	P90          []float64 `json:"p90,omitempty"`
	P99          []float64 `json:"p99,omitempty"`
	Mean         []float64 `json:"mean,omitempty"`
	Max          []float64 `json:"max,omitempty"`
	// Split is log(p50 of the odd transactions / p50 of the even ones): the noise within a burst.
	Split []float64 `json:"split,omitempty"`
	// SweepLevel, of bursts that were measured in sweeps, is the natural logarithm of the typical visit's median latency, less the state of
	// the machine, which all networks of the same sweeps share. Deltas of p50 are differences of two of the same sweeps.
	SweepLevel []float64 `json:"sweep_level,omitempty"`
	Throughput []float64 `json:"throughput,omitempty"`
	// Rate is transactions per second, of workloads of which that is asked: requests of HTTP, operations on blocks (IOPS),
	// transactions of a database (TPS). Errors are those that failed, which are not among them.
	Rate   []float64 `json:"rate,omitempty"`
	Errors []int64   `json:"errors,omitempty"`
	// ClientCPU, ServerCPU and KernelCPU are processor time spent on the burst with its warm-up, in nanoseconds: by the
	// client's and the server's threads, with the network work that the kernel does in their name, and by the kernel in
	// no thread's name (ksoftirqd; soft interrupts too where the kernel accounts for them apart), which of other machines is not
	// known. Work and Moved are the transactions and the bytes of payload that it was spent on.
	ClientCPU []int64 `json:"client_cpu_ns,omitempty"`
	ServerCPU []int64 `json:"server_cpu_ns,omitempty"`
	KernelCPU []int64 `json:"kernel_cpu_ns,omitempty"`
	Work      []int64 `json:"work,omitempty"`
	Moved     []int64 `json:"moved,omitempty"`
	// NoDrop and PartialDrop are the highest rates found without loss and with at most 0.5% of it, in bits of payload per
	// second; Load10, Load50 and Load90 are the median latencies in nanoseconds at that share of NoDrop (a search).
	NoDrop      []float64 `json:"no_drop,omitempty"`
	PartialDrop []float64 `json:"partial_drop,omitempty"`
	// AtLeast says that it was the sender that could do no more than NoDrop: what lies behind it may carry more.
	AtLeast []bool    `json:"at_least,omitempty"`
	Load10  []float64 `json:"load10,omitempty"`
	Load50  []float64 `json:"load50,omitempty"`
	Load90  []float64 `json:"load90,omitempty"`
	// Disturbed says why a burst is left out of deltas; "" if it counts.
	Disturbed []string `json:"disturbed,omitempty"`
	// Pair is the index of the burst's pair of nodes in Trial.Pairs.
	Pair []int `json:"pair,omitempty"`
}

// TCPInfo is what the kernel says of a connection at the end of a trial (TCP_INFO).
type TCPInfo struct {
	Retransmits uint64 `json:"retransmits"`
	// Segments are the segments with data that were sent, those sent again among them; 0 where that is not known.
	Segments     uint64             `json:"segments,omitempty"`
	RTT          time.Duration      `json:"rtt_ns"`
	RTTVar       time.Duration      `json:"rttvar_ns"`
	MinRTT       time.Duration      `json:"min_rtt_ns"`
	Cwnd         uint32             `json:"cwnd"`
	DeliveryRate unit.BitsPerSecond `json:"delivery_rate"`
	MSS          uint32             `json:"mss"`
	// CongestionControl is the algorithm that the socket really used.
	CongestionControl string `json:"congestion_control"`
}

// CarryOver sums up by how much visits were longer, on the scale of the natural logarithm, for what was visited just before: their
// number, the sum and the sum of squares. One visit counts with 0.1 at most.
type CarryOver struct {
	Visits  int64   `json:"visits"`
	Sum     float64 `json:"sum"`
	Squares float64 `json:"squares"`
}

// Visit adds a visit that was so much longer than the others to its network.
func (c *CarryOver) Visit(longer float64) { c.Add(CarryOver{1, longer, longer * longer}) }

// Add adds other visits.
func (c *CarryOver) Add(d CarryOver) {
	c.Visits += d.Visits
	c.Sum += d.Sum
	c.Squares += d.Squares
}

// Second is one point of a trial's per-second series.
type Second struct {
	// At is seconds since the trial's start.
	At float64 `json:"at"`
	// Span is how much was measured for this point, in seconds: only by it can the rates of two points be compared.
	Span         float64 `json:"span,omitempty"`
	Transactions int64   `json:"transactions,omitempty"`
	Bytes        int64   `json:"bytes,omitempty"`
	Lost         int64   `json:"lost,omitempty"`
}

// Trial is what one cell measured in one build: a line of trials.jsonl.
type Trial struct {
	Schema   int       `json:"schema"`
	Cell     string    `json:"cell"`
	Role     Role      `json:"role"`
	Build    int       `json:"build"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	Bursts   Bursts    `json:"bursts"`
	// Histogram is the HDR histogram of all undisturbed transactions' latencies in nanoseconds: HdrHistogram V2
	// compressed encoding, base64. "" for workloads without latencies.
	Histogram    string   `json:"histogram,omitempty"`
	Transactions int64    `json:"transactions,omitempty"`
	Bytes        int64    `json:"bytes,omitempty"`
	Lost         int64    `json:"lost,omitempty"`
	Reordered    int64    `json:"reordered,omitempty"`
	Sent         int64    `json:"sent,omitempty"`
	TCP          *TCPInfo `json:"tcp,omitempty"`
	// CarryOver is what visits to the network left behind for those that followed; nil where it was not measured in sweeps.
	CarryOver *CarryOver `json:"carry_over,omitempty"`
	// Sockets is what the kernel says of the sockets in addition to TCP_INFO.
	Sockets *Sockets `json:"sockets,omitempty"`
	// Path proves which way the packets went; nil where no observer could look.
	Path *Path `json:"path,omitempty"`
	// Links are how the bursts were spread over the links of the bonds on their way; there are none without bonds.
	Links  []LinkUse `json:"links,omitempty"`
	Series []Second  `json:"series,omitempty"`
	// Changes are what changed in the configuration of the trial's testbed while it was measured.
	Changes []ConfigChange `json:"config_changes,omitempty"`
	// ClientCPU and ServerCPU are the processors that the ends were pinned to; -1 is not pinned.
	ClientCPU int `json:"client_cpu"`
	ServerCPU int `json:"server_cpu"`
	// OtherLoad is the share of the processors' time, 0 to 1, that other programs or the hypervisor kept from the workload: read before
	// the build was measured, while the workload slept.
	OtherLoad float64 `json:"other_load,omitempty"`
	// Exact is what the trial counted in a guest whose clock counts instructions; nil elsewhere.
	Exact *ExactTrial `json:"exact,omitempty"`
	// Errors are transactions that failed; they are not among Transactions.
	Errors int64 `json:"errors,omitempty"`
	// Clients did the trial together, each in a pod of its own; one alone is not listed.
	Clients []ClientRate `json:"clients,omitempty"`
	// Services are the daemons that served the trial; there are none where netdelta serves by itself.
	Services []Service `json:"services,omitempty"`
	// Drops are the packets that devices and queues of the trial's testbed dropped while it was measured, for all trials there.
	Drops []Drop `json:"drops,omitempty"`
	// Disk is what the server's storage does without a network; nil for workloads without storage.
	Disk *Disk `json:"disk,omitempty"`
	// Replication is what a database's cluster says of its own replication; nil elsewhere.
	Replication *Replication `json:"replication,omitempty"`
	// Bound is what kept the trial from doing more; nil where that could not be found out.
	Bound *Bound `json:"bound,omitempty"`
	// Pairs are the pairs of nodes that were measured between; there are none but in a run of StrategyPairs.
	Pairs []NodePair `json:"pairs,omitempty"`
	// Fleet is what a fleet recorded; nil but in a run of StrategyFleet.
	Fleet *FleetBuild `json:"fleet,omitempty"`
	// Policy is the change of a policy that was timed; nil but in a run of StrategyPolicies.
	Policy *PolicyChange `json:"policy,omitempty"`
	// Failed says why the trial gave nothing: it then enters no delta.
	Failed string `json:"failed,omitempty"`
}

// BusyShare is the least Trial.OtherLoad at which a machine counts as busy.
const BusyShare = 0.2

// Judgement is what a cell differs by from its baseline, or from itself at another level, and the verdict on it. Bounds are null
// when there are too few builds for an interval.
type Judgement struct {
	// Ratio is value over baseline; it is left out where a ratio means nothing (loss, whose delta is the difference).
	Ratio     float64  `json:"ratio,omitzero"`
	RatioLow  *float64 `json:"ratio_low"`
	RatioHigh *float64 `json:"ratio_high"`
	// Difference is the paired difference with its interval, in the metric's unit; of metrics that are no times it is what the
	// ratio means at the baseline's value.
	Difference     float64  `json:"difference"`
	DifferenceLow  *float64 `json:"difference_low"`
	DifferenceHigh *float64 `json:"difference_high"`
	P              *float64 `json:"p"`
	PAdjusted      *float64 `json:"p_adjusted"`
	// Blocks counts the independent replications behind the interval: builds (or blocks, where bursts can't be).
	Blocks int `json:"blocks"`
	// Rounds counts the paired bursts.
	Rounds int `json:"rounds"`
	// Need is how many builds in all would give an interval or a verdict; 0 when there are enough.
	Need    int    `json:"need,omitempty"`
	Verdict string `json:"verdict"` // slower, faster, same, unresolved
	// Excluded counts bursts and trials that were left out, by reason.
	Excluded map[string]int `json:"excluded"`
}

// Variance is the split of a delta's variance, as standard deviations of the log ratio (0.01 is about 1%).
type Variance struct {
	Builds float64 `json:"builds"`
	Rounds float64 `json:"rounds"`
	Bursts float64 `json:"bursts"`
}

// Delta is a cell against the baseline of the same rounds, over all builds.
type Delta struct {
	Cell     string `json:"cell"`
	Network  string `json:"network"`
	Baseline string `json:"baseline"`
	Setting
	Path   string `json:"path"`
	Metric string `json:"metric"`
	// Headline marks the metric that the setting's verdicts and conclusions are about.
	Headline      bool    `json:"headline"`
	Unit          string  `json:"unit"`
	Better        string  `json:"better"` // lower or higher
	BaselineValue float64 `json:"baseline_value"`
	Value         float64 `json:"value"`
	Judgement
	// Within is the interval of this run alone, by what its builds differ by, where the Judgement's interval is for repeating the run
	// (Run.Repeating); nil where that is of this run alone.
	Within   *Interval `json:"within,omitempty"`
	Variance *Variance `json:"variance,omitempty"`
	// Bound is what kept the cell from doing more in most of its trials: "link", "cpu", "disk" or "latency"; "" where that is not
	// known, or differs from trial to trial.
	Bound string `json:"bound,omitempty"`
	// Floor is the noise floor, the size below which the delta is not called real: a share, or a difference where there is no ratio. It
	// is left out where no null check tells.
	Floor    *float64 `json:"floor,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Across says that the delta is across states of the cluster; Blocks then counts the visits to each.
	Across *Across `json:"across,omitempty"`
}

// Across is how a delta between two states of a cluster was taken: visit by visit, the k-th to the one with the k-th to the other.
type Across struct {
	// State and Baseline name the states that the cell and its baseline were measured in.
	State    string `json:"state"`
	Baseline string `json:"baseline"`
	// Reference is the network that stood in each visit, where the delta is of what both differ from it; "" where the visits' own figures
	// are compared.
	Reference string `json:"reference,omitempty"`
}

// Account is how much a run measured, and what of it enters no delta.
type Account struct {
	// Trials and Bursts are all that were finished, and Builds are the distinct ones among the trials.
	Trials int `json:"trials"`
	Builds int `json:"builds"`
	Bursts int `json:"bursts"`
	// LostTrials and LostBursts count what was left out, by reason. Bursts of a trial that was left out as a whole are not counted again.
	LostTrials map[string]int `json:"lost_trials,omitempty"`
	LostBursts map[string]int `json:"lost_bursts,omitempty"`
	// LeftOut is how many cells were not measured, by the time budget or as the study says: baselines and A/A controls are cells, too.
	LeftOut int `json:"left_out_cells"`
}

// Check is a question asked of a trial apart from its figures: was it disturbed, did it lose packets, did its path hold.
type Check struct {
	Trial    string `json:"trial"`
	Check    string `json:"check"`
	OK       bool   `json:"ok"`
	Expected string `json:"expected"`
	Observed string `json:"observed"`
}

// Claim is a published finding, and what this run says of it.
type Claim struct {
	ID        string `json:"id"`
	Says      string `json:"says"`
	Source    string `json:"source"`
	Published string `json:"published"`
	// Differs is how the study departs from what the source measured, "" where it does not.
	Differs string `json:"differs,omitempty"`
	// Expect is the claim in the language of a study file.
	Expect   string `json:"expect"`
	Measured string `json:"measured"`
	Verdict  string `json:"verdict"` // confirmed, confirmed in part, contradicted, unresolved, not a test here, not comparable here, not-tested
}

// Changed is what a study did to the cluster for as long as a network, or a level of a factor such as mtu=9000, was measured: its steps, as
// one would type them, and those that undid it.
type Changed struct {
	For    string   `json:"for"`
	Expect string   `json:"expect,omitempty"` // how packets cross between nodes then, as the study has it: "none" is without encapsulation
	Apply  []string `json:"apply"`
	Undo   []string `json:"undo"`
}

// Run is result.json: everything that one execution of a study has to say.
type Run struct {
	Schema   int       `json:"schema"`
	Run      string    `json:"run"`
	Study    string    `json:"study"`
	Question string    `json:"question,omitempty"`
	Testbed  string    `json:"testbed"`
	Seed     uint64    `json:"seed"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	// Measured is how long the tests took of a run that was imported: they may have been made on different days.
	Measured time.Duration `json:"measured_ns,omitempty"`
	// Confidence (0.95) and Margin (0.02 is 2%) are what the verdicts rest on.
	Confidence float64 `json:"confidence"`
	Margin     float64 `json:"margin"`
	// Adaptive says that the run decided by what it saw when to stop measuring a cell; intervals allow for it.
	Adaptive bool `json:"adaptive"`
	// Unpaired says that networks were not measured in turn, as in files of other programs: nothing pairs a build of one with one of another.
	Unpaired bool `json:"unpaired,omitempty"`
	// Repeating is what the intervals allow for beyond this run; nil where they are of this run alone.
	Repeating *Repeating `json:"repeating,omitempty"`
	// Ended says how the run ended: resolved, resolved in part, budget, builds, interrupted, failed or nothing measured; running
	// while it has not.
	Ended string `json:"ended"`
	// Trials is how many trials the journal held when this was written.
	Trials int `json:"trials,omitempty"`
	// Strategy is how the run measured; nil for one that measured cells in rounds or blocks.
	Strategy *Strategy `json:"strategy,omitempty"`
	// Exact says that the run counted instructions, and how; nil for a run that measured time.
	Exact *Exact `json:"exact,omitempty"`
	// ExactComparison is with an exact run that a report names; nil elsewhere.
	ExactComparison *ExactComparison `json:"exact_comparison,omitempty"`
	// Options are the flags of the call, by their names, that say where and how it measures and that the study does not hold; one
	// whose value is secret has none. A resumed run takes them over.
	Options map[string]string `json:"options,omitempty"`
	// Changes are what the study did to the cluster; there are none where it changed nothing.
	Changes []Changed `json:"changes,omitempty"`
	// Notes are what the reader must know of this run: a subset by budget, networks that are unsupported.
	Notes       []string    `json:"notes,omitempty"`
	Environment Environment `json:"environment"`
	Cells       []Cell      `json:"cells"`
	Deltas      []Delta     `json:"deltas"`
	Null        []Delta     `json:"null"`
	// Contrasts hold the networks of each setting directly against one another.
	Contrasts []Contrast `json:"contrasts,omitempty"`
	// Effects are what the factors of the study do to each network; there are none in a study without factors.
	Effects []Effect `json:"effects,omitempty"`
	Checks  []Check  `json:"checks"`
	// Account is how much was measured, and what of it was left out. All views of a run take these counts from here.
	Account *Account `json:"account,omitempty"`
	// Paths sum up the proofs of which way the packets went, for each network and placement.
	Paths []PathProof `json:"paths,omitempty"`
	// Links are how traffic was spread over the links of bonds; there are none without bonds.
	Links []LinkShare `json:"links,omitempty"`
	// Services are the daemons that served, with what they took at most in any trial; there are none where netdelta serves.
	Services []Service `json:"services,omitempty"`
	// Clients are the rates of cells that several clients did together, by client.
	Clients []SharedRate `json:"clients,omitempty"`
	// Splits are where the latency of operations on blocks goes, Replications what clusters say of themselves, and Correlations
	// how what applications get done goes with raw latency and bandwidth.
	Splits       []Split       `json:"splits,omitempty"`
	Replications []Replicated  `json:"replications,omitempty"`
	Correlations []Correlation `json:"correlations,omitempty"`
	Claims       []Claim       `json:"claims"`
	// Goals are what the study or the user asks of the deltas; there are none where nothing is asked.
	Goals  []Goal   `json:"goals,omitempty"`
	Advice []Advice `json:"advice"`
	// Summary is the first screen.
	Summary Summary `json:"summary"`
	// Request is what the networks are of a request of the user's own, where that was asked.
	Request *Request `json:"request,omitempty"`
}

// Summary is what a reader needs first of a run.
type Summary struct {
	// Says are sentences: what of the study was not measured, the answer in each placement, and how much is open.
	Says []string `json:"says"`
	// Cells are the cells whose deltas the answer is about, in the order in which they are shown: by placement, demonstrations last.
	Cells []string `json:"cells"`
	// Next is the command that tells the most after this run, with DIR for the run folder; "" where there is none.
	Next string `json:"next,omitempty"`
}

// Baseline is the network that the run holds the others against, "" where it has no cells.
func (r Run) Baseline() string {
	for _, c := range r.Cells {
		if c.Role == RoleBaseline {
			return c.Network
		}
	}
	return ""
}

// Took is how long the run measured: from start to end, or, where it was imported, its tests together.
func (r Run) Took() time.Duration {
	if r.Measured > 0 {
		return r.Measured
	}
	return r.Finished.Sub(r.Started)
}
