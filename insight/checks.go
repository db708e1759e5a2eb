package insight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"netdelta/probe/sockets"
	"netdelta/probe/stalls"
	"netdelta/result"
)

// Names of the checks that this package makes. A check is listed when it found something.
const (
	CheckFinished  = "finished"  // the trial ran to its end
	CheckMeasured  = "measured"  // there is something to compare
	CheckBaseline  = "baseline"  // the setting has a baseline
	CheckDisturbed = "disturbed" // most of the trial's bursts count
	CheckLoss      = "loss"      // all datagrams arrived
	CheckHistogram = "histogram" // the histogram can be read
	CheckSender    = "sender"    // it is the network that bounds a search, not its sender
	CheckPath      = "path"      // the packets went the way that the network says
	CheckSockets   = "sockets"   // no buffer or queue of a socket bounded what was measured
	CheckStalls    = "stalls"    // something arrived all the time
	CheckErrors    = "errors"    // no transaction failed
	CheckDisk      = "disk"      // it is not the disk that bounds a workload
	CheckServices  = "services"  // the daemons that serve were well, and none had to be started again
)

// disturbedShare is the share of disturbed bursts from which a trial is reported.
const disturbedShare = 0.25

// trialChecks looks at every trial by itself, in the order of builds and cells.
func trialChecks(all []sitting) []result.Check {
	var checks []result.Check
	for _, s := range all {
		for _, cell := range slices.Sorted(maps.Keys(s)) {
			checks = append(checks, s[cell].checks()...)
		}
	}
	return checks
}

// checks are what is wrong with one trial.
func (s *summary) checks() []result.Check {
	t := s.trial
	if t.Failed != "" {
		return []result.Check{{Trial: t.ID(), Check: CheckFinished, Expected: "a trial that runs to its end", Observed: t.Failed}}
	}
	var checks []result.Check
	if t.Path != nil && !t.Path.OK {
		checks = append(checks, result.Check{
			Trial: t.ID(), Check: CheckPath, Expected: way(*t.Path), Observed: strings.Join(t.Path.Findings, "; "),
		})
	}
	if n, of := disturbed(t.Bursts); of > 0 && float64(n) > disturbedShare*float64(of) {
		checks = append(checks, result.Check{
			Trial: t.ID(), Check: CheckDisturbed, Expected: fmt.Sprintf("at most %.0f%% of bursts disturbed", 100*disturbedShare),
			Observed: fmt.Sprintf("%d of %d", n, of),
		})
	}
	if found := stalls.Find(*t); len(found) > 0 {
		checks = append(checks, result.Check{
			Trial: t.ID(), Check: CheckStalls, Expected: "something arriving all the time", Observed: stalled(found),
		})
	}
	if t.Lost > 0 && !searched(t) {
		checks = append(checks, result.Check{
			Trial: t.ID(), Check: CheckLoss, Expected: "0 datagrams lost", Observed: fmt.Sprintf("%d lost", t.Lost),
		})
	}
	checks = append(checks, s.served()...)
	if found := sockets.Findings(*t); len(found) > 0 {
		checks = append(checks, result.Check{
			Trial: t.ID(), Check: CheckSockets, Expected: "sockets that turn nothing away, alike at both ends", Observed: strings.Join(found, "; "),
		})
	}
	if n := senders(t.Bursts); 2*n > len(t.Bursts.AtLeast) {
		checks = append(checks, result.Check{
			Trial: t.ID(), Check: CheckSender, Expected: "a rate that the network bounds",
			Observed: fmt.Sprintf("%d of %d searches that ended where the sender could do no more", n, len(t.Bursts.AtLeast)),
		})
	}
	if s.decode(); s.broken != nil {
		checks = append(checks, result.Check{
			Trial: t.ID(), Check: CheckHistogram, Expected: "a histogram that can be read", Observed: s.broken.Error(),
		})
	}
	return checks
}

// stallsMost is how many stalls of one trial are told one by one.
const stallsMost = 3

// stalled tells of a trial's stalls, the first of them in full.
func stalled(found []stalls.Stall) string {
	var parts []string
	for i, s := range found {
		if i == stallsMost && len(found) > stallsMost+1 {
			parts = append(parts, fmt.Sprintf("and %d more", len(found)-i))
			break
		}
		parts = append(parts, s.String())
	}
	return strings.Join(parts, "; ")
}

// senders counts the undisturbed searches that their own sender has bounded.
func senders(b result.Bursts) int {
	n := 0
	for i, bounded := range b.AtLeast {
		if bounded && (i >= len(b.Disturbed) || b.Disturbed[i] == "") {
			n++
		}
	}
	return n
}

// disturbed counts the bursts that are marked, and all.
func disturbed(b result.Bursts) (n, of int) {
	for _, reason := range b.Disturbed {
		if reason != "" {
			n++
		}
	}
	return n, len(b.Round)
}

// baselineChecks says of each cell of a table that there is nothing to hold it against.
func baselineChecks(t table) []result.Check {
	var checks []result.Check
	for _, cell := range t.cells {
		checks = append(checks, result.Check{
			Trial: cell.ID, Check: CheckBaseline, Expected: "a baseline of the same setting", Observed: "none was measured",
		})
	}
	return checks
}

// unmeasured says why a cell has no delta.
func unmeasured(cell result.Cell, m metric, excluded map[string]int) *result.Check {
	observed := "no trial"
	if len(excluded) > 0 {
		var reasons []string
		for _, reason := range slices.Sorted(maps.Keys(excluded)) {
			reasons = append(reasons, fmt.Sprintf("%s: %d", reason, excluded[reason]))
		}
		observed = strings.Join(reasons, ", ")
	}
	return &result.Check{
		Trial: cell.ID, Check: CheckMeasured, Expected: "a " + m.name + " that can be paired with the baseline's", Observed: observed,
	}
}
