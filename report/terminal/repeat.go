package terminal

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
)

// WriteRepeated prints what several runs say of another one on w, which is the terminal t.
func WriteRepeated(w io.Writer, runs []insight.Measured, all []insight.Repeated, t ui.Terminal) error {
	buffer := bufio.NewWriter(w)
	p := &page{w: buffer, terminal: t}
	p.line(piece{"another run", ui.Bold})
	for i, m := range runs {
		p.entry(fmt.Sprintf("run %d", i+1), comparedRun(result.ComparedRun{Run: m.Run.Run, Started: m.Run.Started, Testbed: m.Run.Testbed, Ended: m.Run.Ended, Builds: builds(m.Run)}))
	}
	type key struct {
		setting result.Setting
		metric  string
	}
	for k, group := range insight.By(all, func(r insight.Repeated) key { return key{r.Delta.Setting, r.Delta.Metric} }) {
		p.title(words.Load(k.setting)+" · "+words.At(k.setting.Placement)+" · "+k.metric, "")
		width := 0
		for _, r := range group {
			width = max(width, ui.Columns(insight.Name(r.Delta.Network, r.Delta.Path)))
		}
		p.line(piece{fmt.Sprintf("%-*s  %6s  %-18s  %-18s  %s", width, "", "mean", "its 95% interval", "another run, 95%", "the runs"), ui.Dim})
		for _, r := range group {
			mean, next, figures := words.Repeated(r)
			p.line(piece{text: fmt.Sprintf("%-*s  %6s  %-18s  %-18s  %s", width, insight.Name(r.Delta.Network, r.Delta.Path),
				words.Share(r, r.Prediction.Center), mean, next, strings.Join(figures, " "))})
		}
	}
	p.line()
	p.paragraph(piece{}, words.RepeatedSays(all, len(runs), insight.Boots(runs)))
	return buffer.Flush()
}

// builds is the largest number of builds behind any delta of a run.
func builds(run result.Run) int {
	n := 0
	for _, d := range run.Deltas {
		n = max(n, d.Blocks)
	}
	return n
}
