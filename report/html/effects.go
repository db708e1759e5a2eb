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
	var shown []result.Delta
	for _, t := range tables {
		shown = append(shown, t.Headlines()...)
	}
	axes := p.axes("e", shown)
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
