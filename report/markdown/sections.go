package markdown

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
)

// effects writes what the study's factors do to each network: a table for each step of a factor in each setting.
func (d *document) effects(run result.Run, tables []insight.EffectTable) {
	if len(tables) == 0 {
		return
	}
	for _, t := range tables {
		d.item(escape(words.Load(t.Open)) + ": " + escape(words.Effect(t)))
	}
	d.line("")
	for _, t := range tables {
		d.paragraph("### " + escape(words.EffectHeading(t)+" · "+words.Load(t.Open)+" · "+words.At(t.Setting.Placement)))
		d.paragraph(fmt.Sprintf("Each network against itself at %s. %s%% intervals over builds.", escape(t.From), percentage(run.Confidence)))
		d.deltas(insight.DemonstrationsLast(t.Headlines()), 0)
	}
}

// links writes how the traffic was spread over the links of bonds, in a run that has some.
func (d *document) links(links []result.LinkShare) {
	spreads := words.Spreads(links)
	if len(spreads) == 0 {
		return
	}
	d.paragraph("### Links of bonds")
	d.paragraph("What part of the bond's bytes each of its links sent in the bursts, the median over builds, and how much of its rate that is.")
	rows := make([][]string, len(spreads))
	for i, s := range spreads {
		rows[i] = []string{escape(s.Network), escape(s.Load), escape(s.Bond), s.Shares, s.Used}
	}
	d.table(rows, "network", "load", "sent by", "share of each link>", "of its rate>")
}

// breakdown writes the latency breakdown of storage and databases, in a run that has some.
func (d *document) breakdown(run result.Run) {
	var splits, replications, correlations []string
	for _, s := range run.Splits {
		splits = append(splits, escape(words.Load(s.Setting))+", "+escape(insight.Name(s.Network, s.Path))+": "+escape(words.Split(s)))
	}
	d.list("### Where the latency goes\n\n"+escape(words.SplitParts()), splits)
	for _, r := range run.Replications {
		replications = append(replications, escape(words.Load(r.Setting))+", "+escape(insight.Name(r.Network, r.Path))+": "+escape(words.Replication(r)))
	}
	d.list("### Replication", replications)
	for _, c := range run.Correlations {
		correlations = append(correlations, escape(words.Load(c.Setting))+" with the "+escape(words.Raw(c))+": "+escape(words.Correlation(c)))
	}
	d.list("### Applications against raw figures", correlations)
	d.list("### Clients", gather.Each(words.Clients(run.Clients), escape))
	if services := words.Services(run.Services); services != "" {
		d.paragraph("Services: " + escape(services))
	}
}

// exactComparison writes what an exact run says of the same networks.
func (d *document) exactComparison(b *result.ExactComparison) {
	if b == nil {
		return
	}
	d.paragraph("The same networks in the exact run " + escape(b.Run) + ", which counts instructions. " + escape(words.ExactComparison(*b)))
	for _, s := range b.Settings {
		d.paragraph("### " + escape(words.Title(s.Setting)) + ": instructions and time")
		if s.Correlation != nil {
			d.paragraph(fmt.Sprintf("Rank correlation %.2f; %s, both against %s.", *s.Correlation, escape(s.Metric), escape(s.Baseline)))
		}
		rows := words.ExactRows(s)
		for _, row := range rows {
			row[0] = escape(row[0])
		}
		d.table(rows, "network", "by time>", "place>", "by instructions>", "place>", "request>", "response>")
	}
}

// escape makes text from outside (names, notes, what a study asks) stand for itself in Markdown: in a paragraph, a list or a
// table's cell. HTML in it is shown, not carried out, and an @ in it notifies no one.
func escape(text string) string {
	text = ui.Clean(text)
	var b strings.Builder
	for i, r := range text {
		switch r {
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '&':
			b.WriteString("&amp;")
		case '@':
			b.WriteByte('@')
			if next, _ := utf8.DecodeRuneInString(text[i+1:]); unicode.IsLetter(next) || unicode.IsDigit(next) {
				b.WriteString("<!-- -->") // an empty comment: what follows is not taken for somebody's name
			}
		case '\\', '`', '*', '_', '{', '}', '[', ']', '#', '|', '~', '!', '$':
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return unlisted(b.String())
}

// code makes a line of text safe within a block of code, which three backquotes would end.
func code(line string) string { return strings.ReplaceAll(ui.Clean(line), "```", "'"+"''") }

// unlisted keeps text at the beginning of a line from being taken for a list's item, a heading's underline or a quotation.
func unlisted(text string) string {
	text = strings.TrimLeft(text, " ")
	switch {
	case text == "":
		return ""
	case strings.ContainsRune("-+=", rune(text[0])):
		return `\` + text
	}
	if at := numbered().FindStringSubmatchIndex(text); at != nil {
		return text[:at[3]] + `\` + text[at[3]:]
	}
	return text
}

// numbered is the beginning of an item in a numbered list.
func numbered() *regexp.Regexp { return regexp.MustCompile(`^([0-9]+)[.)]( |$)`) }

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
