package result

import "time"

// Comparison is what changed between two runs: the document of netdelta compare. Only deltas are compared, each the ratio
// of a network to its own run's baseline, so that a faster machine is not taken for a better network.
type Comparison struct {
	Schema int         `json:"schema"`
	Old    ComparedRun `json:"old"`
	New    ComparedRun `json:"new"`
	// Confidence of the intervals (0.95), and the Margin (0.02 is 2%) beyond which a change is called one.
	Confidence float64 `json:"confidence"`
	Margin     float64 `json:"margin"`
	// LossMargin is the margin of metrics without a ratio, as a difference of shares.
	LossMargin float64 `json:"loss_margin"`
	// Exact says that both runs count instructions: their intervals are ranges over seeds.
	Exact bool `json:"exact,omitempty"`
	// Metric is the one that was asked for; left out if each workload's headline is judged.
	Metric string `json:"metric,omitempty"`
	// Differences are what differs between the runs' environments: machine, kernel, testbed, settings of the kernel.
	Differences []Difference `json:"differences"`
	// Notes are what the reader must know before the figures: another question, trials that were lost.
	Notes []string `json:"notes,omitempty"`
	// Baselines are what the baselines themselves measured: told, never judged.
	Baselines []BaselineChange `json:"baselines"`
	Changes   []Change         `json:"changes"`
	// Unpaired are deltas that only one of the runs has.
	Unpaired []Unpaired `json:"unpaired"`
	// Verdict is that on the judged changes together: regressed if any is, else unresolved if any is, else improved if any
	// is, else same; nothing if there is none with an interval.
	Verdict string `json:"verdict"`
	// Says is the outcome in a sentence.
	Says string `json:"says"`
}

// ComparedRun names one of two runs.
type ComparedRun struct {
	Run     string `json:"run"`
	Study   string `json:"study"`
	Testbed string `json:"testbed"`
	// OnNodes says that its machines were the nodes of a cluster, or servers.
	OnNodes  bool      `json:"on_nodes,omitempty"`
	Started  time.Time `json:"started"`
	Ended    string    `json:"ended"`
	Margin   float64   `json:"margin"`
	Adaptive bool      `json:"adaptive"`
	// Builds is the largest number of builds behind any of its deltas.
	Builds int `json:"builds"`
}

// Difference is something that two runs' environments have not in common.
type Difference struct {
	Group string `json:"group"` // machine, kernel, program, testbed, settings, study
	What  string `json:"what"`
	// Old and New are the values, "" where a run has none or did not record it.
	Old string `json:"old"`
	New string `json:"new"`
	// Where names the devices that it is about.
	Where []string `json:"where,omitempty"`
}

// BaselineChange is what a setting's baseline measured in both runs, in the metric's unit.
type BaselineChange struct {
	Baseline string `json:"baseline"`
	Setting
	Metric string  `json:"metric"`
	Unit   string  `json:"unit"`
	Old    float64 `json:"old"`
	New    float64 `json:"new"`
}

// ComparedDelta is a delta as one of the two runs has it; see Delta.
type ComparedDelta struct {
	// Value and BaselineValue are in the metric's unit.
	Value         float64 `json:"value"`
	BaselineValue float64 `json:"baseline_value"`
	// Ratio is left out where a ratio means nothing.
	Ratio      float64 `json:"ratio,omitzero"`
	Difference float64 `json:"difference"`
	Blocks     int     `json:"blocks"`
	Verdict    string  `json:"verdict"`
}

// Change is a delta of the new run against the same delta of the old one.
type Change struct {
	Network  string `json:"network"`
	Baseline string `json:"baseline"`
	Setting
	Path   string `json:"path"`
	Metric string `json:"metric"`
	// Headline marks what is judged: only such changes decide the outcome.
	Headline bool          `json:"headline"`
	Unit     string        `json:"unit"`
	Better   string        `json:"better"` // lower or higher
	Old      ComparedDelta `json:"old"`
	New      ComparedDelta `json:"new"`
	// Change is the new ratio over the old one, 1 if nothing changed; left out where a ratio means nothing. Its bounds are
	// null when there are too few builds for an interval.
	Change     float64  `json:"change,omitzero"`
	ChangeLow  *float64 `json:"change_low"`
	ChangeHigh *float64 `json:"change_high"`
	// ByTime says that the baseline moved by more than the margin, and that the change is of what the networks add, each on top of the
	// mean of the baselines, which changed less than the ratios.
	ByTime bool `json:"by_time,omitempty"`
	// Shift is the new difference less the old one, in the metric's unit, for metrics without a ratio (loss).
	Shift     float64  `json:"shift,omitzero"`
	ShiftLow  *float64 `json:"shift_low,omitempty"`
	ShiftHigh *float64 `json:"shift_high,omitempty"`
	// P is of the hypothesis that the change is no larger than the margin; PAdjusted is corrected for the number of changes.
	P         *float64 `json:"p"`
	PAdjusted *float64 `json:"p_adjusted"`
	// Floor is the size below which a change may be an error that a run keeps through its builds, as the null checks of
	// both runs leave it possible; null without them.
	Floor *float64 `json:"floor"`
	// Findable is the smallest change that would have been found in every second comparison of runs like these; null without an interval.
	Findable *float64 `json:"findable"`
	// Need is how many builds each run would have to have for an interval or a verdict; 0 when there are enough, or when no
	// sensible number would do.
	Need     int      `json:"need,omitempty"`
	Verdict  string   `json:"verdict"` // regressed, improved, same, unresolved
	Warnings []string `json:"warnings,omitempty"`
}

// Unpaired is a delta that only one of two runs has.
type Unpaired struct {
	In       string `json:"in"` // old or new
	Network  string `json:"network"`
	Baseline string `json:"baseline"`
	Setting
	Path   string `json:"path"`
	Metric string `json:"metric"`
	// Why says what the other run has in its stead, as far as it is known.
	Why string `json:"why"`
}

// Complete returns c with empty instead of missing lists, so that none of them is null in JSON.
func (c Comparison) Complete() Comparison {
	c.Differences = orEmpty(c.Differences)
	c.Baselines = orEmpty(c.Baselines)
	c.Changes = orEmpty(c.Changes)
	c.Unpaired = orEmpty(c.Unpaired)
	return c
}

// Effect is what a factor does to one network: a cell at one of the factor's levels against the same network, workload and
// parameters at the first level, paired in the same rounds. Where a Delta is what a network costs, an Effect is what a
// condition costs on it.
type Effect struct {
	// Cell is measured at the level To, Reference at the level From; everything else of them is the same.
	Cell      string `json:"cell"`
	Reference string `json:"reference"`
	Network   string `json:"network"`
	Setting
	Path string `json:"path"`
	// Factor is a condition or parameter ("policy"), From and To are two of its levels ("none", "nftables:1000").
	Factor string `json:"factor"`
	From   string `json:"from"`
	To     string `json:"to"`
	Metric string `json:"metric"`
	// Headline marks the metric that the setting's verdicts and conclusions are about.
	Headline bool   `json:"headline"`
	Unit     string `json:"unit"`
	Better   string `json:"better"` // lower or higher
	// FromValue is the metric's value at From, Value its value at To.
	FromValue float64 `json:"from_value"`
	Value     float64 `json:"value"`
	Judgement
	Warnings []string `json:"warnings,omitempty"`
	// Across says that the two levels are states of the cluster; Blocks then counts the visits to each.
	Across *Across `json:"across,omitempty"`
}

// Contrast is one network of a setting held directly against another, in the headline metric: over the builds that both were measured
// in, without the baseline in between.
type Contrast struct {
	Cell  string `json:"cell"`
	Other string `json:"other"`
	// Ratio is Cell over Other; it is left out where a ratio means nothing, and the difference stands in its place.
	Ratio          float64  `json:"ratio,omitzero"`
	RatioLow       *float64 `json:"ratio_low,omitempty"`
	RatioHigh      *float64 `json:"ratio_high,omitempty"`
	Difference     float64  `json:"difference,omitzero"`
	DifferenceLow  *float64 `json:"difference_low,omitempty"`
	DifferenceHigh *float64 `json:"difference_high,omitempty"`
	// Blocks counts the builds behind the interval.
	Blocks int `json:"blocks"`
	// PAdjusted is corrected over all contrasts of the setting.
	PAdjusted *float64 `json:"p_adjusted"`
	// Cheaper is the cell of the two that is known to cost less, "" where neither is.
	Cheaper string `json:"cheaper,omitempty"`
}

// The verdicts on goals.
const (
	GoalPass    = "pass"
	GoalFail    = "fail"
	GoalUnknown = "unknown" // the interval holds the limit, or there is none
)

// Goal is something that has to hold of a run's deltas, and whether it does.
type Goal struct {
	// Goal is in the language of a study file: "vxlan.p99 < +20%".
	Goal     string `json:"goal"`
	Verdict  string `json:"verdict"` // pass, fail, unknown
	Measured string `json:"measured"`
}

// Advice is an opportunity: a change with its gain and how to make it, or a run that would tell more.
type Advice struct {
	// Kind is "change" (make it), "keep" (leave it as it is), "fix" (of what the doctor found), "last-resort" (a change that gives up a network of the pod's own) or "measure" (run How to know more).
	Kind string `json:"kind"`
	Says string `json:"says"`
	// Why is the evidence: in which settings, with which verdicts.
	Why string `json:"why"`
	// Gain is what a change does where it gains most for sure.
	Gain *Gain `json:"gain,omitempty"`
	// How and Undo are commands and lines of manifests; a line that begins with "# " says which system the next ones are for.
	How  []string `json:"how,omitempty"`
	Undo []string `json:"undo,omitempty"`
	Risk string   `json:"risk,omitempty"`
}

// Gain is what a change does to a metric in one setting: after it against before, with intervals.
type Gain struct {
	Setting string `json:"setting"`
	Metric  string `json:"metric"`
	Unit    string `json:"unit"`
	Better  string `json:"better"` // lower or higher
	// Ratio is the value after over the value before; it is left out where a ratio means nothing.
	Ratio          float64  `json:"ratio,omitzero"`
	RatioLow       *float64 `json:"ratio_low"`
	RatioHigh      *float64 `json:"ratio_high"`
	Difference     float64  `json:"difference"`
	DifferenceLow  *float64 `json:"difference_low"`
	DifferenceHigh *float64 `json:"difference_high"`
}
