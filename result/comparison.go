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
