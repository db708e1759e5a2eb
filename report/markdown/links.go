package markdown

import (
	"netdelta/report/words"
	"netdelta/result"
)

// links writes how the traffic was spread over the links of bonds, in a run that has some.
func (d *document) links(links []result.LinkShare) {
	spreads := words.Spreads(links)
	if len(spreads) == 0 {
		return
	}
	d.paragraph("### Links of bonds")
	d.paragraph("What part of the bond's bytes each of its links sent in the bursts, the median over builds, and how much of its rate that is.")
	rows := make([][]string, len(spreads))
	for i, s := range spreads {
		rows[i] = []string{escape(s.Network), escape(s.Load), escape(s.Bond), s.Shares, s.Used}
	}
	d.table([]string{"network", "load", "sent by", "share of each link", "of its rate"}, []bool{false, false, false, true, true}, rows)
}
