package html

import (
	"math"
	"slices"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/report/words"
	"netdelta/result"
)

// picturesMost is how many bars the rankings may have in all further ways of seeing them; a larger page has the first alone.
const picturesMost = 1500

// The ways in which a ranking is seen.
const (
	asChange = "change"
	asAdded  = "added"
	asValue  = "value"
)

// picture is a ranking seen otherwise: in another quantity, or against another network. The page's script draws it in place of the one
// that is there at first.
type picture struct {
	Of      string `json:"of"` // the setting's ID
	As      string `json:"as"`
	Against string `json:"against"` // "" for values, which are against nothing
	Axis    string `json:"axis"`
	// Heads name the columns of the figure, its interval, and what stands last.
	Heads [3]string `json:"heads"`
	Says  string    `json:"says"` // what a bar is
	Rows  []shape   `json:"rows"`
}

// shape is a bar, placed on its axis in percent.
type shape struct {
	Name  string `json:"name"`
	Class string `json:"class"` // of the verdict
	// Texts are the figure, its interval, and what stands last.
	Texts   [3]string `json:"texts"`
	X       string    `json:"x"`
	Width   string    `json:"width"`
	Whisker []string  `json:"whisker,omitempty"`
	// Heading stands above the bar; Before and After are how many arrows stand at the ends of the axis.
	Heading string `json:"heading,omitempty"`
	Before  int    `json:"before,omitempty"`
	After   int    `json:"after,omitempty"`
}

// pictures are the rankings seen otherwise, nil where they would be too many.
func (p *page) pictures() []picture {
	bars := 0
	for _, r := range p.Rankings {
		bars += len(r.Rows) * (len(r.Rows) + 2)
	}
	if bars > picturesMost {
		return nil
	}
	var all []picture
	for _, r := range p.Rankings {
		all = append(all, p.picturesOf(r)...)
	}
	return all
}

// picturesOf makes the pictures of one setting.
func (p *page) picturesOf(r ranking) []picture {
	heads := r.Setting.headlines()
	all := []picture{p.values(r, heads)}
	if added := linear(heads); added != nil {
		all = append(all, p.added(r, added))
	}
	direct := gather.Each(heads, func(d result.Delta) []result.Delta {
		return insight.DemonstrationsLast(r.Setting.part.Against(insight.Name(d.Network, d.Path)))
	})
	var common []result.Delta // they stand first
	for i := range insight.Common(heads) {
		common = append(common, insight.Common(direct[i])...)
	}
	a := p.axes("d"+r.Setting.ID, common, slices.Concat(direct...))[keyOf(heads[0])]
	for _, deltas := range direct {
		all = append(all, p.direct(r, a, deltas))
	}
	return all
}

// linear are deltas as differences, nil where they are so already.
func linear(heads []result.Delta) []result.Delta {
	list := slices.Clone(heads)
	for i := range list {
		if list[i].Ratio == 0 {
			return nil
		}
		list[i].Ratio = 0
	}
	return list
}

// added is the ranking in what each network adds.
func (p *page) added(r ranking, deltas []result.Delta) picture {
	unit := words.Unit(deltas[0])
	a := p.plain("t"+r.Setting.ID, deltas, false)
	out := picture{
		Of: r.Setting.ID, As: asAdded, Against: p.Baseline(), Axis: a.id, Heads: [3]string{r.Added, r.Confidence + " interval", "change"},
		Says: "A bar is the difference from " + p.Baseline() + " and the line across its end the " + r.Confidence + " interval; a hollow bar is unresolved. Networks with the same letter are not known to differ.",
	}
	for i, d := range deltas {
		low, at, high, ok := change(d)
		s := a.shape(d, at, low, high, ok)
		s.Heading = words.Heading(deltas, i)
		s.Texts = [3]string{words.Added(d), "no interval", r.Rows[i].Change}
		if ok {
			s.Texts[1] = "[" + words.Difference(unit, low) + ", " + words.Difference(unit, high) + "]"
		}
		out.Rows = append(out.Rows, s)
	}
	return out
}

// values is the ranking in what was measured, the baseline first.
func (p *page) values(r ranking, heads []result.Delta) picture {
	unit := words.Unit(heads[0])
	deltas := append([]result.Delta{{Network: heads[0].Baseline, Baseline: heads[0].Baseline, Metric: heads[0].Metric, Value: heads[0].BaselineValue, Unit: heads[0].Unit, Judgement: result.Judgement{Verdict: "baseline"}}}, heads...)
	a := p.plain("v"+r.Setting.ID, deltas, true)
	out := picture{
		Of: r.Setting.ID, As: asValue, Axis: a.id, Heads: [3]string{"value", "", "change"},
		Says: "A bar is what was measured. The record has intervals of differences, not of values: only differences are paired.",
	}
	for i, d := range deltas {
		s := a.shape(d, d.Value, d.Value, d.Value, false)
		s.Heading = words.Heading(deltas, i)
		s.Texts = [3]string{words.Value(unit, d.Value), "", ""}
		if i > 0 {
			s.Texts[2] = r.Rows[i-1].Change
		}
		out.Rows = append(out.Rows, s)
	}
	return out
}

// direct is the ranking against another network.
func (p *page) direct(r ranking, a *axis, deltas []result.Delta) picture {
	against := deltas[0].Baseline
	out := picture{
		Of: r.Setting.ID, As: asChange, Against: against, Axis: a.id, Heads: [3]string{"change", r.Confidence + " interval", ""},
		Says: "A bar is the change against " + against + ", held directly against it in the builds that both were measured in, and the line across its end the " + r.Confidence + " interval; a hollow bar is not known to differ.",
	}
	for i, d := range deltas {
		low, at, high, ok := change(d)
		s := a.shape(d, at, low, high, ok)
		s.Heading = words.Heading(deltas, i)
		text := a.row(d, false, 0)
		s.Texts = [3]string{text.Change, text.Interval, ""}
		if d.Ratio != 0 && d.DifferenceLow != nil { // a whole delta, and not only a contrast
			s.Texts[2] = text.Added
		}
		out.Rows = append(out.Rows, s)
	}
	return out
}

// plain is an axis on which amounts stand as they are, fitted to the networks that pods may have; values is for what begins at nothing and
// has no interval.
func (p *page) plain(id string, deltas []result.Delta, values bool) *axis {
	unit := words.Unit(deltas[len(deltas)-1])
	a := &axis{id: id, key: metricKey{unit: unit, linear: true}, name: differenceLabel, title: "difference in " + metricLabel(deltas[0].Metric, deltas[0].Unit)}
	if values {
		a.name, a.title = valueLabel, metricLabel(deltas[0].Metric, deltas[0].Unit)
	}
	amounts := []float64{0}
	common := insight.Common(deltas)
	for _, d := range common {
		if values {
			amounts = append(amounts, d.Value)
			continue
		}
		amounts = append(amounts, d.Difference)
	}
	s, _ := spanOf(amounts, false)
	if !values {
		s = s.holding(common)
	}
	a.scale = s.room(0.03)
	if !values {
		a.scale = a.scale.roomBeyond(deltas)
	}
	var defs drawing
	a.define(&defs)
	p.Axes += defs.html()
	return a
}

// Against are the networks that the others can be held against, but for the baseline.
func (p *page) Against() []string {
	var all []string
	for _, picture := range p.Pictures {
		if picture.As == asChange && !slices.Contains(all, picture.Against) {
			all = append(all, picture.Against)
		}
	}
	return all
}

// shape places a bar.
func (a *axis) shape(d result.Delta, at, low, high float64, interval bool) shape {
	from, to := a.scale.within(a.none()), a.scale.within(at)
	s := shape{
		Name: insight.Name(d.Network, d.Path), Class: verdictClass(d.Verdict), X: percent(min(from, to)), Width: percent(math.Abs(to - from)),
	}
	s.Before, s.After = a.beyond(low, at, high)
	if interval {
		s.Whisker = []string{percent(a.scale.within(low)), percent(a.scale.within(high))}
	}
	return s
}
