package insight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
	CheckPath      = "path"      // the packets went the way that the network says
	CheckStalls    = "stalls"    // something arrived all the time
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
	if t.Lost > 0 && !searched(t) {
		checks = append(checks, result.Check{
			Trial: t.ID(), Check: CheckLoss, Expected: "0 datagrams lost", Observed: fmt.Sprintf("%d lost", t.Lost),
		})
	}
	if s.decode(); s.broken != nil {
		checks = append(checks, result.Check{
			Trial: t.ID(), Check: CheckHistogram, Expected: "a histogram that can be read", Observed: s.broken.Error(),
		})
	}
	return checks
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
