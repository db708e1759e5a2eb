package terminal

import (
	"netdelta/report/ui"
	"netdelta/report/words"
)

// links shows how the traffic was spread over the links of bonds, in a run that has some.
func (p *page) links() {
	spreads := words.Spreads(p.run.Links)
	if len(spreads) == 0 {
		return
	}
	p.title("Links of bonds", "share of each link's bytes, and of its rate")
	for _, s := range spreads {
		text := s.Bond + ": " + s.Shares
		if used := s.Used; used != "" {
			text += ", of the rate " + used
		}
		p.paragraph(piece{s.Network + gap, ui.Plain}, s.Load+gap+text)
	}
}
