package result

import "time"

// Kinds of events.
const (
	EventRunStarted    = "run-started"
	EventWaiting       = "waiting"
	EventBuildBegun    = "build-begun"
	EventProgress      = "progress"
	EventTrialFinished = "trial-finished"
	EventDeltas        = "deltas"
	EventRunEnded      = "run-ended"
)

// Event is one line of what a run tells while it is under way. Readers skip kinds that they do not know.
type Event struct {
	Schema int       `json:"schema"`
	Event  string    `json:"event"`
	Time   time.Time `json:"time"`
	// Run is what the run is of (run-started).
	Run *RunStarted `json:"run,omitempty"`
	// WaitingFor is what the run waits for before it measures (waiting).
	WaitingFor string `json:"waiting_for,omitempty"`
	// Progress is how far the run is (build-begun, progress, deltas).
	Progress *EventProgressed `json:"progress,omitempty"`
	// Trial is what one cell measured in one build (trial-finished); its figures are in the run folder.
	Trial *TrialFinished `json:"trial,omitempty"`
	// Deltas are the headline deltas so far (deltas), or of the whole run (run-ended). Those so far have intervals of this run alone.
	Deltas []Delta `json:"deltas,omitempty"`
	// Ended is how the run ended, and Summary says what it found in sentences (run-ended).
	Ended   string   `json:"ended,omitempty"`
	Summary []string `json:"summary,omitempty"`
	// Error is what kept the run from going on (run-ended).
	Error string `json:"error,omitempty"`
}

// RunStarted is what a run is of.
type RunStarted struct {
	Run     string `json:"run"`
	Folder  string `json:"folder"`
	Study   string `json:"study"`
	Testbed string `json:"testbed"`
	// Baseline is the network that the others are held against.
	Baseline string `json:"baseline"`
	// Cells is how many cells are to be measured.
	Cells int `json:"cells"`
}

// EventProgressed is how far a run is.
type EventProgressed struct {
	// Doing is what is done: preparing, setting up, measuring, judging or ending.
	Doing string `json:"doing"`
	// Build and Round count from 1; Rounds is how many rounds the build is planned to have.
	Build  int `json:"build"`
	Round  int `json:"round,omitempty"`
	Rounds int `json:"rounds,omitempty"`
	// Cells are measured in this build. Open is how many are not known well enough yet, null before the first build is judged.
	Cells int  `json:"cells"`
	Open  *int `json:"open"`
	// Elapsed and Budget are in seconds; the run may end before its budget is spent.
	Elapsed float64 `json:"elapsed_s"`
	Budget  float64 `json:"budget_s"`
}

// TrialFinished is what one cell measured in one build, without its figures.
type TrialFinished struct {
	Trial string `json:"trial"`
	Cell  string `json:"cell"`
	// Build counts from 1.
	Build  int `json:"build"`
	Bursts int `json:"bursts"`
	// Failed is why the trial gave nothing, "" if it did. Misrouted says that its packets went another way than its network says.
	Failed    string `json:"failed,omitempty"`
	Misrouted bool   `json:"misrouted,omitempty"`
}
