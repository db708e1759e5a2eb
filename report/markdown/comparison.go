package markdown

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
)

// WriteComparison writes what changed between two runs: the outcome first, since a comment on a pull request is read from
// the top, then what differs between the runs' environments, then the changes.
func WriteComparison(w io.Writer, c result.Comparison) error {
	d := &document{w: bufio.NewWriter(w)}
	d.paragraph("## " + escape(c.Old.Run) + " → " + escape(c.New.Run))
	d.paragraph("**" + escape(c.Says) + "**")
	d.differences(c)
	for _, g := range insight.Groups(c) {
		d.changes(c, g)
	}
	d.unpaired(c.Unpaired)
	d.notes(c.Notes)
	return d.w.Flush()
}

// differences writes how the environments differ.
func (d *document) differences(c result.Comparison) {
	d.paragraph("### What differs between the runs")
	if words.Elsewhere(c) == "" {
		d.paragraph(words.Alike(c))
	} else {
		d.paragraph("Only deltas are compared, each against the baseline of its own run.")
	}
	var rows [][]string
	for _, v := range c.Differences {
		what := escape(v.What)
		if len(v.Where) > 0 {
			what += " (" + escape(strings.Join(v.Where, ", ")) + ")"
		}
		rows = append(rows, []string{v.Group, what, escape(words.Recorded(v.Old)), escape(words.Recorded(v.New))})
	}
	d.table(rows, "", "", "old", "new")
}

// changes writes the table of a group.
func (d *document) changes(c result.Comparison, g insight.Group) {
	first := g.Changes[0]
	title := fmt.Sprintf("### %s, %s: %s", escape(words.Load(first.Setting)), words.At(first.Placement), escape(first.Metric))
	if !first.Headline {
		title += " (reported, not judged)"
	}
	d.paragraph(title)
	if context := words.Context(g, c, "→"); context != "" {
		d.paragraph(escape(context) + ".")
	}
	var rows [][]string
	for _, change := range g.Changes {
		interval := interval(insight.ChangeAsDelta(change))
		if !insight.HasInterval(insight.ChangeAsDelta(change)) {
			interval = fmt.Sprintf("%d and %d of %d builds", change.Old.Blocks, change.New.Blocks, change.Need)
		}
		rows = append(rows, []string{
			escape(insight.Name(change.Network, change.Path)), words.Amount(change), interval,
			words.Against(change.Old, change.Unit), words.Against(change.New, change.Unit), emphasis(change.Verdict),
		})
	}
	title = percentage(c.Confidence) + "% interval"
	if c.Exact {
		title = "range over seeds"
	}
	d.table(rows, "network", "change>", title+">", "old vs "+escape(first.Baseline)+">", "new vs "+escape(first.Baseline)+">", "verdict")
}

// unpaired writes the deltas that only one of the runs has.
func (d *document) unpaired(all []result.Unpaired) {
	var rows [][]string
	for _, u := range all {
		rows = append(rows, []string{
			u.In, escape(insight.Name(u.Network, u.Path)), escape(words.Load(u.Setting)), words.At(u.Placement), escape(u.Why),
		})
	}
	d.heading("### Only in one of the runs", len(rows))
	d.table(rows, "run", "network", "workload", "placement", "why")
}
