package terminal

import (
	"fmt"
	"strings"
	"time"

	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
)

// request prints what each network adds to a request of the user's own.
func (p *page) request() {
	r := p.view.Request
	if r.Calls == 0 || r.Took <= 0 {
		return
	}
	calls := fmt.Sprintf("%d calls, one after the other", r.Calls)
	if r.Calls == 1 {
		calls = "1 call"
	}
	p.title("Does it matter to a request of "+time.Duration(r.Took).String()+" with "+calls+"?", "")
	shares := r.Shares(p.run)
	if len(shares) == 0 {
		p.paragraph(piece{}, "No round trips were measured: netdelta advise measures them.")
		return
	}
	for at, own := range insight.By(shares, func(s insight.RequestShare) result.Setting { return s.Delta.Setting }) {
		p.paragraph(piece{}, words.Load(at)+" · "+words.At(at.Placement))
		for _, s := range own {
			p.requestLine(s)
		}
	}
}

// requestLine prints the line of one network.
func (p *page) requestLine(s insight.RequestShare) {
	line := words.Request(s, p.run.Margin)
	name := ui.Shorten(p.terminal.Text(line.Name), nameMost)
	pad := strings.Repeat(" ", max(0, nameMost-8-ui.Columns(name)))
	p.line(piece{"  " + name + pad, ui.Plain}, piece{fmt.Sprintf("  %9s  %-22s  ", line.Added, line.Share), ui.Plain}, piece{line.Verdict, verdictStyle(line.Class)})
}
