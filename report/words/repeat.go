package words

import (
	"fmt"
	"strings"

	"netdelta/insight"
	"netdelta/result"
	"netdelta/unit"
)

// RegimeSays is a regime in a sentence, "" for none.
func RegimeSays(regime string) string {
	switch regime {
	case result.RegimeSaturated:
		return "saturated: both ends share a processor that never rests, as in a busy service; what is added is the processor time of the network."
	case result.RegimeWaking:
		return "waking: each end sleeps on a processor of its own until a message comes, as in a service with little to do. Wake-ups are most of the " +
			"baseline's time and change with the state of the machine: the added time is more stable than the percentage."
	case result.RegimePaced:
		return "paced: requests come at a fixed rate whether or not the last one was answered, on two processors that rest in between."
	}
	return ""
}

// Repeating says whether the intervals of a run are for this run alone or for repeating it. It is "" where the run has no intervals.
func Repeating(run result.Run) string {
	if run.Exact != nil || len(run.Deltas) == 0 {
		return ""
	}
	r := run.Repeating
	if r == nil {
		return "intervals are of this run alone, for it is not known what runs here differ by; three runs of it say that"
	}
	var spreads []string
	for _, s := range r.Spreads {
		if used(run.Deltas, s) {
			name := strings.TrimSpace(s.Workload + " " + s.Regime)
			var parts []string
			if s.Level > 0 {
				parts = append(parts, fmt.Sprintf("%.2g%%", 100*s.Level))
			}
			if s.Share > 0 {
				parts = append(parts, fmt.Sprintf("%.2g%% of what is added", 100*s.Share))
			}
			spreads = append(spreads, strings.TrimSpace(name+" "+strings.Join(parts, " and ")))
		}
	}
	if len(spreads) == 0 {
		return "intervals are of this run alone, for it is not known what runs of these workloads differ by; three runs say that"
	}
	from := "measured on another machine (docs/statistics.md), until runs are made here"
	if r.Runs > 1 {
		from = fmt.Sprintf("by %s here and what was measured on another machine", unit.Counted(r.Runs, "earlier run"))
	}
	return fmt.Sprintf("intervals are for repeating the run on this machine; runs differ by %s (standard deviation), %s", strings.Join(spreads, ", "), from)
}

// RepeatingSentence is Repeating as a sentence.
func RepeatingSentence(run result.Run) string {
	text := Repeating(run)
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// used says whether a spread is in any interval.
func used(deltas []result.Delta, s result.RunSpread) bool {
	for _, d := range deltas {
		if d.Headline && d.Within != nil && d.Workload == s.Workload && d.Regime() == s.Regime {
			return true
		}
	}
	return false
}

// AddedInterval is the interval of a delta's difference in the unit of its workload, "" where it has none: "[+2.10, +2.25] µs".
func AddedInterval(d result.Delta) string {
	if d.DifferenceLow == nil || d.DifferenceHigh == nil {
		return ""
	}
	low, high := Difference(Unit(d), *d.DifferenceLow), Difference(Unit(d), *d.DifferenceHigh)
	lowNumber, lowUnit, _ := strings.Cut(low, " ")
	if _, highUnit, _ := strings.Cut(high, " "); lowUnit == highUnit && lowUnit != "" {
		return "[" + lowNumber + ", " + strings.TrimSuffix(high, " "+highUnit) + "] " + highUnit
	}
	return "[" + low + ", " + high + "]"
}

// WithinRun is the interval of a run alone, where the one that is printed is for repeating it; "" elsewhere.
func WithinRun(d result.Delta) string {
	own := insight.WithinRun(d)
	if d.Within == nil || own.RatioLow == nil || own.RatioHigh == nil || d.Ratio == 0 {
		return ""
	}
	return Interval(own)
}
