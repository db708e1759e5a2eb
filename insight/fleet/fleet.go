// Package fleet says what runs of fleets found.
package fleet

import (
	"slices"

	"netdelta/experiment/fleet"
	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/result"
)

// Report is an outcome with the deltas of its run.
type Report struct {
	fleet.Outcome
	// Deltas are of the headline metric, of p99 and of rates. Rates are those of one client.
	Deltas []result.Delta `json:"deltas"`
	// Null is the baseline against its A/A control.
	Null []result.Delta `json:"null"`
	// Checks are the null checks that failed: they leave no delta that is called different.
	Checks []result.Check `json:"checks,omitempty"`
}

// Of is the report of a run whose deltas are filled in. It fails if a histogram can't be read.
func Of(m insight.Measured) (Report, error) {
	o, err := fleet.Of(m.Run, result.All(m.Trials))
	shown := func(d result.Delta) bool { return d.Headline || slices.Contains([]string{"p99", "rate"}, d.Metric) }
	r := Report{Outcome: o, Deltas: []result.Delta{}, Null: []result.Delta{}}
	r.Deltas, r.Null = append(r.Deltas, gather.Where(m.Run.Deltas, shown)...), append(r.Null, gather.Where(m.Run.Null, shown)...)
	r.Checks = gather.Where(m.Run.Checks, func(c result.Check) bool { return c.Check == insight.CheckNull })
	return r, err
}

// Excluded counts the rounds that a delta leaves out since clients were missing in them.
func Excluded(d result.Delta) int {
	return d.Excluded[result.ClientsMissing] + d.Excluded[insight.OfBaseline+result.ClientsMissing]
}
