package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/report/ui"
	"netdelta/result"
)

// claimsWide is the width from which claims are a table of columns; below it, each is a list.
const claimsWide = 110

// verdictWidth is the room for the verdicts of claims.
const verdictWidth = 18

// claims prints the published findings that the run was held against. Those that could not be tested come last, in one line
// for each reason.
func (p *page) claims() {
	if len(p.run.Claims) == 0 {
		return
	}
	p.title("What was claimed", "")
	tested := slices.DeleteFunc(slices.Clone(p.run.Claims), func(c result.Claim) bool { return c.Verdict == insight.NotTested })
	if p.terminal.Width >= claimsWide {
		p.claimColumns(tested)
	} else {
		for _, c := range tested {
			p.claimList(c)
		}
	}
	p.notTested()
}

// claimStyle is the colour of a claim's verdict.
func claimStyle(verdict string) ui.Style {
	switch verdict {
	case insight.Confirmed, insight.ConfirmedInPart:
		return ui.Green
	case insight.Contradicted:
		return ui.Red
	}
	return ui.Yellow
}

// verdictLabel is a verdict padded to its room.
func (p *page) verdictLabel(verdict string) piece {
	text := ui.Shorten(p.terminal.Text(verdict), verdictWidth-1)
	return piece{text + strings.Repeat(" ", verdictWidth-ui.Columns(text)), claimStyle(verdict)}
}

// claimList prints a claim below its verdict, a line for what was published and one for what was measured.
func (p *page) claimList(c result.Claim) {
	p.paragraph(p.verdictLabel(c.Verdict), c.Says)
	for _, part := range []struct{ label, text string }{{"published", c.Published}, {"measured", c.Measured}} {
		if part.text != "" {
			p.paragraph(piece{fmt.Sprintf("%-*s", verdictWidth, part.label), ui.Dim}, part.text)
		}
	}
}

// claimColumns prints claims as a table whose cells are wrapped.
func (p *page) claimColumns(claims []result.Claim) {
	if len(claims) == 0 {
		return
	}
	room := p.terminal.Width - verdictWidth - 2*len(gap)
	says, published := room*3/10, room*2/10
	widths := []int{says, published, room - says - published}
	p.cells(piece{fmt.Sprintf("%-*s", verdictWidth, "verdict"), ui.Dim}, widths, ui.Dim, "claim", "published", "measured")
	for _, c := range claims {
		p.cells(p.verdictLabel(c.Verdict), widths, ui.Plain, c.Says, c.Published, c.Measured)
	}
}

// cells prints texts side by side behind a lead, each wrapped to its width. A word that is wider is cut.
func (p *page) cells(lead piece, widths []int, style ui.Style, texts ...string) {
	columns, height := make([][]string, len(texts)), 1
	for i, text := range texts {
		columns[i] = ui.Wrap(p.terminal.Text(text), widths[i])
		height = max(height, len(columns[i]))
	}
	for row := range height {
		pieces := []piece{lead}
		for i, lines := range columns {
			text := ""
			if row < len(lines) {
				text = ui.Shorten(lines[row], widths[i])
			}
			text += strings.Repeat(" ", widths[i]-ui.Columns(text))
			if i < len(columns)-1 {
				text += gap
			}
			pieces = append(pieces, piece{text, style})
		}
		p.line(pieces...)
		lead = piece{strings.Repeat(" ", verdictWidth), ui.Plain}
	}
}

// notTested names the claims that could not be tested, those with the same reason together.
func (p *page) notTested() {
	type claim struct{ reason, name string }
	var all []claim
	for _, c := range p.run.Claims {
		reason, about, found := strings.Cut(c.Measured, ": ")
		if found && reason != "" {
			about = " (" + about + ")"
		}
		if c.Verdict == insight.NotTested {
			all = append(all, claim{cmp.Or(reason, "not judged"), c.ID + about})
		}
	}
	label := "not tested"
	for reason, claims := range insight.By(all, func(c claim) string { return c.reason }) {
		names := gather.Each(claims, func(c claim) string { return c.name })
		p.paragraph(piece{fmt.Sprintf("%-*s", verdictWidth, label), ui.Dim}, reason+": "+strings.Join(names, ", "))
		label = ""
	}
}
