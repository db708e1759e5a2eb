// Package policies shows how long NetworkPolicy objects took to have an effect.
package policies

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"netdelta/experiment/policies"
	insight "netdelta/insight/policies"
	"netdelta/report/ui"
	"netdelta/unit"
)

// WriteText prints a report. It fails if w does.
func WriteText(w io.Writer, r insight.Report) error {
	return ui.Print(w, "how policies took effect", func(out ui.Text) {
		out.Put("NetworkPolicy, from the request to the API server until the first probe that meets the change; a probe every %s\n", unit.Duration(r.Every))
		if slices.ContainsFunc(r.Latencies, func(l insight.Latency) bool { return policies.Fresh(l.Change) }) {
			out.Put("of a fresh pod, from when its program began, by its own clock\n")
		}
		table := ui.NewTable("policies", "packets are", "samples", "p50", "95% interval", "max", "the request", "resolution", "clocks off by")
		for _, l := range r.Latencies {
			interval := "needs 6 samples"
			if l.Low != nil && l.High != nil {
				interval = text(*l.Low) + " to " + text(*l.High)
			}
			table.Row(l.Policies, words(l.Change), l.Samples, text(l.Median), interval, text(l.Max), unlessFresh(l, l.Request), text(l.Resolution), unlessFresh(l, l.ClockError))
		}
		out.Table(table)
		for _, l := range r.Latencies {
			if l.Change == policies.Barred {
				out.Put("  at %s: %s\n", unit.Counted(l.Policies, "policy"), slipped(l))
			}
		}
		if r.Disturbed > 0 {
			out.Put("  repetitions begun anew since the way opened or closed by itself: %d\n", r.Disturbed)
		}
		for _, f := range r.Failures {
			out.Put("  at %s: %s\n", unit.Counted(f.Policies, "policy"), ui.Clean(f.Why))
		}
	})
}

// words say what a change is.
func words(c policies.Change) string {
	return cmp.Or(map[policies.Change]string{
		policies.Refused:  "refused after it was made",
		policies.Admitted: "passing after a fresh pod began that it lets in",
		policies.Barred:   "refused after a fresh pod began that none lets in",
	}[c], "passing after it was deleted")
}

// unlessFresh is a time that a fresh pod has no part in.
func unlessFresh(l insight.Latency, d time.Duration) string {
	if policies.Fresh(l.Change) {
		return "-"
	}
	return text(d)
}

// slipped says how much passed that was to be refused.
func slipped(l insight.Latency) string {
	if l.Slipped == 0 {
		return fmt.Sprintf("no packet passed of %d fresh pods that no policy lets in", l.Samples)
	}
	return fmt.Sprintf("%d packets passed of %d of the %d fresh pods that no policy lets in", l.Slipped, l.SlippedIn, l.Samples)
}

// text is a time; one before the answer has its sign.
func text(d time.Duration) string {
	if d < 0 {
		return "-" + unit.Duration(-d)
	}
	return unit.Duration(d)
}
