package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Imported is Run.Testbed of a run that was made of what other programs measured elsewhere.
const Imported = "imported"

// ErrNoRun says that a path is no run folder: there is nothing, a file, or a folder without any file of a run.
var ErrNoRun = errors.New("not a run folder")

// unreadable says what is wrong with a run folder of which a file can't be read, and what to do about it. Files is nil where the
// folder itself can't be opened.
func unreadable(dir string, files *Files, err error) error {
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("%s is %w but a file (%w); give the folder that netdelta run named", dir, ErrNoRun, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("read the run folder: %w; change its permissions, or choose a folder that you may read and, to go on with its run, that you may write", err)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read the run folder: %w", err)
	case files.holdsRun():
		return fmt.Errorf("%w: its run ended before it wrote this file, or the file was taken away; go on with it by netdelta run --resume %s", err, dir)
	}
	return fmt.Errorf("%s is %w (%w); give the folder that netdelta run named", dir, ErrNoRun, err)
}

// holdsRun says whether a folder has any file that makes it a run's. A study alone does not: a user may keep one anywhere.
func (f *Files) holdsRun() bool {
	if f == nil {
		return false
	}
	for _, name := range []string{TrialsFile, ResultFile} {
		if _, err := f.root.Lstat(name); err == nil {
			return true
		}
	}
	return false
}

// writer is the version of the netdelta that wrote a run folder, "" if it can't be told. It is read on its own, since the
// rest of a record may be of a schema that this program does not understand.
func (f *Files) writer() string {
	var record struct {
		Netdelta    string `json:"netdelta"`
		Environment struct {
			Netdelta string `json:"netdelta"`
		} `json:"environment"`
	}
	for _, name := range []string{EnvironmentFile, ResultFile} {
		data, err := f.Read(name, recordMost)
		if err != nil || json.Unmarshal(data, &record) != nil {
			continue
		}
		if record.Netdelta != "" {
			return record.Netdelta
		}
		if record.Environment.Netdelta != "" {
			return record.Environment.Netdelta
		}
	}
	return ""
}

// Complete returns r with empty instead of missing lists, so that none of them is null in JSON.
func (r Run) Complete() Run {
	r.Environment = r.Environment.complete()
	r.Cells = orEmpty(r.Cells)
	r.Deltas = completeDeltas(r.Deltas)
	r.Null = completeDeltas(r.Null)
	for i, e := range r.Effects {
		if e.Excluded == nil {
			r.Effects = slices.Clone(r.Effects)
			r.Effects[i].Excluded = map[string]int{}
		}
	}
	r.Checks = orEmpty(r.Checks)
	r.Claims = orEmpty(r.Claims)
	r.Advice = orEmpty(r.Advice)
	r.Summary.Says, r.Summary.Cells = orEmpty(r.Summary.Says), orEmpty(r.Summary.Cells)
	return r
}

// complete does for the environment what Complete does for the run.
func (e Environment) complete() Environment {
	if e.Sysctls == nil {
		e.Sysctls = map[string]string{}
	}
	e.Links = orEmpty(e.Links)
	e.Measuring = orEmpty(e.Measuring)
	e.Controlling = orEmpty(e.Controlling)
	return e
}

// completeDeltas copies the deltas with a map of exclusions in each.
func completeDeltas(deltas []Delta) []Delta {
	completed := make([]Delta, len(deltas))
	for i, d := range deltas {
		if d.Excluded == nil {
			d.Excluded = map[string]int{}
		}
		completed[i] = d
	}
	return completed
}

// orEmpty returns an empty list for a missing one.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Strategies that have loops of their own.
const (
	StrategyPairs    = "pairs"
	StrategyFleet    = "fleet"
	StrategyPolicies = "policies"
)

// Strategy is how a run measured that did not measure cells in rounds or blocks.
type Strategy struct {
	Name string `json:"name"`
	// Burst is how long each burst, or each synchronised burst of a fleet, lasted.
	Burst time.Duration `json:"burst_ns,omitempty"`
	// Clients and Servers are how many a fleet was to have in each network.
	Clients int `json:"clients,omitempty"`
	Servers int `json:"servers,omitempty"`
	// Every is the time between two probes of policies, and Repeat how often each change was to be measured.
	Every  time.Duration `json:"every_ns,omitempty"`
	Repeat int           `json:"repeat,omitempty"`
}

// NodePair is one direction between two nodes, with the reason if it could not be measured. Client and Server are the same where
// the node itself failed.
type NodePair struct {
	Client string `json:"client"`
	Server string `json:"server"`
	Failed string `json:"failed,omitempty"`
}

// FleetBuild is what one set-up of a fleet recorded in addition to its bursts: a burst of a fleet is what all clients measured together.
type FleetBuild struct {
	// Pods is how long the pods took, Connected how long until all clients were connected, both from the beginning of the set-up.
	Pods      time.Duration `json:"pods_ns"`
	Connected time.Duration `json:"connected_ns"`
	// Clients is how many fired to the end, and Fairness Jain's index of what they got done.
	Clients  int     `json:"clients"`
	Fairness float64 `json:"fairness"`
	// Fired is how many clients took part in each burst.
	Fired []int `json:"fired,omitempty"`
	// Late is the histogram of how long after the common instant clients began, encoded as Trial.Histogram; ClockError is how far
	// the worst clock may have been off.
	Late       string        `json:"late,omitempty"`
	ClockError time.Duration `json:"clock_error_ns"`
	// Slowest and Fastest are the clients that got the least and the most done in a second.
	Slowest *FleetClient `json:"slowest,omitempty"`
	Fastest *FleetClient `json:"fastest,omitempty"`
	// Failures are the first clients and pods that failed, and Failed is how many did.
	Failures []FleetFailure `json:"failures,omitempty"`
	Failed   int            `json:"failed,omitempty"`
}

// FleetClient is what one client of a fleet got done in a second: transactions, and bits of payload.
type FleetClient struct {
	Pod        string  `json:"pod"`
	Node       string  `json:"node"`
	Build      int     `json:"build"`
	Rate       float64 `json:"rate"`
	Throughput float64 `json:"throughput"`
}

// FleetFailure is a client or a pod that was lost, or a build that could not be set up.
type FleetFailure struct {
	Build int    `json:"build"`
	Pod   string `json:"pod,omitempty"`
	Node  string `json:"node,omitempty"`
	Why   string `json:"why"`
}

// PolicyKind is what a policy does to a way.
type PolicyKind string

// PolicyChange is one change of a NetworkPolicy and when packets showed its effect. Times count from when the request was sent; those
// of a fresh pod from when its program began.
type PolicyChange struct {
	// Policies is how many were in force.
	Policies int        `json:"policies"`
	Change   PolicyKind `json:"change"`
	// Request is how long the API server took to answer: on a busy machine an effect can come before the answer.
	Request time.Duration `json:"request_ns"`
	// Before is when the last probe was sent that the change did not reach, and After the first that it did.
	Before time.Duration `json:"before_ns"`
	After  time.Duration `json:"after_ns"`
	// ClockError is how far both may be off. A fresh pod reads all times by itself.
	ClockError time.Duration `json:"clock_error_ns"`
	// Slipped counts packets of a fresh pod that passed although no policy lets it in.
	Slipped int `json:"slipped,omitempty"`
	// Disturbed counts repetitions that were begun anew since the change before.
	Disturbed int `json:"disturbed,omitempty"`
}
