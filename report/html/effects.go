package html

import (
	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
)

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
	axes := map[metricKey]*axis{}
	deltas := map[metricKey][]result.Delta{}
	var order []*axis
	for _, t := range tables {
		for _, d := range t.Headlines() {
			key := keyOf(d)
			if axes[key] == nil {
				axes[key] = &axis{id: "e" + number(float64(len(order))), key: key}
				order = append(order, axes[key])
			}
			deltas[key] = append(deltas[key], d)
		}
	}
	var defs drawing
	for _, a := range order {
		a.fit(deltas[a.key], p.Run.Margin)
		a.define(&defs)
	}
	p.Axes += defs.html()
	for i, t := range tables {
		title := words.EffectHeading(t)
		p.Effects = append(p.Effects, effect{
			ID: "f" + number(float64(i)), Key: t.Setting, Title: title, Load: words.Load(t.Open), Where: words.At(t.Setting.Placement),
			Open: i < effectsOpen, Says: words.Effect(t), Forest: p.effectForest(t, axes),
		})
	}
}

// effectForest draws a table of effects.
func (p *page) effectForest(t insight.EffectTable, axes map[metricKey]*axis) forest {
	rows := t.Headlines()
	first := rows[0]
	a := axes[keyOf(first)]
	f := forest{
		Metric: first.Metric, Shown: true, Label: metricLabel(first.Metric, first.Unit), Added: "added", Axis: a.head(),
		Confidence: p.Confidence(),
	}
	if first.Better == "higher" {
		f.Added = "change"
	}
	for _, d := range rows {
		f.Rows = append(f.Rows, axes[keyOf(d)].row(d, false, 0))
	}
	return f
}
