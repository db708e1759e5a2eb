package terminal

import (
	"fmt"
	"slices"
	"strings"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
)

// gap stands between two columns.
const gap = "  "

// Widths of the drawn bar.
const (
	barLeast  = 10 // below it a column is dropped to make room
	barEnough = 20 // from it on a further column may be added
	barMost   = 48
)

// column is a column of a table, its cells row by row. A cell is clean and of one style.
type column struct {
	title string
	right bool // aligned to the right
	cells []piece
}

// width is the width of the widest cell.
func (c column) width() int {
	width := ui.Columns(c.title)
	for _, cell := range c.cells {
		width = max(width, ui.Columns(cell.text))
	}
	return width
}

// cell is a cell of the column padded to its width; row -1 is the title.
func (c column) cell(row, width int) piece {
	cell := piece{c.title, ui.Dim}
	if row >= 0 {
		cell = c.cells[row]
	}
	cell.text = ui.Shorten(cell.text, width)
	pad := strings.Repeat(" ", width-ui.Columns(cell.text))
	if c.right {
		cell.text = pad + cell.text
	} else {
		cell.text += pad
	}
	return cell
}

// table is a setting's rows: the baseline against itself, then the networks by cost, then those without a delta.
type table struct {
	deltas  []result.Delta // the rows with figures
	null    bool           // the first of them is the baseline against itself
	missing []result.Cell  // the rows without
	// all are the setting's deltas in every metric, the baseline's against itself too.
	all []result.Delta
	// confidence of the intervals, such as 0.95.
	confidence float64
	// exact says that the intervals are ranges over seeds.
	exact bool
}

// setting prints a setting's table and its conclusion.
func (p *page) setting(part insight.Part) {
	t := tableOf(part)
	if len(t.deltas)+len(t.missing) == 0 {
		return // nothing of it was to be measured: the entries on what is unsupported or skipped say why
	}
	right := ""
	if deltas := part.Headlines(); len(deltas) > 0 {
		right = deltas[0].Baseline + ": " + deltas[0].Metric + " " + words.BaselineValue(deltas)
	}
	p.title(words.Load(part.Setting)+" · "+words.At(part.Setting.Placement), right)
	p.explain(part.Setting.Regime())
	if len(t.deltas) > 0 {
		p.rows(t)
	}
	p.notMeasured(t)
	if slices.ContainsFunc(part.Headlines(), func(d result.Delta) bool { return unseen(d) > 0 }) {
		p.paragraph(piece{}, unseenLegend)
	}
	if !p.whole() {
		p.paragraph(piece{}, words.ByState(p.run.Checks, part.Cells))
		return
	}
	p.paragraph(piece{}, words.Conclusion(insight.Conclude(part)))
	p.paragraph(piece{}, words.Across(part.Headlines()))
	p.paragraph(piece{}, words.Bounded(part.Bounds()))
	p.paragraph(piece{}, words.Reasons(insight.Reasons(p.run, part)))
	p.paragraph(piece{}, words.ByState(p.run.Checks, part.Cells))
	if p.view.Pairs {
		p.pairs(part)
	}
}

// explain says what a regime is where it is met first.
func (p *page) explain(regime string) {
	if slices.Contains(p.explained, regime) {
		return
	}
	p.explained = append(p.explained, regime)
	p.paragraph(piece{}, words.RegimeSays(regime))
}

// tableOf sorts out the rows of a setting.
func tableOf(part insight.Part) table {
	t := table{confidence: part.Confidence, exact: part.Exact != nil, all: slices.Concat(part.Deltas, part.Null)}
	for _, n := range part.Null {
		if n.Headline {
			t.deltas, t.null = append(t.deltas, n), true
		}
	}
	networks := part.Shown()
	t.deltas = append(t.deltas, networks...)
	for _, cell := range part.Cells {
		measured := slices.ContainsFunc(networks, func(d result.Delta) bool { return d.Cell == cell.ID })
		if cell.Role == result.RoleCell && cell.Unsupported == "" && cell.Skipped == "" && !measured {
			t.missing = append(t.missing, cell)
		}
	}
	return t
}

// notMeasured names the networks without figures, those with the same cause together.
func (p *page) notMeasured(t table) {
	for _, cells := range insight.By(t.missing, func(c result.Cell) string { return cause(p.why(c)) }) {
		names := gather.Each(cells, func(c result.Cell) string { return insight.Name(c.Network, c.Path) })
		p.paragraph(piece{}, "not measured: "+strings.Join(names, ", ")+" ("+ending(p.why(cells[0]), whyMost)+")")
	}
}

// whyMost is the length to which reasons are cut in tables; they are printed whole further down.
const whyMost = 100

// why says why a cell that was to be measured has no delta.
func (p *page) why(cell result.Cell) string {
	reason := "no trial of it is finished"
	for _, c := range p.run.Checks {
		if c.OK {
			continue
		}
		if c.Trial == cell.ID {
			reason = c.Observed
		}
		if strings.HasPrefix(c.Trial, cell.ID+"#") && c.Check == insight.CheckFinished {
			return c.Observed
		}
	}
	return reason
}

// cause is the innermost part of a chain of errors: what came before it says where it struck.
func cause(text string) string {
	return text[strings.LastIndex(text, ": ")+1:]
}

// ending leaves out the first parts of a chain of errors that is too long.
func ending(text string, most int) string {
	rest := text
	for len(rest) > most {
		_, after, found := strings.Cut(rest, ": ")
		if !found {
			break
		}
		rest = after
	}
	if rest != text {
		return "… " + rest
	}
	return rest
}

// rows prints the rows with figures under a head. The columns that don't fit are left out, the least telling first.
func (p *page) rows(t table) {
	margin := p.run.Margin
	if t.deltas[0].Ratio == 0 {
		margin = insight.LossMargin
	}
	p.grid(p.layout(t), t.deltas, margin, t.style)
}

// layout is a choice of columns before and after a bar.
type layout struct {
	before, after []column
	least         int // room that the bar needs for the choice to be taken; it is drawn from barLeast on
	bar           int // width of the bar, 0 for none
}

// never is more room than there is.
const never = 1 << 20

// choose takes the first layout whose bar has the room that it needs, else the last without a bar.
func (p *page) choose(choices ...layout) layout {
	var l layout
	for _, l = range choices {
		l.after = slices.DeleteFunc(slices.Clone(l.after), func(c column) bool { return c.cells == nil })
		room := p.terminal.Width
		for _, c := range slices.Concat(l.before, l.after) {
			room -= c.width() + len(gap)
		}
		if room >= l.least {
			if l.bar = min(room, barMost); l.bar < barLeast {
				l.bar = 0
			}
			return l
		}
	}
	return l
}

// grid prints a head and a row for each delta, with a bar in the row's style.
func (p *page) grid(l layout, deltas []result.Delta, margin float64, style func(row int) ui.Style) {
	axis := newAxis(insight.Common(deltas), margin, l.bar)
	for row := -1; row < len(deltas); row++ {
		if heading := words.Heading(deltas, row); heading != "" {
			p.line(piece{heading, ui.Dim})
		}
		var pieces []piece
		for _, c := range l.before {
			pieces = append(pieces, c.cell(row, c.width()), piece{text: gap})
		}
		if l.bar > 0 {
			drawn := p.scale(axis, deltas[0])
			if row >= 0 {
				drawn = p.bar(axis, deltas[row], style(row))
			}
			pieces = append(append(pieces, drawn...), piece{text: gap})
		}
		for _, c := range l.after {
			pieces = append(pieces, c.cell(row, c.width()), piece{text: gap})
		}
		p.line(pieces[:len(pieces)-1]...)
	}
}

// layout chooses the columns of a setting's table.
func (p *page) layout(t table) layout {
	name, cost, interval := p.nameColumn(t), t.costColumn(p.against(t.deltas[0].Baseline)), t.intervalColumn()
	added, spanned, value, verdict := t.addedColumn(), t.addedIntervalColumn(), t.valueColumn(), t.withUnseen(t.verdictColumn())
	tail, cpu := t.secondColumn(tailMetric), t.secondColumn(cpuMetric)
	if tail.cells == nil {
		tail = t.secondColumn(loadedMetric)
	}
	users := p.usersColumn(t, usersMost)
	all, few, second := []column{name, cost, interval}, []column{name, cost}, []column{added, spanned}
	if t.deltas[0].Regime() == result.RegimeWaking && spanned.cells != nil {
		// Where wake-ups are most of the baseline's time, the percentage says more of the machine than of the network.
		all, few, second = []column{name, added, spanned}, []column{name, added}, []column{cost, interval}
	}
	var within column
	if p.view.Verbose {
		within = t.withinColumn()
	}
	after := func(columns ...column) []column { return append(slices.Clone(second), columns...) }
	if users.cells != nil {
		l := p.choose(layout{before: all, after: after(value, within, verdict, users), least: barEnough},
			layout{before: all, after: after(verdict, users), least: barEnough},
			layout{before: all, after: []column{second[0], value, verdict, users}, least: barEnough},
			layout{before: all, after: []column{second[0], verdict, users}, least: barEnough},
			layout{before: all, after: []column{second[0], verdict, p.usersColumn(t, usersLeast)}, least: barLeast}, layout{least: never})
		if l.bar > 0 && l.bar < never && len(l.after) > 0 {
			return l
		}
		for _, d := range t.deltas {
			if d.Network != d.Baseline && !slices.Contains(p.unnamed, d.Network) {
				p.unnamed = append(p.unnamed, d.Network)
			}
		}
	}
	return p.choose(
		layout{before: all, after: after(value, tail, cpu, within, verdict), least: barEnough},
		layout{before: all, after: after(value, cpu, within, verdict), least: barEnough},
		layout{before: all, after: after(within, verdict), least: barLeast},
		layout{before: all, after: after(verdict), least: barLeast},
		layout{before: all, after: []column{second[0], value, cpu, verdict}, least: barEnough},
		layout{before: all, after: []column{second[0], value, verdict}, least: barEnough},
		layout{before: all, after: []column{second[0], verdict}, least: barLeast},
		layout{before: all, after: []column{verdict}, least: barLeast},
		layout{before: few, after: []column{verdict}, least: barLeast},
	)
}

// scale is the head of the bars: the ends of their axis, and 0 where no change is.
func (p *page) scale(a axis, d result.Delta) []piece {
	label := func(x float64) string {
		if d.Ratio == 0 {
			return words.Difference(words.Unit(d), x)
		}
		return words.Percent(1 + x)
	}
	text := []rune(strings.Repeat(" ", a.columns))
	put := func(at int, label string) {
		runes := []rune(label)
		at = min(max(at, 0), a.columns-len(runes))
		if at < 0 || strings.TrimSpace(string(text[max(at-1, 0):min(at+len(runes)+1, a.columns)])) != "" {
			return
		}
		copy(text[at:], runes)
	}
	put(a.column(0), "0")
	put(a.columns, label(a.high))
	put(0, label(a.low))
	return []piece{{string(text), ui.Dim}}
}

// pairs prints each two networks of a setting, held directly against one another: those that differ first.
func (p *page) pairs(part insight.Part) {
	names, width := map[string]string{}, 0
	for _, c := range part.Cells {
		names[c.ID] = insight.Name(c.Network, c.Path)
	}
	pair := func(c result.Contrast) string { return names[c.Cell] + " against " + names[c.Other] }
	for _, c := range part.Contrasts {
		width = max(width, ui.Columns(pair(c)))
	}
	sorted := slices.Clone(part.Contrasts)
	slices.SortStableFunc(sorted, func(a, b result.Contrast) int {
		switch {
		case a.Cheaper != "" && b.Cheaper == "":
			return -1
		case a.Cheaper == "" && b.Cheaper != "":
			return 1
		}
		return 0
	})
	for _, c := range sorted {
		verdict := stats.Unresolved
		switch c.Cheaper {
		case "":
		case c.Cell:
			verdict = stats.Faster
		default:
			verdict = stats.Slower
		}
		p.line(piece{text: fmt.Sprintf("%-*s  %-28s ", width, pair(c), words.Contrast(c))}, piece{string(verdict), verdictStyle(string(verdict))})
	}
}
