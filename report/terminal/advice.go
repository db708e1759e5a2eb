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

// Where not all is shown, how many opportunities are shown of each kind, and how many lines of commands of each after the first.
const (
	adviceMost   = 3
	commandsMost = 4
)

// advice says what to change, each with the way to do it and what it risks.
func (p *page) advice() {
	if len(p.run.Advice) == 0 {
		return
	}
	p.title("What to do", "")
	shown, of := 0, map[string]int{}
	for _, a := range p.run.Advice {
		of[a.Kind]++
		if !p.view.Verbose && of[a.Kind] > adviceMost {
			continue
		}
		shown++
		p.opportunity(shown, a)
	}
	if left := len(p.run.Advice) - shown; left > 0 {
		p.paragraph(piece{}, fmt.Sprintf("%d more: %s", left, p.again()))
	}
}

// opportunity prints one, its commands below it.
func (p *page) opportunity(n int, a result.Advice) {
	lead := fmt.Sprintf("%d. ", n)
	p.paragraph(piece{lead, p.kindStyle(a.Kind)}, a.Says+" "+a.Why)
	indent := strings.Repeat(" ", len(lead))
	for i, command := range a.How {
		if n > 1 && i == commandsMost && len(a.How) > commandsMost+1 && !p.view.Verbose {
			p.paragraph(piece{indent + "  ", plain}, fmt.Sprintf("and %d more lines: %s", len(a.How)-i, p.again()))
			break
		}
		// A command stays on one line, however long, so that it can be copied.
		p.line(piece{indent + "  ", plain}, piece{p.command(command), dim(strings.HasPrefix(command, "#"))})
	}
	if a.Risk != "" {
		p.paragraph(piece{indent + "  risk  ", dim(true)}, a.Risk)
	}
}

// summary ends the output: the answer in two lines, and the next command.
func (p *page) summary() {
	lines := words.Summary(p.run)
	if len(lines) == 0 && p.run.Ended != "interrupted" {
		return
	}
	p.title("Summary", "")
	for _, l := range lines {
		p.paragraph(piece{}, l)
	}
	if next := words.Next(p.run); next != "" {
		p.line(piece{"next  ", dim(true)}, piece{p.command(next), bold})
	}
}

// again is the command that shows all of the run.
func (p *page) again() string { return p.command("netdelta show -v " + words.Folder) }

// command is a command as this user types it.
func (p *page) command(text string) string {
	text = words.InFolder(text, p.view.Folder)
	if rest, own := strings.CutPrefix(text, "netdelta "); own && p.view.Program != "" {
		return p.view.Program + " " + rest
	}
	return text
}

// goals prints what was asked of the deltas.
func (p *page) goals() {
	if len(p.run.Goals) == 0 {
		return
	}
	p.title("Goals", "")
	for _, g := range p.run.Goals {
		style := map[string]ui.Style{result.GoalPass: ui.Green, result.GoalFail: ui.Red}[g.Verdict]
		p.paragraph(piece{fmt.Sprintf("%-9s", strings.ToUpper(g.Verdict)), style}, g.Goal+": "+g.Measured)
	}
}

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
