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
	for at, own := range insight.By(shares, func(s insight.RequestShare) result.Setting { return s.Delta.Setting() }) {
		p.paragraph(piece{}, words.Load(at)+" · "+words.At(at.Placement))
		for _, s := range own {
			p.requestLine(s)
		}
	}
}

// requestLine prints the line of one network.
func (p *page) requestLine(s insight.RequestShare) {
	name := ui.Shorten(p.terminal.Text(insight.Name(s.Delta.Network, s.Delta.Path)), nameMost)
	added, share, verdict, style := words.Difference("ns", s.Added), fmt.Sprintf("%+.1f%%", 100*s.Share), "can't be told yet", ui.Yellow
	if s.Known {
		share += fmt.Sprintf(" [%+.1f, %+.1f]", 100*s.Low, 100*s.High)
	}
	switch yes, no := s.Matters(p.run.Margin); {
	case no:
		verdict, style = fmt.Sprintf("no: within %g%%", 100*p.run.Margin), ui.Green
	case yes && s.Share < 0:
		verdict, style = "yes, it saves", ui.Green
	case yes:
		verdict, style = "yes", ui.Red
	}
	pad := strings.Repeat(" ", max(0, nameMost-8-ui.Columns(name)))
	p.line(piece{"  " + name + pad, ui.Plain}, piece{fmt.Sprintf("  %9s  %-22s  ", added, share), ui.Plain}, piece{verdict, style})
}
