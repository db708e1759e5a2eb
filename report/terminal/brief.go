package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
)

// Short names of styles.
const (
	plain = ui.Plain
	bold  = ui.Bold
)

func dim(is bool) ui.Style {
	if is {
		return ui.Dim
	}
	return ui.Plain
}

// kindStyle is the colour of a kind of advice.
func (p *page) kindStyle(kind string) ui.Style {
	return cmp.Or(map[string]ui.Style{words.KindChange: ui.Green, words.KindFix: ui.Yellow}[kind], ui.Dim)
}

// brief sums up in a few lines what the figures rest on and what was claimed. What went wrong is said in full.
func (p *page) brief() {
	p.title("Reliability", "details: "+p.again())
	p.entry("figures", strings.Join(p.rest(), " · "))
	p.entry("intervals", p.intervals())
	p.list("failed", p.failed())
	p.list("misrouted", p.misrouted())
	p.unsupported()
	if n := insight.LeftOut(p.run.Cells); n > 0 {
		p.entry("left out", unit.Counted(n, "cell")+", by the time budget or as the study says")
	}
	p.entry("claims", p.verdicts())
	p.usedBy()
	p.list("note", p.run.Notes)
}

// usedBy names the products of networks that a table had no room for.
func (p *page) usedBy() {
	users := words.Users(p.run)
	var all []string
	for _, name := range p.unnamed {
		if names := users[name]; len(names) > 0 {
			all = append(all, name+": "+strings.Join(names[:min(2, len(names))], ", "))
		}
	}
	p.entry("used by", strings.Join(all, "; "))
}

// rest says in parts what the figures rest on.
func (p *page) rest() []string {
	var parts []string
	if floor, failed := p.floor(); failed > 0 {
		parts = append(parts, "null check failed in "+unit.Counted(failed, "setting"))
	} else if floor > 0 {
		parts = append(parts, "noise floor "+p.share(floor))
	} else {
		parts = append(parts, "noise floor unknown")
	}
	trials, proved := 0, 0
	for _, path := range p.run.Paths {
		trials, proved = trials+path.Trials, proved+path.Proved
	}
	if trials > 0 {
		parts = append(parts, fmt.Sprintf("path proved in %d of %d trials", proved, trials))
	}
	if left, _, found := strings.Cut(words.LeftOut(p.run.Account), ":"); found {
		parts = append(parts, left+" left out")
	}
	var checks []string
	for name := range p.found(otherCheck, func(c result.Check) string { return c.Check }) {
		checks = append(checks, name)
	}
	if len(checks) > 0 {
		slices.Sort(checks)
		parts = append(parts, "checks that found something: "+strings.Join(checks, ", "))
	}
	if n := len(p.run.Environment.Findings); n > 0 {
		parts = append(parts, unit.Counted(n, "finding")+" of the doctor")
	}
	return parts
}

// floor is the largest noise floor of the headlines with a ratio, 0 where none is known, and in how many settings the null check failed.
func (p *page) floor() (largest float64, failed int) {
	for _, n := range p.run.Null {
		if !n.Headline {
			continue
		}
		if v := stats.Verdict(n.Verdict); v == stats.Slower || v == stats.Faster {
			failed++
		}
		if n.Floor != nil && n.Ratio > 0 {
			largest = max(largest, *n.Floor)
		}
	}
	return largest, failed
}

// unsupported names the networks that another kernel would have, and says of all else why it could not be measured.
func (p *page) unsupported() {
	var elsewhere []string
	for _, a := range insight.Absences(p.run.Cells) {
		switch {
		case !a.Unsupported:
		case a.InGuest && !a.Conditions:
			elsewhere = append(elsewhere, words.Absent(a))
		default:
			p.entry("unsupported", words.Absent(a)+": "+a.Why)
		}
	}
	if len(elsewhere) > 0 {
		p.entry("unsupported", strings.Join(elsewhere, ", ")+": this kernel lacks what they need; run them with --testbed vm")
	}
}

// verdicts counts the claims by their verdicts.
func (p *page) verdicts() string {
	var parts []string
	for verdict, claims := range insight.By(p.run.Claims, func(c result.Claim) string { return c.Verdict }) {
		parts = append(parts, fmt.Sprintf("%d %s", len(claims), strings.ReplaceAll(verdict, "-", " ")))
	}
	return strings.Join(parts, ", ")
}

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
