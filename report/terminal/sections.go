package terminal

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
)

// exactMost is how many settings of an exact run are printed on a terminal.
const exactMost = 12

// exactComparison prints what an exact run says of the same networks.
func (p *page) exactComparison() {
	b := p.run.ExactComparison
	if b == nil {
		return
	}
	p.title("Instructions and time", "exact run: "+b.Run)
	p.paragraph(piece{}, words.ExactComparison(*b))
	most := p.atMost(exactMost, len(b.Settings))
	for _, s := range b.Settings[:most] {
		p.exactSetting(s)
	}
	p.elsewhere(len(b.Settings)-most, "settings")
}

// exactSetting prints the table of one setting.
func (p *page) exactSetting(s result.ExactSetting) {
	right := ""
	if s.Correlation != nil {
		right = fmt.Sprintf("rank correlation %.2f", *s.Correlation)
	}
	p.title(words.Load(s.Setting)+" · "+words.At(s.Placement), right)
	rows, width := words.ExactRows(s), 0
	for _, row := range rows {
		row[0] = ui.Shorten(p.terminal.Text(row[0]), nameMost)
		width = max(width, ui.Columns(row[0]))
	}
	p.line(piece{fmt.Sprintf("%-*s  %8s %5s  %8s %5s  %8s %8s", width, "", "time", "place", "instr.", "place", "request", "response"), ui.Dim})
	for _, row := range rows {
		name := row[0] + strings.Repeat(" ", width-ui.Columns(row[0]))
		p.line(piece{fmt.Sprintf("%s  %8s %5s  %8s %5s  %8s %8s", name, row[1], row[2], row[3], row[4], row[5], row[6]), ui.Plain})
	}
}

// effectsMost is how many tables of effects are printed on a terminal.
const effectsMost = 12

// effects prints what the study's factors do to each network: a table for each step of a factor in each setting.
func (p *page) effects() {
	tables := insight.EffectTables(p.run)
	most := p.atMost(effectsMost, len(tables))
	for _, t := range tables[:most] {
		p.effect(t)
	}
	p.elsewhere(len(tables)-most, "tables of effects")
}

// effect prints the table of one step of a factor in one setting.
func (p *page) effect(t insight.EffectTable) {
	p.title(words.EffectHeading(t)+" · "+words.Load(t.Open)+" · "+words.At(t.Setting.Placement), "")
	p.rows(table{deltas: t.Headlines(), all: t.Deltas, confidence: p.run.Confidence, exact: p.run.Exact != nil})
	if slices.ContainsFunc(t.Headlines(), func(d result.Delta) bool { return unseen(d) > 0 }) {
		p.paragraph(piece{}, unseenLegend)
	}
	p.paragraph(piece{}, words.Effect(t))
}

// breakdown shows the latency breakdown of storage and databases: where latency goes, what clusters say of their
// replication, and how applications go with raw figures.
func (p *page) breakdown() {
	if len(p.run.Splits) > 0 {
		p.title("Where the latency goes", "median; disk without a network")
		heading := ""
		for _, s := range p.run.Splits {
			p.under(&heading, s.Setting)
			p.paragraph(piece{insight.Name(s.Network, s.Path) + gap, ui.Plain}, words.Split(s))
		}
		p.paragraph(piece{}, words.SplitParts())
	}
	if len(p.run.Replications) > 0 {
		p.title("Replication", "as the cluster measured it")
		heading := ""
		for _, r := range p.run.Replications {
			p.under(&heading, r.Setting)
			p.paragraph(piece{insight.Name(r.Network, r.Path) + gap, ui.Plain}, words.Replication(r))
		}
	}
	if known := p.correlations(); len(known) > 0 {
		p.title("Applications against raw figures", "correlation over networks")
		for _, c := range known {
			p.paragraph(piece{}, words.Load(c.Setting)+" with the "+words.Raw(c)+": "+words.Correlation(c))
		}
	}
}

// correlations are those that the view shows: unless it is verbose, those over enough networks for an interval.
func (p *page) correlations() []result.Correlation {
	return slices.DeleteFunc(slices.Clone(p.run.Correlations), func(c result.Correlation) bool { return !p.view.Verbose && c.PearsonLow == nil })
}

// under prints the name of a setting where it is another one than the last.
func (p *page) under(last *string, s result.Setting) {
	if load := words.Load(s); load != *last {
		p.paragraph(piece{}, load)
		*last = load
	}
}

// links shows how the traffic was spread over the links of bonds, in a run that has some.
func (p *page) links() {
	spreads := words.Spreads(p.run.Links)
	if len(spreads) == 0 {
		return
	}
	p.title("Links of bonds", "share of each link's bytes, and of its rate")
	for _, s := range spreads {
		text := s.Bond + ": " + s.Shares
		if used := s.Used; used != "" {
			text += ", of the rate " + used
		}
		p.paragraph(piece{s.Network + gap, ui.Plain}, s.Load+gap+text)
	}
}

// settingsMost is how many settings are printed for a person who looks on: a thousand would be tens of thousands of lines.
const settingsMost = 24

// settings prints the table of each setting. On a terminal these are, of more than settingsMost, those in which a network differs most
// from the baseline, in the order of the study.
func (p *page) settings(parts []insight.Part) {
	parts = slices.DeleteFunc(parts, func(part insight.Part) bool { return len(part.Cells) == 0 })
	most := p.atMost(settingsMost, len(parts))
	for i, part := range farthest(parts, most) {
		p.setting(part)
		if i == 0 {
			p.caveats()
		}
	}
	p.elsewhere(len(parts)-most, "settings, in which networks differ less,")
}

// atMost is how many of so many tables are printed: no more than a limit on a terminal, and all of them in a file or for another program.
func (p *page) atMost(most, of int) int {
	if p.terminal.Interactive {
		return min(most, of)
	}
	return of
}

// elsewhere says how to see tables that were left out.
func (p *page) elsewhere(left int, what string) {
	if left > 0 {
		p.line()
		p.paragraph(piece{}, fmt.Sprintf("%d more %s are not shown here: %s | less prints all of them, and %s draws them.",
			left, what, p.command("netdelta show "+words.Folder), p.command("netdelta report "+words.Folder)))
	}
}

// caveats stand with the first table, and what explains surprising figures.
func (p *page) caveats() {
	for _, caveat := range slices.Concat(words.Caveats(p.run), words.Surprises(p.run)) {
		p.paragraph(piece{}, caveat)
	}
}

// farthest are so many parts in which networks differ most from the baseline.
func farthest(parts []insight.Part, most int) []insight.Part {
	order := make([]int, len(parts))
	differ := make([]float64, len(parts))
	for i, part := range parts {
		order[i] = i
		for _, d := range part.Headlines() {
			if d.Ratio > 0 {
				differ[i] = max(differ[i], math.Abs(math.Log(d.Ratio)))
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(differ[b], differ[a]) })
	order = slices.Sorted(slices.Values(order[:most]))
	return gather.Each(order, func(i int) insight.Part { return parts[i] })
}

// claimsWide is the width from which claims are a table of columns; below it, each is a list.
const claimsWide = 110

// verdictWidth is the room for the verdicts of claims.
const verdictWidth = 20

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
