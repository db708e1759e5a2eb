package html

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/report/words"
	"netdelta/result"
)

// forest is a setting's table in one metric: a row for each network, with its interval drawn on an axis that all settings
// share.
type forest struct {
	Metric string
	// Shown is false for metrics that the reader has to ask for.
	Shown bool
	Label string
	Axis  template.HTML
	Rows  []row
	Added string // what the change in units is called: "added" or "difference"
	// Confidence of the intervals, such as "95%".
	Confidence string
}

// row is a network against the baseline.
type row struct {
	Name, Change, Interval, Added, AddedInterval, Value, Verdict string
	// Class is the verdict's: slower, faster, same, unresolved, or null for the null check.
	Class string
	Plot  template.HTML
}

// nameMost is the length of the longest name that a row has room for.
const nameMost = 20

// Long says whether the name may be cut short by the width of its column.
func (r row) Long() bool { return len(r.Name) > nameMost }

// axes are the axes that the rows of deltas share, one for each metric, fitted to these deltas. Others, all may be drawn on them, too.
// Their marks are defined once for the page.
func (p *page) axes(prefix string, deltas, all []result.Delta) map[metricKey]*axis {
	axes := map[metricKey]*axis{}
	var defs drawing
	for key, members := range insight.By(deltas, keyOf) {
		a := &axis{id: prefix + number(float64(len(axes))), key: key, title: "change of " + metricLabel(key.name, key.unit)}
		a.fit(members, p.Run.Margin)
		a.scale = a.scale.roomBeyond(gather.Where(all, func(d result.Delta) bool { return keyOf(d) == key }))
		a.define(&defs)
		axes[key] = a
	}
	p.Axes += defs.html()
	return axes
}

// forests makes the tables of all settings, each metric on one axis.
func (p *page) forests() {
	all := slices.Concat(p.Run.Null, p.Run.Deltas)
	every := len(all) <= everyMetricMost
	axes := p.axes("a", slices.DeleteFunc(all, func(d result.Delta) bool { return !d.Headline && !every }), nil)
	for _, s := range p.Settings {
		p.forestsOf(s, axes, every)
	}
}

// newForest is the table of deltas in the metric of the first, against an axis, without rows.
func (p *page) newForest(first result.Delta, a *axis) forest {
	f := forest{
		Metric: first.Metric, Label: metricLabel(first.Metric, first.Unit), Added: "added", Axis: a.head(), Confidence: p.Confidence(),
	}
	if insight.HigherBetter(first) {
		f.Added = "difference"
	}
	return f
}

// add draws the rows; null says that the first is the null check, which leaves a floor.
func (f *forest) add(a *axis, rows []result.Delta, null bool, floor float64) {
	for i, d := range rows {
		f.Rows = append(f.Rows, a.row(d, null && i == 0, floor))
	}
}

// forestsOf makes the tables of one setting, the headline's first.
func (p *page) forestsOf(s *setting, axes map[metricKey]*axis, every bool) {
	head := s.headline()
	deltas := s.part.Deltas
	if len(deltas) == 0 && head != "" { // the null check stands alone
		deltas = []result.Delta{{Metric: head}}
	}
	for metric, rows := range insight.By(deltas, func(d result.Delta) string { return d.Metric }) {
		if metric != head && !every {
			continue
		}
		if len(s.part.Deltas) == 0 {
			rows = nil
		}
		slices.SortStableFunc(rows, func(a, b result.Delta) int { return cmp.Compare(insight.Cost(a), insight.Cost(b)) })
		null := s.null(metric)
		if null != nil {
			rows = append([]result.Delta{*null}, rows...)
		}
		a := axes[keyOf(rows[0])]
		f := p.newForest(rows[0], a)
		f.add(a, rows, null != nil, floorOf(null))
		f.Shown = metric == head
		s.Forests = append(s.Forests, f)
		if metric == head {
			s.Reference = rows[0].Baseline + ": " + f.Label + " " + words.BaselineValue(rows)
		}
	}
	if every || s.Inline {
		s.Others = others(s.part.Deltas, head)
	} else {
		p.OthersElsewhere = true
	}
}

// metricLabel is what a metric is called in a table.
func metricLabel(name, unitName string) string {
	if name != "cpu" {
		return strings.ReplaceAll(name, "_", " ")
	}
	if unitName == "ns" {
		return "CPU per transaction"
	}
	return "CPU per GB"
}

// change is where a delta stands on its axis, with its interval; ok is false for a delta without one.
func change(d result.Delta) (low, at, high float64, ok bool) {
	switch {
	case d.Ratio == 0 && d.DifferenceLow != nil && d.DifferenceHigh != nil:
		return *d.DifferenceLow, d.Difference, *d.DifferenceHigh, true
	case d.Ratio == 0:
		return d.Difference, d.Difference, d.Difference, false
	case d.RatioLow != nil && d.RatioHigh != nil:
		return *d.RatioLow, d.Ratio, *d.RatioHigh, true
	}
	return d.Ratio, d.Ratio, d.Ratio, false
}

// floorOf is the noise floor of a null check's setting, as a ratio above 1 or a difference; 0 if it is not known.
func floorOf(null *result.Delta) float64 {
	if null == nil || null.Floor == nil {
		return 0
	}
	floor := *null.Floor
	if null.Ratio != 0 {
		floor++
	}
	if !drawable(floor, false) {
		return 0
	}
	return floor
}

// row is a delta's row.
func (a *axis) row(d result.Delta, null bool, floor float64) row {
	r := row{Name: insight.Name(d.Network, d.Path), Verdict: d.Verdict, Class: verdictClass(d.Verdict)}
	low, _, high, ok := change(d)
	switch {
	case !ok && d.Need > 0:
		r.Interval = fmt.Sprintf("%d of %d builds", d.Blocks, d.Need)
	case !ok:
		r.Interval = "no interval"
	case d.Ratio == 0:
		r.Interval = fmt.Sprintf("[%+.2f, %+.2f]", 100*low, 100*high)
	default:
		r.Interval = "[" + precise(low, d) + ", " + precise(high, d) + "]"
	}
	if d.Ratio == 0 {
		r.Change = words.Added(d)
	} else {
		r.Change = precise(d.Ratio, d) + "%"
		r.Added = words.Added(d)
		if d.Unit == "ns" {
			r.AddedInterval = words.AddedInterval(d)
		}
	}
	r.Value = words.Value(words.Unit(d), d.Value)
	if null {
		r.Name += " again"
		r.Class, r.Verdict = "null", "null check"
		if d.Verdict == "slower" || d.Verdict == "faster" {
			r.Class, r.Verdict = "nullfailed", "null failed"
		}
	}
	r.Plot = a.plot(d, r, floor)
	return r
}

// verdictClass is the class of a verdict; an unknown one is shown as unresolved.
func verdictClass(verdict string) string {
	switch verdict {
	case "slower", "faster", "same":
		return verdict
	}
	return "unresolved"
}

// precise prints a ratio as a change in percent with so many decimals as its interval bears.
func precise(ratio float64, d result.Delta) string {
	if math.Abs(ratio) >= 1000 {
		return fmt.Sprintf("%+.3g", 100*(ratio-1))
	}
	return words.Change(ratio, d)
}

// plot draws a delta: the noise floor behind it, its interval, its centre, and an arrow where the interval goes on beyond the
// axis, two where the centre lies beyond it. It says no
// more than the row's text, so screen readers skip it.
func (a *axis) plot(d result.Delta, r row, floor float64) template.HTML {
	low, at, high, ok := change(d)
	var s drawing
	a.ground(&s, floor)
	if ok {
		s.put(`<line class="iv" x1="%s" x2="%s"/>`, percent(a.scale.within(low)), percent(a.scale.within(high)))
	}
	if a.arrows(&s, low, at, high) {
		class := "pt"
		if !ok || r.Class == "unresolved" || r.Class == "null" {
			class = "pt open"
		}
		s.put(`<circle class="%s" cx="%s"/>`, class, percent(a.scale.within(at)))
	}
	s.put("</svg>")
	return s.html()
}

// bar draws a delta as a bar from no change, with its interval as a line across the end.
func (a *axis) bar(d result.Delta, r row, floor float64) template.HTML {
	low, at, high, ok := change(d)
	var s drawing
	a.ground(&s, floor)
	from, to := a.scale.within(a.none()), a.scale.within(at)
	class := "br"
	if r.Class == "unresolved" {
		class = "br open"
	}
	s.put(`<rect class="%s" x="%s" width="%s" y="8" height="14" rx="2"/>`, class, percent(min(from, to)), percent(max(from, to)-min(from, to)))
	if ok {
		s.put(`<line class="wh" x1="%s" x2="%s"/>`, percent(a.scale.within(low)), percent(a.scale.within(high)))
	}
	a.arrows(&s, low, at, high)
	s.put("</svg>")
	return s.html()
}

// ground opens the drawing of a row: the noise floor, and the marks that all rows share.
func (a *axis) ground(s *drawing, floor float64) {
	s.put(`<svg class="fp" aria-hidden="true">`)
	if floor > 0 && !a.key.linear {
		s.rect("fl", a.scale, 1/floor, floor)
	} else if floor > 0 {
		s.rect("fl", a.scale, -floor, floor)
	}
	s.put(`<use href="#%s"/>`, a.id)
}

// arrows mark what goes on beyond the axis; inside says that the estimate is on it.
func (a *axis) arrows(s *drawing, low, at, high float64) (inside bool) {
	before, after := a.beyond(low, at, high)
	for i := range before {
		s.put(`<path class="go" d="M%d %dl-7 5l7 5z"/>`, 7+arrowWidth*i, rowCentre-5)
	}
	for i := range after {
		s.put(`<svg x="100%%" class="labels"><path class="go" d="M%d %dl7 5l-7 5z"/></svg>`, -7-arrowWidth*i, rowCentre-5)
	}
	return before < 2 && after < 2
}

// arrowWidth is the room that an arrow takes at the end of an axis, in pixels.
const arrowWidth = 8

// beyond counts the arrows before the beginning and after the end of the axis: one for an interval that goes on there, two where the
// estimate lies there, too.
func (a *axis) beyond(low, at, high float64) (before, after int) {
	count := func(is ...bool) (n int) {
		for _, b := range is {
			if b {
				n++
			}
		}
		return n
	}
	const hair = 1e-6
	return count(a.scale.at(low) < -hair, a.scale.at(at) < -hair), count(a.scale.at(high) > 1+hair, a.scale.at(at) > 1+hair)
}

// rankingsMost is how many settings have a picture of their ranking; the tables have all.
const rankingsMost = 24

// ranking is the picture that the page opens with: the networks of one setting, the cheapest first and demonstrations last, each with a
// bar as long as what it costs. One setting's is shown, with the sentence that says the same; the reader chooses which.
type ranking struct {
	Setting *setting
	forest
	Rows []ranked
	// Says is the answer of the setting without its name; Answered says that it is one of those that the answer of the run is about.
	Says     string
	Answered bool
}

// ranked is a network's bar.
type ranked struct {
	row
	// Heading stands above the row, "" for nothing.
	Heading string
	// Group is a letter: networks with the same one are tied. First says that the row above has another.
	Group string
	First bool
	// Uses names systems whose pods are attached like this: as many as there is room for are shown, none in part.
	Uses []string
}

// AllUses are all of them.
func (r ranked) AllUses() string { return strings.Join(r.Uses, ", ") }

// rankings are the pictures of the settings with headline deltas, at most rankingsMost of them.
func (p *page) rankings() []ranking {
	users := words.Users(p.Run)
	var all []ranking
	for i, s := range p.inOrder {
		if len(s.headlines()) == 0 || len(all) == rankingsMost {
			continue
		}
		r := p.rank(s, users)
		r.Answered = i < p.answered
		all = append(all, r)
	}
	return all
}

// answeredFirst are the settings, those that the answer is about, which it counts, before the others: its sentence and the first picture
// are of one setting.
func (p *page) answeredFirst() (inOrder []*setting, answered int) {
	rank := map[result.Setting]int{}
	parts := insight.Answered(p.Run)
	for i, part := range parts {
		rank[part.Setting] = i - len(parts)
	}
	all := slices.Clone(p.Settings)
	slices.SortStableFunc(all, func(a, b *setting) int { return cmp.Compare(rank[a.Key], rank[b.Key]) })
	return all, len(parts)
}

// rank draws one. Its axis is its own, so that one expensive setting does not flatten the others; it is fitted to the networks that pods
// may have.
func (p *page) rank(s *setting, users map[string][]string) ranking {
	heads := s.headlines()
	a := p.axes("r"+s.ID, insight.Common(heads), heads)[keyOf(heads[0])]
	r := ranking{Setting: s, forest: p.newForest(heads[0], a), Says: strings.TrimPrefix(words.Answer(s.part), words.Title(s.Key)+": ")}
	floor := floorOf(s.null(heads[0].Metric))
	tiers, letters, group := map[string]int{}, map[int]string{}, map[string]string{}
	for i, tier := range s.part.Tiers(s.part.Headlines()) {
		for _, d := range tier {
			tiers[d.Cell] = i
		}
	}
	for _, d := range heads { // from above to below
		tier := tiers[d.Cell]
		if letters[tier] == "" {
			letters[tier] = letter(len(letters))
		}
		group[d.Cell] = letters[tier]
	}
	for i, d := range heads {
		own := a.row(d, false, floor)
		own.Plot = a.bar(d, own, floor)
		heading := words.Heading(heads, i)
		first := i == 0 || heading != "" || group[d.Cell] != group[heads[i-1].Cell]
		r.Rows = append(r.Rows, ranked{row: own, Heading: heading, Group: group[d.Cell], First: first, Uses: users[d.Network]})
	}
	return r
}

// letter is A for 0, B for 1, and AA after Z.
func letter(i int) string {
	text := ""
	for i++; i > 0; i = (i - 1) / 26 {
		text = string(rune('A'+(i-1)%26)) + text
	}
	return text
}

// Chip is what the button that chooses the setting says.
func (r ranking) Chip() string { return words.Title(r.Setting.Key) }

// MoreSettings counts the settings with headline deltas that have no picture.
func (p *page) MoreSettings() int {
	n := -len(p.Rankings)
	for _, s := range p.Settings {
		if len(s.headlines()) > 0 {
			n++
		}
	}
	return n
}

// Urgent, Indirect and Open are what the first screen says beside the answers of settings.
func (p *page) Urgent() []string { return words.Urgent(p.Run) }

// Indirect is the answer of a run that compared no networks.
func (p *page) Indirect() string { return strings.Join(words.Indirect(p.Run), " ") }

// Open says how much of the run is open.
func (p *page) Open() string { return words.Open(p.Run) }
