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

// whole says whether the view has all that there is of the run.
func (p *page) whole() bool { return p.view.Verbose || p.view.Pairs }

// answered prints the tables of the first screen: those of the load that the study is about, of the first effects, and where nothing was
// compared those of the baseline alone.
func (p *page) answered() {
	parts, effects := insight.Answered(p.run), insight.EffectTables(p.run)
	shown := parts
	if all := insight.Parts(p.run); len(parts)+len(effects) == 0 {
		shown = all[:min(len(all), partsBrief)]
	}
	for _, part := range shown {
		p.setting(part)
	}
	if len(parts) > 0 {
		p.paragraph(piece{}, words.Bounded(parts[0].Bounds()))
	}
	p.exactComparison()
	slices.SortStableFunc(effects, func(a, b insight.EffectTable) int {
		return insight.AcrossFirst(a.Setting.Placement, b.Setting.Placement)
	})
	for _, t := range effects[:min(len(effects), effectsBrief)] {
		p.effect(t)
	}
	for _, caveat := range words.Caveats(p.run) {
		p.paragraph(piece{}, caveat)
	}
}

// partsBrief is how many settings a first screen has where only the baseline was measured.
const partsBrief = 2

// effectsBrief is how many tables of effects a first screen has.
const effectsBrief = 2

// basis says in a few lines what the figures rest on, and where the rest is. What went wrong is said in full.
func (p *page) basis() {
	p.line()
	p.entry("figures", strings.Join(p.rest(), " · "))
	p.list("failed", p.failed())
	p.list("misrouted", p.misrouted())
	p.unsupported()
	budget := slices.ContainsFunc(p.run.Notes, func(n string) bool { return strings.Contains(n, "--time-budget") }) // a note has it in full
	if n := insight.LeftOut(p.run.Cells); n > 0 && !budget {
		p.entry("left out", unit.Counted(n, "cell")+", by the time budget or as the study says")
	}
	if words.OwnClaims(p.run) {
		p.entry("claims", p.verdicts())
	}
	p.list("note", p.run.Notes)
	p.entry("more", strings.Join(p.further(), ", ")+": "+p.again())
}

// further are what the verbose view has beside this one.
func (p *page) further() []string {
	var all []string
	settings := len(slices.DeleteFunc(insight.Parts(p.run), func(part insight.Part) bool { return len(part.Headlines()) == 0 }))
	if n := settings - len(insight.Answered(p.run)); n > 0 {
		all = append(all, unit.Counted(n, "further setting"))
	}
	if n := len(insight.EffectTables(p.run)) - effectsBrief; n > 0 {
		all = append(all, unit.Counted(n, "further table")+" of what conditions cost")
	}
	if len(p.run.Splits) > 0 {
		all = append(all, "where the latency goes")
	}
	return append(all, "what was checked")
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
	if failed := len(insight.NullFailed(p.run.Null)); failed > 0 {
		parts = append(parts, "null check failed in "+unit.Counted(failed, "setting"))
	} else if floor := p.floor(); floor > 0 {
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

// floor is the largest noise floor of the headlines with a ratio, 0 where none is known.
func (p *page) floor() (largest float64) {
	for _, n := range p.run.Null {
		if n.Headline && n.Floor != nil && n.Ratio > 0 {
			largest = max(largest, *n.Floor)
		}
	}
	return largest
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

// What the first screen has of the advice: so many entries, of so many lines each.
const (
	adviceMost      = 3
	adviceLinesMost = 3
)

// briefAdvice says in a few lines each what to change first.
func (p *page) briefAdvice() {
	if len(p.run.Advice) == 0 {
		return
	}
	p.title("What to do", "")
	for i, a := range p.run.Advice[:min(adviceMost, len(p.run.Advice))] {
		lead := fmt.Sprintf("%d. ", i+1)
		why, _ := words.Brief(a, func(text string) bool {
			return len(ui.Wrap(p.terminal.Text(text), max(p.terminal.Width-len(lead), 20))) <= adviceLinesMost
		})
		p.paragraph(piece{lead, p.kindStyle(a.Kind)}, strings.TrimSpace(a.Says+" "+why))
	}
	p.paragraph(piece{}, "How, and what it risks"+p.moreAdvice()+": "+p.command("netdelta advise "+words.Folder))
}

// moreAdvice counts the entries that the first screen leaves out.
func (p *page) moreAdvice() string {
	if n := len(p.run.Advice) - adviceMost; n > 0 {
		return fmt.Sprintf(", and %d more", n)
	}
	return ""
}

// advice says what to change, each with the way to do it and what it risks.
func (p *page) advice() {
	if len(p.run.Advice) == 0 {
		return
	}
	p.title("What to do", "")
	for i, a := range p.run.Advice {
		p.opportunity(i+1, a)
	}
}

// opportunity prints one, its commands below it.
func (p *page) opportunity(n int, a result.Advice) {
	lead := fmt.Sprintf("%d. ", n)
	p.paragraph(piece{lead, p.kindStyle(a.Kind)}, a.Says+" "+a.Why)
	indent := strings.Repeat(" ", len(lead)+2)
	for _, command := range a.How {
		p.commandLines(piece{indent, plain}, command, dim(strings.HasPrefix(command, "#")))
	}
	if a.Risk != "" {
		p.paragraph(piece{indent + "risk  ", dim(true)}, a.Risk)
	}
}

// commandLines prints a command so that it can be copied, whatever the width: a shell joins its lines.
func (p *page) commandLines(lead piece, command string, style ui.Style) {
	indent := ui.Columns(lead.text)
	for i, line := range ui.WrapCommand(p.terminal.Text(p.command(command)), p.terminal.Width-indent) {
		if i > 0 {
			lead = piece{strings.Repeat(" ", indent), plain}
		}
		p.line(lead, piece{line, style})
	}
}

// summary prints the answer: a sentence for each placement, and how much of it is open.
func (p *page) summary() {
	lines := words.Summary(p.run)
	if len(lines) == 0 {
		return
	}
	p.line()
	for _, l := range lines {
		p.paragraph(piece{}, l)
	}
}

// next prints the command that tells the most after this run.
func (p *page) next() {
	if next := words.Next(p.run); next != "" {
		p.commandLines(piece{fmt.Sprintf("%-*s", labelWidth, "next"), dim(true)}, next, bold)
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
