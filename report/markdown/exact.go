package markdown

import (
	"fmt"
	"strconv"

	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
)

// exactComparison writes what an exact run says of the same networks.
func (d *document) exactComparison(b *result.ExactComparison) {
	if b == nil {
		return
	}
	d.paragraph("## Instructions and time")
	d.paragraph("The same networks in the exact run " + escape(b.Run) + ", which counts instructions. " + escape(words.ExactComparison(*b)))
	for _, s := range b.Settings {
		setting := result.Setting{Workload: s.Workload, Params: s.Params, Placement: s.Placement}
		d.paragraph("### " + escape(words.Load(setting)) + ", " + words.At(s.Placement) + ": instructions and time")
		if s.Correlation != nil {
			d.paragraph(fmt.Sprintf("Rank correlation %.2f; %s, both against %s.", *s.Correlation, escape(s.Metric), escape(s.Baseline)))
		}
		var rows [][]string
		for _, n := range s.Networks {
			rows = append(rows, []string{
				escape(n.Network), words.Percent(n.Native), place(n.NativeRank), unit.Ratio(n.Exact).PercentTo(2), place(n.ExactRank),
				fmt.Sprintf("%+.0f", n.Request), fmt.Sprintf("%+.0f", n.Response),
			})
		}
		d.table([]string{"network", "by time", "place", "by instructions", "place", "request", "response"},
			[]bool{false, true, true, true, true, true, true}, rows)
	}
}

// place is a rank, which several networks may share.
func place(rank float64) string { return strconv.FormatFloat(rank, 'f', -1, 64) }
