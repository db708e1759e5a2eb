// Package annotations writes the goals of a run, or what changed between two runs, as workflow commands
// (https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands): lines that GitHub Actions, Gitea and Forgejo
// take out of a job's log and show with the change that the job is about. Elsewhere they are plain lines of a log.
package annotations

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
)

// The levels of an annotation.
const (
	levelError   = "error"
	levelWarning = "warning"
	levelNotice  = "notice"
)

// WriteComparison writes an error for each regression, a notice for each improvement, and last the outcome: as a notice, or as a
// warning where nothing could be compared.
func WriteComparison(w io.Writer, c result.Comparison) error {
	out := bufio.NewWriter(w)
	for _, change := range insight.ByVerdict(c, stats.Regressed) {
		annotate(out, levelError, "Regression: "+subject(change), sentence(c, change))
	}
	for _, change := range insight.ByVerdict(c, stats.Improved) {
		annotate(out, levelNotice, "Improvement: "+subject(change), sentence(c, change))
	}
	level := levelNotice
	if c.Verdict == insight.NothingCompared {
		level = levelWarning
	}
	annotate(out, level, "netdelta compare", c.Says)
	return out.Flush()
}

// Write writes an error for each goal that a run fails, a warning for each that it can't tell, and last the summary of the run.
func Write(w io.Writer, run result.Run) error {
	out := bufio.NewWriter(w)
	for _, g := range run.Goals {
		switch g.Verdict {
		case result.GoalFail:
			annotate(out, levelError, "Goal failed: "+g.Goal, g.Measured)
		case result.GoalUnknown:
			annotate(out, levelWarning, "Goal unknown: "+g.Goal, g.Measured)
		}
	}
	annotate(out, levelNotice, "netdelta "+run.Run, strings.Join(words.Summary(run), " "))
	return out.Flush()
}

// annotate writes one annotation. A writer's error is kept by the buffer and returned by its Flush.
func annotate(w *bufio.Writer, level, title, message string) {
	fmt.Fprintf(w, "::%s title=%s::%s\n", level, property(title), data(message))
}

// subject names what has changed.
func subject(c result.Change) string {
	return insight.Name(c.Network, c.Path) + ", " + words.Load(c.Setting) + ", " + words.At(c.Placement)
}

// sentence says how far something changed, and what it costs now.
func sentence(c result.Comparison, change result.Change) string {
	return fmt.Sprintf("%s %s since %s %s: against %s it cost %s, and now %s.", change.Metric, words.Amount(change), c.Old.Run,
		between(change), change.Baseline, words.Against(change.Old, change.Unit), words.Against(change.New, change.Unit))
}

// between is the interval of a change.
func between(c result.Change) string {
	if c.ChangeLow != nil && c.ChangeHigh != nil {
		return "[" + words.Percent(*c.ChangeLow) + ", " + words.Percent(*c.ChangeHigh) + "]"
	}
	if c.ShiftLow != nil && c.ShiftHigh != nil {
		return "[" + words.Difference(c.Unit, *c.ShiftLow) + ", " + words.Difference(c.Unit, *c.ShiftHigh) + "]"
	}
	return "[no interval]"
}

// data is text as a command's message takes it: on one line, with percent signs and line breaks spelled out.
func data(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(ui.Clean(text))
}

// property is text as a command's property takes it: colons and commas, which end one, are spelled out too.
func property(text string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(data(text))
}
