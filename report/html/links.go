package html

import "netdelta/report/words"

// Spreads are how traffic was spread over the links of bonds.
func (p *page) Spreads() []words.Spread { return words.Spreads(p.Run.Links) }
