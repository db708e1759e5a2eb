package result

// Exact says of a run that it was measured in guests whose clock counts instructions: each build is a guest of its own,
// whose seed decides where the kernel and the programs lie in memory and how their hash tables are salted. The spread over
// seeds is what the interval of a delta is.
type Exact struct {
	// Seeds are the seeds of the guests, in the order of builds.
	Seeds []uint64 `json:"seeds"`
	// PerInstruction is how many nanoseconds the guest's clock goes on with each instruction.
	PerInstruction float64 `json:"ns_per_instruction"`
	// Transactions is how many were measured of each cell in each build.
	Transactions int `json:"transactions"`
	// Emulator, Processor and Image name what the count depends on: QEMU's version, the processor that it emulates, and the
	// guest's image (a hash of all that is in it).
	Emulator  string `json:"emulator"`
	Processor string `json:"processor"`
	Image     string `json:"image"`
}

// ExactTrial is what a trial counted, as medians over its transactions.
type ExactTrial struct {
	Seed uint64 `json:"seed"`
	// Request and Response are the instructions from before a message is sent until the other end has all of it; RoundTrip
	// is both.
	Request   float64 `json:"request_instructions"`
	Response  float64 `json:"response_instructions"`
	RoundTrip float64 `json:"round_trip_instructions"`
}

// ExactMargin is within how much two exact figures count as the same, as a share: above what seeds differ by, and below what
// a single firewall rule costs.
const ExactMargin = 0.001

// ExactComparison compares this run, which measured time, with an exact run of the same networks.
type ExactComparison struct {
	// Run names the exact run; Exact is how it counted.
	Run      string         `json:"run"`
	Exact    Exact          `json:"exact"`
	Settings []ExactSetting `json:"settings"`
	// Correlation is the median of the settings' rank correlations; left out where no setting has one.
	Correlation *float64 `json:"rank_correlation,omitempty"`
}

// ExactSetting is one setting that both runs have, in the headline metric.
type ExactSetting struct {
	Setting
	Baseline string         `json:"baseline"`
	Metric   string         `json:"metric"`
	Networks []ExactNetwork `json:"networks"`
	// Correlation is Spearman's, from -1 to 1, over the networks; left out with fewer than three.
	Correlation *float64 `json:"rank_correlation,omitempty"`
}

// ExactNetwork is a network in both runs: its ratio to the baseline by time and by instructions, and its place among the
// networks of the setting, the cheapest first; networks of equal cost share a place.
type ExactNetwork struct {
	Network    string  `json:"network"`
	Native     float64 `json:"native_ratio"`
	Exact      float64 `json:"exact_ratio"`
	NativeRank float64 `json:"native_rank"`
	ExactRank  float64 `json:"exact_rank"`
	// NativeVerdict and ExactVerdict are those on its deltas.
	NativeVerdict string `json:"native_verdict"`
	ExactVerdict  string `json:"exact_verdict"`
	// Request and Response are how many instructions it adds to either direction.
	Request  float64 `json:"request_instructions"`
	Response float64 `json:"response_instructions"`
}
