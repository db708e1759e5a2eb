// Package why prints what evidence says is wrong on a path.
package why

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"netdelta/insight/cause"
	"netdelta/internal/gather"
	"netdelta/probe/evidence"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/unit"
)

// Answer is what was found on a path.
type Answer struct {
	Path     evidence.Path   `json:"path"`
	Healthy  evidence.Path   `json:"healthy"`
	Findings []cause.Finding `json:"findings"`
	// Notes are what could not be read, and why.
	Notes []string `json:"notes,omitempty"`
}

// evidenceMost is how many pieces of evidence are printed for each finding.
const evidenceMost = 3

// WriteText prints an answer on w, which is the terminal t: a paragraph, then each finding with what shows it and what to do.
func WriteText(w io.Writer, a Answer, t ui.Terminal) error {
	out := bufio.NewWriter(w)
	p := printer{out, t}
	p.paragraph("", says(a))
	for _, path := range []evidence.Path{a.Path, a.Healthy} {
		if path.Failed != "" {
			p.paragraph("", "The load did not get through on "+path.Network+": "+path.Failed+".")
		}
	}
	for i, f := range a.Findings {
		out.WriteByte('\n')
		p.paragraph(fmt.Sprintf("%d. ", i+1), capital(f.Symptom.Says)+" ("+f.Symptom.Family+")")
		for _, e := range f.Evidence[:min(len(f.Evidence), evidenceMost)] {
			p.entry("seen", evidenceOf(e, a.Healthy.Network))
		}
		if n := len(f.Evidence) - evidenceMost; n > 0 {
			p.entry("", fmt.Sprintf("and %d more counters: --json has them", n))
		}
		for _, d := range f.Differs {
			p.entry("differs", fmt.Sprintf("%s of %s: %s at %s, %s at %s", d.Setting, orNamespace(d.Device), d.Was, d.Place, d.Is, d.Other))
		}
		p.entry("cause", f.Symptom.Cause)
		p.entry("confirm", f.Symptom.Confirm)
		p.entry("change", f.Symptom.Change)
		p.entry("risk", f.Symptom.Risk)
		p.entry("seen in", strings.Join(f.Symptom.Incidents, ", "))
	}
	for _, n := range a.Notes {
		out.WriteByte('\n')
		p.paragraph("not read: ", n)
	}
	return out.Flush()
}

// says is the answer in a sentence or two.
func says(a Answer) string {
	against := fmt.Sprintf("%s and %s of %s", unit.Counted(int(a.Path.Transactions), "transaction"), unit.Thousands(int(a.Healthy.Transactions)), a.Healthy.Network)
	if len(a.Findings) == 0 {
		return fmt.Sprintf("The kernel counts nothing wrong with %s: no counter, drop, timer or setting stands out over %s.", a.Path.Network, against)
	}
	names := gather.Each(a.Findings, func(f cause.Finding) string { return f.Symptom.Says })
	return fmt.Sprintf("On %s %s, unlike on %s (over %s). Nothing was changed.", a.Path.Network, words.List(names[:min(len(names), namesMost)]), a.Healthy.Network, against)
}

// namesMost is how many findings the paragraph names.
const namesMost = 2

func evidenceOf(e cause.Evidence, healthy string) string {
	at := ""
	if e.Where != "" {
		at = " at " + strings.Replace(e.Where, " ", "/", 1)
	}
	return fmt.Sprintf("%s%s: %.3g in 1,000 transactions (%s), %.3g on %s", e.What, at, e.PerThousand, unit.Thousands(int(e.Count)), e.Other, healthy)
}

func orNamespace(device string) string {
	if device == "" {
		return "the namespace"
	}
	return device
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// printer prints paragraphs that fit the terminal.
type printer struct {
	out      *bufio.Writer
	terminal ui.Terminal
}

func (p printer) paragraph(lead, text string) {
	indent := ui.Columns(lead)
	for _, line := range ui.Wrap(p.terminal.Text(text), max(p.terminal.Width-indent, 20)) {
		p.out.WriteString(lead + line + "\n")
		lead = strings.Repeat(" ", indent)
	}
}

// entry prints a labelled paragraph unless it is empty.
func (p printer) entry(label, text string) {
	if text != "" {
		p.paragraph(fmt.Sprintf("   %-8s ", label), text)
	}
}
