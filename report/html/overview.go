package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
)

// banner is what a reader must know before anything else.
type banner struct {
	Class string // bad or warn
	Text  string
}

// banners say that the run did not end as it should, or that trials of it count for nothing.
func (p *page) banners() []banner {
	var all []banner
	add := func(class, format string, a ...any) { all = append(all, banner{class, fmt.Sprintf(format, a...)}) }
	switch p.Run.Ended {
	case "interrupted":
		add("warn", "This run was interrupted. What it had measured until then is below; %s goes on with it (DIR is the folder of this page).", words.Resume(p.Run))
	case "running", "":
		add("warn", "This run has not ended: it is under way, or was killed. The figures are those of the trials finished so far; %s goes on with a killed one (DIR is the folder of this page).", words.Resume(p.Run))
	case "failed":
		add("bad", "This run failed before its end. What it had measured until then is below; the checks say what failed.")
	case "nothing measured":
		add("bad", "This run measured nothing: the checks say what failed.")
	case "resolved in part":
		add("warn", "This run gave up what failed again and again; the checks name it.")
	}
	if n := len(p.account.Misrouted); n > 0 {
		t := p.account.Misrouted[0]
		found := "its packets went another way"
		if len(t.Path.Findings) > 0 {
			found = t.Path.Findings[0]
		}
		add("bad", "%s misrouted and left out of every delta. The first, %s: %s", unit.Counted(n, "trial"), t.ID, found)
	}
	for _, e := range p.account.LostTrials {
		if e.Reason == insight.TrialFailed {
			add("bad", "%s failed and enters no delta. One of them, %s", unit.Counted(e.Count, "trial"), e.Example)
		}
	}
	if says := nullFailed(p.Run.Null); says != "" {
		add("warn", "%s", says)
	}
	return all
}

// nullNamed is how many settings with a failed null check are named.
const nullNamed = 3

// nullFailed says in which settings the null check failed, and by how much; "" where it held.
func nullFailed(null []result.Delta) string {
	failed := insight.NullFailed(null)
	if len(failed) == 0 {
		return ""
	}
	named := gather.Each(failed[:min(len(failed), nullNamed)], func(n result.Delta) string {
		by := words.Added(n)
		if n.Ratio > 0 {
			by = words.Percent(n.Ratio)
		}
		return words.Title(n.Setting) + " (" + by + ")"
	})
	if more := len(failed) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("The null check failed in %d of %s: there %s differs from itself by more than chance. Take changes of that size with doubt: %s.",
		len(failed), unit.Counted(len(gather.Where(null, func(n result.Delta) bool { return n.Headline })), "setting"), failed[0].Baseline, strings.Join(named, "; "))
}

// adviceMost is how many characters an entry of advice has before it is unfolded: two lines on a desk.
const adviceMost = 220

// advice is an entry with what it says of the reasons before it is unfolded, and the rest of them.
type advice struct {
	result.Advice
	Brief string
	Rest  []string
}

// More says whether there is something to unfold.
func (a advice) More() bool { return len(a.Rest)+len(a.How)+len(a.Risk) > 0 }

// Advice is what to change.
func (p *page) Advice() []advice {
	return gather.Each(p.Run.Advice, func(a result.Advice) advice {
		brief, rest := words.Brief(a, func(text string) bool { return len(text) <= adviceMost })
		return advice{a, brief, rest}
	})
}

// card is a key figure.
type card struct{ Label, Value, Note, Class string }

// cards are the key figures of how the run measured.
func (p *page) cards() []card {
	all := []card{p.floorCard(), p.measuredCard(), p.pathCard(), p.endCard()}
	return slices.DeleteFunc(all, func(c card) bool { return c.Value == "" })
}

// floorCard says by how much the baseline differs from itself.
func (p *page) floorCard() card {
	var floors []float64
	baseline := ""
	for i, n := range p.Run.Null {
		if n.Headline && n.Ratio > 0 {
			baseline = n.Baseline
			if floor := floorOf(&p.Run.Null[i]); floor > 0 {
				floors = append(floors, floor-1)
			}
		}
	}
	switch {
	case baseline == "":
		return card{}
	case len(floors) == 0:
		return card{"Noise floor", "unknown", "too few builds to hold " + baseline + " against itself", "unresolved"}
	}
	note := "what " + baseline + " may differ by from itself"
	if len(floors) > 1 {
		note += fmt.Sprintf(", median of %d settings; at most %.1f%%", len(floors), 100*slices.Max(floors))
	}
	return card{"Noise floor", fmt.Sprintf("±%.1f%%", 100*stats.Median(floors)), note, ""}
}

// measuredCard says how much was measured and what of it was left out.
func (p *page) measuredCard() card {
	a := p.account
	if a.Trials == 0 {
		return card{}
	}
	note := unit.Counted(a.Bursts, "burst") + " in " + unit.Counted(a.Builds, "build")
	if lost := lostBursts(a); lost > 0 {
		why := gather.Each(a.LostBursts, func(e insight.Exclusion) string { return e.Reason + " " + unit.Thousands(e.Count) })
		note += fmt.Sprintf("; %.1f%% left out: %s", 100*float64(lost)/float64(a.Bursts), strings.Join(why, ", "))
	} else if a.Bursts > 0 {
		note += "; none left out"
	}
	for _, e := range a.LostTrials {
		note += "; " + unit.Counted(e.Count, "trial") + " left out: " + e.Reason
	}
	return card{"Measured", unit.Counted(a.Trials, "trial"), note, ""}
}

// lostBursts counts the disturbed bursts.
func lostBursts(a insight.Account) int {
	n := 0
	for _, e := range a.LostBursts {
		n += e.Count
	}
	return n
}

// pathCard says for how many trials the way of the packets is proved.
func (p *page) pathCard() card {
	a := p.account
	wrong := len(a.Misrouted)
	watched := a.Proved + a.Weak + wrong
	if watched == 0 {
		return card{}
	}
	c := card{"Path proved", fmt.Sprintf("%s of %s", unit.Thousands(a.Proved+a.Weak), unit.Thousands(watched+a.Unwatched)), "", ""}
	var rest []string
	for _, part := range []struct {
		n    int
		what string
	}{{a.Weak, "of them by weaker means"}, {wrong, "misrouted"}, {a.Unwatched, "not watched"}} {
		if part.n > 0 {
			rest = append(rest, unit.Thousands(part.n)+" "+part.what)
		}
	}
	c.Note = strings.Join(rest, ", ")
	if len(rest) == 0 {
		c.Note = "each trial's packets went the way that its network says"
	}
	if wrong > 0 {
		c.Class = "slower"
	}
	return c
}

// endCard says how the run ended, how long it took and on what.
func (p *page) endCard() card {
	end, known := map[string]card{
		"resolved":         {Value: "Every delta resolved"},
		"budget":           {Value: "Time budget used up"},
		"builds":           {Value: "All builds done"},
		"interrupted":      {Value: "Interrupted", Class: "unresolved"},
		"failed":           {Value: "Failed", Class: "slower"},
		"nothing measured": {Value: "Nothing measured", Class: "slower"},
		"resolved in part": {Value: "Resolved but what failed", Class: "unresolved"},
		"running":          {Value: "Not finished", Class: "unresolved"},
	}[cmp.Or(p.Run.Ended, "running")]
	if !known {
		end.Value = p.Run.Ended
	}
	var note []string
	if took := p.Run.Took().Round(time.Second); took > 0 {
		note = append(note, took.String())
	}
	if p.Run.Testbed != "" {
		note = append(note, "testbed "+p.Run.Testbed)
	}
	if !p.Run.Started.IsZero() {
		note = append(note, p.Run.Started.UTC().Format("2 January 2006, 15:04 UTC"))
	}
	end.Label, end.Note = "How it ended", strings.Join(note, " · ")
	return end
}

// EffectSentences are what stands on top of a run that is about its factors alone.
func (p *page) EffectSentences() []effect {
	if len(p.Rankings) > 0 {
		return nil
	}
	return p.Effects[:min(len(p.Effects), saysFirst)]
}

// filter is a choice among values of one kind; the first of them is what is chosen when the page opens.
type filter struct {
	Name, Label string
	Values      []choice
}

// choice is a value to choose, with what it is called.
type choice struct{ Value, Label string }

// filters are the choices that there are; one of a single value is none.
func (p *page) filters() []filter {
	load := filter{"load", "Workload", []choice{{"", "all"}}}
	where := filter{"placement", "Placement", []choice{{"", "both"}}}
	metric := filter{"metric", "Metric", []choice{{"", "headline"}}}
	add := func(f *filter, value, label string) {
		if !slices.ContainsFunc(f.Values, func(c choice) bool { return c.Value == value }) {
			f.Values = append(f.Values, choice{value, label})
		}
	}
	for _, s := range p.Settings {
		add(&load, s.Key.Workload, s.Key.Workload)
		add(&where, string(s.Key.Placement), string(s.Key.Placement))
		for _, f := range s.Forests {
			add(&metric, f.Metric, f.Label)
		}
	}
	return slices.DeleteFunc([]filter{load, where, metric}, func(f filter) bool { return len(f.Values) < 3 })
}

// grid is a table of changes, such as all headline deltas: a row for each setting, a column for each network.
type grid struct {
	Columns []string
	Rows    []gridRow
}

// gridRow is a row of a grid: a setting's, or one with a name.
type gridRow struct {
	Setting *setting
	Name    string
	Cells   []gridCell
}

// gridCell is a change; it is empty where nothing was measured.
type gridCell struct{ Text, Class string }

// column is the number of a column, which is added where no column has that title yet. The rows have cells for all columns.
func (g *grid) column(title string) int {
	i := slices.Index(g.Columns, title)
	if i < 0 {
		i, g.Columns = len(g.Columns), append(g.Columns, title)
	}
	return i
}

// set puts a change in a row's cell.
func (g *grid) set(row *gridRow, column string, d result.Delta) {
	for i := g.column(column); len(row.Cells) <= i; {
		row.Cells = append(row.Cells, gridCell{})
	}
	row.Cells[g.column(column)] = cellOf(d)
}

// done gives all rows as many cells.
func (g grid) done() grid {
	for i := range g.Rows {
		g.Rows[i].Cells = append(g.Rows[i].Cells, make([]gridCell, len(g.Columns)-len(g.Rows[i].Cells))...)
	}
	return g
}

// glance makes the table of all headline deltas. It is empty where it would say no more than one forest plot.
func (p *page) glance() grid {
	var g grid
	for _, s := range p.Settings {
		row := gridRow{Setting: s}
		for _, d := range s.headlines() {
			g.set(&row, insight.Name(d.Network, d.Path), d)
		}
		if row.Cells != nil {
			g.Rows = append(g.Rows, row)
		}
	}
	if len(g.Rows) < 2 {
		return grid{}
	}
	return g.done()
}

// others makes the table of a setting's other metrics than its headline: a row for each network.
func others(deltas []result.Delta, headline string) grid {
	var g grid
	deltas = slices.DeleteFunc(slices.Clone(deltas), func(d result.Delta) bool { return d.Metric == headline })
	for _, d := range deltas {
		g.column(metricLabel(d.Metric, d.Unit)) // in the order of metrics, also where the first network lacks one
	}
	for _, own := range insight.By(deltas, func(d result.Delta) string { return d.Cell }) {
		row := gridRow{Name: insight.Name(own[0].Network, own[0].Path)}
		for _, d := range own {
			g.set(&row, metricLabel(d.Metric, d.Unit), d)
		}
		g.Rows = append(g.Rows, row)
	}
	return g.done()
}

// cellOf prints a change, in brackets where it is not known to be one, on a ground that is the darker the more it costs.
func cellOf(d result.Delta) gridCell {
	text := words.Added(d)
	strength := 0
	if d.Ratio > 0 {
		text = words.Percent(d.Ratio)
		cost := insight.Cost(d)
		for _, limit := range []float64{0.05, 0.15, 0.35, 0.7} {
			if math.Abs(cost) > limit {
				strength++
			}
		}
	}
	class := verdictClass(d.Verdict)
	switch class {
	case "unresolved":
		return gridCell{"(" + text + ")", "h0 unresolved"}
	case "same":
		return gridCell{"≈ " + text, "h0 same"}
	case "faster":
		return gridCell{text, "g" + number(float64(strength))}
	}
	return gridCell{text, "h" + number(float64(strength))}
}

// effectsMost is how many tables of effects the page holds, and effectsOpen how many are unfolded when it opens.
const effectsMost, effectsOpen = 200, 12

// effect is what one step of a factor does to each network in one setting.
type effect struct {
	ID    string
	Key   result.Setting
	Title string // "Policy from none to nftables:1000"
	Load  string
	Where string
	Open  bool
	Says  string
	// Forest has a row for each network, on an axis that all effects of a metric share.
	Forest forest
}

// effects makes the tables of effects. They have axes of their own: a factor that does little is not to be drawn on the
// scale of what networks cost.
func (p *page) effects() {
	tables := insight.EffectTables(p.Run)
	p.MoreEffects = max(0, len(tables)-effectsMost)
	tables = tables[:min(len(tables), effectsMost)]
	var shown []result.Delta
	for _, t := range tables {
		shown = append(shown, t.Headlines()...)
	}
	axes := p.axes("e", shown, nil)
	for i, t := range tables {
		title := words.EffectHeading(t)
		p.Effects = append(p.Effects, effect{
			ID: "f" + number(float64(i)), Key: t.Setting, Title: title, Load: words.Load(t.Open), Where: words.At(t.Setting.Placement),
			Open: i < effectsOpen, Says: words.Effect(t), Forest: p.effectForest(t.Headlines(), axes),
		})
	}
}

// effectForest draws a table of effects.
func (p *page) effectForest(rows []result.Delta, axes map[metricKey]*axis) forest {
	a := axes[keyOf(rows[0])]
	f := p.newForest(rows[0], a)
	f.add(a, rows, false, 0)
	f.Shown = true
	return f
}
