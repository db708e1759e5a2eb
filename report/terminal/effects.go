package terminal

import (
	"fmt"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
)

// effectsMost is how many tables of effects are printed; the rest are named.
const effectsMost = 12

// effects prints what the study's factors do to each network: a table for each step of a factor in each setting.
func (p *page) effects() {
	tables := insight.EffectTables(p.run)
	for i, t := range tables {
		if i == effectsMost {
			p.line()
			p.paragraph(piece{}, fmt.Sprintf("%d more tables of effects are in the report (netdelta report) and in %s.", len(tables)-i, result.ResultFile))
			return
		}
		p.title(words.EffectHeading(t)+" · "+words.Load(t.Open)+" · "+words.At(t.Setting.Placement), "")
		p.rows(table{deltas: t.Headlines(), all: t.Deltas, confidence: p.run.Confidence, exact: p.run.Exact != nil})
		p.paragraph(piece{}, words.Effect(t))
	}
}
