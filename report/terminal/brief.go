package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"netdelta/insight"
	"netdelta/network"
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
	p.list("failed", p.failed())
	p.list("misrouted", p.misrouted())
	p.unsupported()
	if n := p.skipped(); n > 0 {
		p.entry("left out", unit.Counted(n, "cell")+", by the time budget or as the study says")
	}
	p.entry("claims", p.verdicts())
	p.usedBy()
	p.list("note", p.run.Notes)
}

// usedBy names the products of networks that a table had no room for.
func (p *page) usedBy() {
	users := network.Users()
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
	if left, _, found := strings.Cut(p.leftOut(), ":"); found {
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

// skipped is how many cells were left out.
func (p *page) skipped() int {
	n := 0
	for _, c := range p.run.Cells {
		if c.Skipped != "" && c.Role == result.RoleCell {
			n++
		}
	}
	return n
}

// verdicts counts the claims by their verdicts.
func (p *page) verdicts() string {
	var parts []string
	for verdict, claims := range insight.By(p.run.Claims, func(c result.Claim) string { return c.Verdict }) {
		parts = append(parts, fmt.Sprintf("%d %s", len(claims), strings.ReplaceAll(verdict, "-", " ")))
	}
	return strings.Join(parts, ", ")
}
