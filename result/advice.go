package result

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
