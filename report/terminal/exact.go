package terminal

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
)

// exactMost is how many settings are printed beside an exact run; the rest are counted.
const exactMost = 12

// exactComparison prints what an exact run says of the same networks.
func (p *page) exactComparison() {
	b := p.run.ExactComparison
	if b == nil {
		return
	}
	p.title("Instructions and time", "exact run: "+b.Run)
	p.paragraph(piece{}, words.ExactComparison(*b))
	for i, s := range b.Settings {
		if i == exactMost {
			p.line()
			p.paragraph(piece{}, fmt.Sprintf("%d more settings are in the report (netdelta report --format md).", len(b.Settings)-i))
			return
		}
		p.exactSetting(s)
	}
}

// exactSetting prints the table of one setting.
func (p *page) exactSetting(s result.ExactSetting) {
	right := ""
	if s.Correlation != nil {
		right = fmt.Sprintf("rank correlation %.2f", *s.Correlation)
	}
	setting := result.Setting{Workload: s.Workload, Params: s.Params, Placement: s.Placement}
	p.title(words.Load(setting)+" · "+words.At(s.Placement), right)
	width := 0
	for _, n := range s.Networks {
		width = max(width, ui.Columns(ui.Shorten(p.terminal.Text(n.Network), nameMost)))
	}
	p.line(piece{fmt.Sprintf("%-*s  %8s %5s  %8s %5s  %8s %8s", width, "", "time", "place", "instr.", "place", "request", "response"), ui.Dim})
	for _, n := range s.Networks {
		name := ui.Shorten(p.terminal.Text(n.Network), nameMost)
		p.line(piece{fmt.Sprintf("%s%s  %8s %5s  %8s %5s  %+8.0f %+8.0f", name, strings.Repeat(" ", width-ui.Columns(name)),
			words.Percent(n.Native), place(n.NativeRank), unit.Ratio(n.Exact).PercentTo(2), place(n.ExactRank), n.Request, n.Response), ui.Plain})
	}
}

// place prints a rank, which several networks may share.
func place(rank float64) string { return strconv.FormatFloat(rank, 'f', -1, 64) }

// seeds says how far the seeds of an exact run lie apart: the widest range over its headline deltas, and the median.
func (p *page) seeds() string {
	if p.run.Exact == nil {
		return ""
	}
	var widths []float64
	for _, d := range p.run.Deltas {
		if d.Headline && d.RatioLow != nil && d.RatioHigh != nil {
			widths = append(widths, (*d.RatioHigh-*d.RatioLow)/d.Ratio)
		}
	}
	if len(widths) == 0 {
		return ""
	}
	widest := 0.0
	for _, w := range widths {
		widest = math.Max(widest, w)
	}
	return fmt.Sprintf("the same network in guests of other seeds differs by %s at most, by %s in the median", p.share(widest), p.share(stats.Median(widths)))
}

// share prints a small share in percent, of an exact run to where its digits end.
func (p *page) share(x float64) string {
	if p.run.Exact != nil {
		return fmt.Sprintf("%.3f%%", 100*x)
	}
	return fmt.Sprintf("%.1f%%", 100*x)
}
