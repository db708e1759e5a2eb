package markdown

import (
	"fmt"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
)

// effects writes what the study's factors do to each network: a table for each step of a factor in each setting.
func (d *document) effects(run result.Run) {
	tables := insight.EffectTables(run)
	if len(tables) == 0 {
		return
	}
	d.paragraph("## What the conditions cost")
	for _, t := range tables {
		d.item(escape(words.Load(t.Open)) + ": " + escape(words.Effect(t)))
	}
	d.line("")
	for _, t := range tables {
		d.paragraph("### " + escape(words.EffectHeading(t)+" · "+words.Load(t.Open)+" · "+words.At(t.Setting.Placement)))
		d.paragraph(fmt.Sprintf("Each network against itself at %s. %s%% intervals over builds.", escape(t.From), percentage(run.Confidence)))
		var rows [][]string
		for _, delta := range t.Headlines() {
			rows = append(rows, []string{
				escape(insight.Name(delta.Network, delta.Path)), ratio(delta), interval(delta),
				words.Added(delta), words.Value(words.Unit(delta), delta.Value), emphasis(delta.Verdict), excluded(delta.Excluded),
			})
		}
		metric := t.Headlines()[0].Metric
		d.table([]string{"network", "vs " + escape(t.From), "interval", "difference", escape(metric), "verdict", "left out"},
			[]bool{false, true, true, true, true, false, false}, rows)
	}
}
