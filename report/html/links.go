package html

import "netdelta/insight"

// Spreads are how traffic was spread over the links of bonds, for the page.
func (p *page) Spreads() []insight.Spread { return insight.Spreads(p.Run.Links) }
