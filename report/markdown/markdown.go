// Package markdown writes a run, or what changed between two, as GitHub Flavored Markdown: for a pull request, an issue or a
// wiki. What a reader needs first stands first; the environment is folded.
package markdown

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
)

// Write writes a run. Deltas, null check, checks, claims and advice must be filled in.
func Write(w io.Writer, run result.Run) error {
	d := &document{w: bufio.NewWriter(w)}
	d.line("## " + escape(run.Study))
	d.line("")
	if run.Question != "" {
		d.paragraph("**" + escape(run.Question) + "**")
	}
	if where := words.Machine(run); len(where) > 0 {
		d.paragraph(escape(strings.Join(where, " · ")))
	}
	for _, says := range words.Summary(run) {
		d.paragraph(escape(says))
	}
	if says := words.ExactSays(run); says != "" {
		d.paragraph(escape(says))
	}
	answered := insight.Answered(run)
	for _, p := range answered {
		d.setting(p, run)
	}
	effects := insight.EffectTables(run)
	if len(answered)+len(effects) > 0 {
		d.list("What could overturn a choice:", words.Caveats(run))
	}
	if len(answered) == 0 {
		d.effects(run, effects)
		effects = nil
	}
	d.advice(run.Advice)
	d.goals(run.Goals)
	d.folded("Further settings", func(d *document) { d.further(run, answered) })
	d.folded("What the conditions cost", func(d *document) { d.effects(run, effects) })
	d.folded("Where the latency goes", func(d *document) { d.links(run.Links); d.breakdown(run) })
	d.folded("Instructions and time", func(d *document) { d.exactComparison(run.ExactComparison) })
	d.folded("Claims", func(d *document) { d.claims(run.Claims) })
	d.folded("What the figures rest on", func(d *document) {
		if says := words.RepeatingSentence(run); says != "" {
			d.paragraph(escape(says))
		}
		d.list("What may surprise:", words.Surprises(run))
		d.checks(run)
		d.absent(run.Cells)
		d.notes(run.Notes)
	})
	d.folded("Environment", func(d *document) { d.environment(run) })
	return d.w.Flush()
}

// folded writes what a reader has to unfold, unless it is empty.
func (d *document) folded(title string, write func(d *document)) {
	var text bytes.Buffer
	inner := &document{w: bufio.NewWriter(&text)}
	write(inner)
	if err := inner.w.Flush(); err == nil && text.Len() > 0 { // memory takes all
		d.line("<details><summary>" + title + "</summary>\n")
		d.w.Write(text.Bytes())
		d.line("</details>\n")
	}
}

// further writes the settings that the answer is not about.
func (d *document) further(run result.Run, answered []insight.Part) {
	is := map[result.Setting]bool{}
	for _, p := range answered {
		is[p.Setting] = true
	}
	rest := slices.DeleteFunc(insight.Parts(run), func(p insight.Part) bool { return is[p.Setting] || !wanted(p.Cells) })
	said := false
	for _, p := range rest {
		if says := words.Conclusion(insight.Conclude(p)); says != "" {
			d.item(escape(words.Load(p.Setting)) + ": " + escape(says))
			said = true
		}
	}
	if said {
		d.line("")
	}
	for _, p := range rest {
		d.setting(p, run)
	}
}

// document is Markdown being written. Errors of its writer are kept there until the end.
type document struct{ w *bufio.Writer }

func (d *document) line(text string)      { d.w.WriteString(text + "\n") }
func (d *document) item(text string)      { d.line("- " + text) }
func (d *document) paragraph(text string) { d.line(text + "\n") }

// heading writes a heading of entries, unless there are none.
func (d *document) heading(text string, entries int) {
	if entries > 0 {
		d.paragraph(text)
	}
}

// list writes a list with its heading, unless it is empty.
func (d *document) list(heading string, items []string) {
	d.heading(heading, len(items))
	for _, item := range items {
		d.item(item)
	}
	if len(items) > 0 {
		d.line("")
	}
}

// table writes a table unless it is empty; its texts are escaped already. A title that ends in ">" makes its column one of figures,
// aligned to the right.
func (d *document) table(rows [][]string, titles ...string) {
	if len(rows) == 0 {
		return
	}
	rule := make([]string, len(titles))
	for i, title := range titles {
		text, right := strings.CutSuffix(title, ">")
		titles[i], rule[i] = text, "---"
		if right {
			rule[i] = "--:"
		}
	}
	for _, row := range slices.Concat([][]string{titles, rule}, rows) {
		d.line("| " + strings.Join(row, " | ") + " |")
	}
	d.line("")
}

// setting writes the table of a setting.
func (d *document) setting(p insight.Part, run result.Run) {
	deltas := gather.Where(p.Null, func(n result.Delta) bool { return n.Headline })
	null := len(deltas)
	deltas = append(deltas, p.Shown()...)
	if len(deltas) == 0 {
		return
	}
	first := deltas[0]
	d.paragraph("### " + escape(words.Title(p.Setting)))
	over := percentage(run.Confidence) + "% intervals."
	if run.Exact != nil {
		over = fmt.Sprintf("Ranges over %d seeds.", len(run.Exact.Seeds))
	}
	d.paragraph(fmt.Sprintf("%s: %s %s. %s", escape(first.Baseline), escape(first.Metric), words.BaselineValue(deltas), over))
	if says := words.RegimeSays(p.Setting.Regime()); says != "" {
		d.paragraph(escape(says))
	}
	d.deltas(deltas, null)
	for _, says := range []string{words.Across(p.Headlines()), words.Reasons(insight.Reasons(run, p)), words.Bounded(p.Bounds()), words.ByState(run.Checks, p.Cells)} {
		if says != "" {
			d.paragraph(escape(says))
		}
	}
}

// deltas writes the table of deltas of one metric, the first of which are null checks.
func (d *document) deltas(deltas []result.Delta, null int) {
	var rows [][]string
	for i, delta := range deltas {
		if heading := words.Heading(deltas, i); heading != "" {
			rows = append(rows, []string{"*" + heading + "*", "", "", "", "", "", ""})
		}
		verdict := emphasis(delta.Verdict)
		if i < null {
			verdict = "null check: " + delta.Verdict
		}
		change := ""
		if delta.Ratio != 0 {
			change = percent(delta.Ratio, delta)
		}
		rows = append(rows, []string{
			escape(insight.Name(delta.Network, delta.Path)), change, interval(delta),
			strings.TrimSpace(words.Added(delta) + " " + words.AddedInterval(delta)), words.Value(words.Unit(delta), delta.Value), verdict, excluded(delta.Excluded),
		})
	}
	d.table(rows, "network", "vs "+escape(deltas[0].Baseline)+">", "interval>", "difference>", escape(deltas[0].Metric)+">", "verdict", "left out")
}

func percentage(share float64) string { return fmt.Sprintf("%.4g", 100*share) }

// emphasis makes the verdicts that speak of a difference stand out.
func emphasis(verdict string) string {
	switch stats.Verdict(verdict) {
	case stats.Slower, stats.Faster, stats.Regressed, stats.Improved:
		return "**" + verdict + "**"
	}
	return escape(verdict)
}

// percent prints a ratio as a change, with as many decimals as its interval bears.
func percent(ratio float64, d result.Delta) string { return words.Change(ratio, d) + "%" }

// interval is the interval of the ratio, or of the difference where there is no ratio.
func interval(d result.Delta) string {
	switch {
	case d.RatioLow != nil && d.RatioHigh != nil:
		return between(percent(*d.RatioLow, d), percent(*d.RatioHigh, d))
	case d.DifferenceLow != nil && d.DifferenceHigh != nil && d.Ratio == 0:
		return between(words.Difference(words.Unit(d), *d.DifferenceLow), words.Difference(words.Unit(d), *d.DifferenceHigh))
	}
	return fmt.Sprintf("%d of %d builds", d.Blocks, d.Need)
}

func between(low, high string) string { return low + " to " + high }

// excluded counts what was left out of a delta, by reason.
func excluded(counts map[string]int) string {
	parts := gather.Each(slices.Sorted(maps.Keys(counts)), func(reason string) string { return fmt.Sprintf("%s %d", escape(reason), counts[reason]) })
	return strings.Join(parts, ", ")
}

// claims writes the published findings, each with what the run says of it.
func (d *document) claims(claims []result.Claim) {
	var rows [][]string
	for _, c := range claims {
		rows = append(rows, []string{escape(c.Says), escape(c.Published), escape(c.Measured), emphasis(c.Verdict), escape(c.Source)})
	}
	d.table(rows, "claim", "published", "measured", "verdict", "source")
}

// What is not folded of the advice: so many entries, of so many characters each.
const (
	adviceMost     = 3
	adviceLongMost = 220
)

// advice writes what to change first; what else there is, the commands and the risk of each are folded.
func (d *document) advice(advice []result.Advice) {
	d.heading("### What to do", len(advice))
	for _, a := range advice[:min(adviceMost, len(advice))] {
		why, _ := words.Brief(a, func(text string) bool { return len(text) <= adviceLongMost })
		d.item(strings.TrimSpace(escape(a.Says) + " " + escape(why)))
	}
	if len(advice) > 0 {
		d.line("")
	}
	title := "How, and what it risks"
	if more := len(advice) - adviceMost; more > 0 {
		title += fmt.Sprintf(", and %d more", more)
	}
	d.folded(title, func(d *document) {
		for _, a := range advice {
			d.item(escape(a.Says) + " " + escape(a.Why))
			if a.Risk != "" {
				d.line("  Risk: " + escape(a.Risk))
			}
			d.commands("", a.How)
			d.commands("  To undo it:", a.Undo)
		}
		if len(advice) > 0 {
			d.line("")
		}
	})
}

// goals writes what was asked of the deltas.
func (d *document) goals(goals []result.Goal) {
	var rows [][]string
	for _, g := range goals {
		rows = append(rows, []string{escape(g.Goal), "**" + escape(strings.ToUpper(g.Verdict)) + "**", escape(g.Measured)})
	}
	d.heading("### Goals", len(rows))
	d.table(rows, "goal", "verdict", "measured")
}

// commands writes lines as code within an item.
func (d *document) commands(lead string, lines []string) {
	if len(lines) == 0 {
		return
	}
	if lead != "" {
		d.line("\n" + lead)
	}
	d.line("\n  ```sh")
	for _, l := range lines {
		d.line("  " + code(l))
	}
	d.line("  ```")
}

// checksMost is how many checks are listed one by one.
const checksMost = 20

// checks writes what was found wrong with trials.
func (d *document) checks(run result.Run) {
	if proved := words.Proved(run.Paths); proved != "" {
		d.paragraph("The path: " + escape(proved) + ".")
	}
	if left := words.LeftOut(run.Account); left != "" {
		d.paragraph("Left out of every delta: " + escape(left) + ".")
	}
	var rows [][]string
	for _, c := range run.Checks {
		if !c.OK {
			rows = append(rows, []string{escape(c.Trial), escape(c.Check), escape(c.Expected), escape(c.Observed)})
		}
	}
	if len(rows) == 0 {
		if len(run.Checks) > 0 {
			d.paragraph(fmt.Sprintf("All %d checks of trials passed.", len(run.Checks)))
		}
		return
	}
	d.paragraph("### Checks")
	listed := rows[:min(len(rows), checksMost)]
	d.table(listed, "trial", "check", "expected", "observed")
	if more := len(rows) - len(listed); more > 0 {
		d.paragraph(fmt.Sprintf("And %d more, in %s.", more, result.ResultFile))
	}
}

// wanted says whether anything of a setting was to be measured here.
func wanted(cells []result.Cell) bool {
	return slices.ContainsFunc(cells, func(c result.Cell) bool {
		return c.Role == result.RoleCell && c.Unsupported == "" && c.Skipped == ""
	})
}

// absent writes which networks and cells were not measured, by the reasons.
func (d *document) absent(cells []result.Cell) {
	items := gather.Each(insight.Absences(cells), func(a insight.Absence) string { return escape(words.Absent(a)) + ": " + escape(a.Why) })
	d.list("### Not measured", items)
}

// notes writes what the reader must know.
func (d *document) notes(notes []string) {
	items := gather.Each(notes, escape)
	d.list("### Notes", items)
}

// environment writes what it takes to repeat the run.
func (d *document) environment(run result.Run) {
	e := run.Environment
	rows := [][]string{}
	add := func(what, value string) {
		if value != "" {
			rows = append(rows, []string{escape(what), escape(value)})
		}
	}
	add("run", run.Run)
	add("started", run.Started.UTC().Format("2006-01-02 15:04:05 UTC"))
	if took := run.Took().Round(time.Second); took > 0 {
		add("took", took.String())
	}
	add("ended", run.Ended)
	add("testbed", run.Testbed)
	add("seed", fmt.Sprint(run.Seed))
	add("margin", percentage(run.Margin)+"%")
	add("netdelta", e.Netdelta)
	if c := e.Cluster; c != nil {
		add("cluster", c.Words())
		add("network of its pods", c.Network)
		add("services by", c.Proxy)
		for _, n := range c.Nodes {
			add("node "+n.Name, n.Words())
		}
	}
	add("kernel", e.Kernel)
	add("system", e.OS)
	if e.CPU.Count > 0 {
		add("processors", fmt.Sprintf("%d x %s", e.CPU.Count, e.CPU.Model))
	}
	add("hypervisor", e.Virtual)
	if e.Memory > 0 {
		add("memory", e.Memory.String())
	}
	add("clock source", e.Clock)
	for _, name := range slices.Sorted(maps.Keys(e.Sysctls)) {
		add(name, e.Sysctls[name])
	}
	for _, f := range e.Findings {
		add("doctor: "+f.Topic, strings.TrimPrefix(words.Findings([]result.Finding{f})[0], f.Topic+": "))
	}
	d.table(rows, "", "")
}
