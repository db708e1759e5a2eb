// Package live words a run under way: how its networks stand so far, for a block that is drawn again, for lines, and as events.
package live

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
)

// Standing is how the networks of a run stand after the build that was judged last. The zero Standing is that before the first.
type Standing struct {
	// Build is that build, from 1.
	Build int
	// Deltas are the headline deltas of the setting that is shown, the cheapest network first.
	Deltas []result.Delta
	// Settings is how many settings have deltas.
	Settings int

	before map[string]float64 // half widths of intervals after the build before, by cell
}

// Next is the standing after a further build, with the headline deltas of all settings. The setting that is shown is the one with the most
// networks, the first of equals.
func (s Standing) Next(build int, deltas []result.Delta) Standing {
	next := Standing{Build: build, before: map[string]float64{}}
	for _, d := range s.Deltas {
		if insight.HasInterval(d) {
			next.before[d.Cell] = half(d)
		}
	}
	most := 0
	for setting, own := range insight.By(deltas, func(d result.Delta) result.Setting { return d.Setting }) {
		next.Settings++
		if len(own) > most {
			most, next.Deltas = len(own), insight.Headlines(own, setting)
		}
	}
	return next
}

// half is half the width of a delta's interval: in percent of the baseline, or in the metric's unit where it has no ratio.
func half(d result.Delta) float64 {
	if d.Ratio > 0 {
		return 100 * math.Abs(*d.RatioHigh-*d.RatioLow) / 2
	}
	return math.Abs(*d.DifferenceHigh-*d.DifferenceLow) / 2
}

// size is a delta with half the width of its interval: "+43% ±0.6".
func size(d result.Delta) string {
	text := words.Added(d)
	if d.Ratio > 0 {
		text = words.Percent(d.Ratio)
	}
	if !insight.HasInterval(d) {
		return text
	}
	return text + " ±" + width(d, half(d))
}

// width is half the width of an interval with the digits that matter.
func width(d result.Delta, half float64) string {
	if d.Ratio == 0 {
		return strings.TrimLeft(words.Difference(d.Unit, half), "+-")
	}
	decimals := 1
	if half >= 10 {
		decimals = 0
	}
	return fmt.Sprintf("%.*f", decimals, half)
}

// known says what is known of a delta: its verdict, or what it lacks.
func known(d result.Delta) string {
	switch {
	case !insight.HasInterval(d):
		return fmt.Sprintf("%d of %d builds", d.Blocks, d.Need)
	case d.Verdict == string(stats.Unresolved):
		return "open"
	}
	return d.Verdict
}

// title names the setting that is shown, and how many there are besides.
func (s Standing) title() string {
	first := s.Deltas[0]
	text := fmt.Sprintf("%s · %s, against %s, after build %d", words.Load(first.Setting), words.At(first.Placement), first.Baseline, s.Build)
	if s.Settings > 1 {
		text += fmt.Sprintf(" (one of %d settings)", s.Settings)
	}
	return text
}

// Line is the ranking as one line, "" before the first build is judged.
func (s Standing) Line() string {
	if len(s.Deltas) == 0 {
		return ""
	}
	var all []string
	for _, d := range s.Deltas {
		all = append(all, insight.Name(d.Network, d.Path)+" "+size(d))
	}
	return s.title() + ": " + strings.Join(all, ", ")
}

const (
	// BlockMost is how many lines a block has at most.
	BlockMost = 10
	barLeast  = 16 // columns of a bar that is drawn at all
	nameMost  = 20 // columns of a network's name
)

// Block is the ranking as lines for a terminal, each of which fits it: the setting, then a line for each network with its interval, what that
// was a build before, and its verdict. It has no more lines than most, and none before the first build is judged.
func (s Standing) Block(t ui.Terminal, most int) []string {
	most = min(most, BlockMost)
	if len(s.Deltas) == 0 || most < 3 {
		return nil
	}
	shown := s.Deltas
	if len(shown) > most-1 {
		shown = shown[:max(most-2, 1)]
	}
	room := t.Width - 1
	lines := []string{t.Paint(ui.Dim, ui.Shorten(t.Text(s.title()), room))}
	names := 0
	for _, d := range shown {
		names = max(names, min(ui.Columns(t.Text(insight.Name(d.Network, d.Path))), nameMost))
	}
	a := axisOf(shown, room-names-len(gap)-figures)
	for _, d := range shown {
		name := ui.Shorten(t.Text(insight.Name(d.Network, d.Path)), names)
		text := fmt.Sprintf("%s%s%s%-*s", name, strings.Repeat(" ", names-ui.Columns(name)), gap, figures, s.figures(t, d))
		text = ui.Shorten(t.Text(text), room)
		lines = append(lines, strings.TrimRight(text+a.bar(t, d, room-ui.Columns(text)), " "))
	}
	if left := len(s.Deltas) - len(shown); left > 0 {
		lines = append(lines, t.Paint(ui.Dim, ui.Shorten(t.Text(fmt.Sprintf("and %d more", left)), room)))
	}
	return lines
}

// figures is the room for a delta's figures.
const figures = 40

const gap = "  "

// figures are a delta's figures: its size, what its interval was a build before, and its verdict.
func (s Standing) figures(t ui.Terminal, d result.Delta) string {
	was := ""
	if before, had := s.before[d.Cell]; had && insight.HasInterval(d) {
		was = "was ±" + width(d, before)
	}
	return fmt.Sprintf("%-14s %-11s %s", t.Text(size(d)), t.Text(was), known(d))
}

// axis is where the intervals of a block are drawn, on the scale of their costs.
type axis struct {
	low, high float64
	columns   int
}

func axisOf(all []result.Delta, columns int) axis {
	a := axis{columns: columns}
	for _, d := range all {
		if insight.HasInterval(d) {
			low, high := bounds(d)
			a.low, a.high = min(a.low, low), max(a.high, high)
		}
	}
	return a
}

// bounds are the ends of an interval: logarithms of ratios, or differences.
func bounds(d result.Delta) (low, high float64) {
	if d.Ratio > 0 {
		return math.Log(*d.RatioLow), math.Log(*d.RatioHigh)
	}
	return *d.DifferenceLow, *d.DifferenceHigh
}

// bar draws an interval in the columns that there are, with a mark at no change; nothing where there are too few.
func (a axis) bar(t ui.Terminal, d result.Delta, columns int) string {
	columns = min(columns, a.columns)
	if columns < barLeast || !insight.HasInterval(d) || !(a.high > a.low) {
		return ""
	}
	line, middle, none := "━", "●", "│"
	if !t.Unicode {
		line, middle, none = "-", "*", "|"
	}
	at := func(x float64) int { return int(math.Round((x - a.low) / (a.high - a.low) * float64(columns-1))) }
	cells := slices.Repeat([]string{" "}, columns)
	cells[at(0)] = none
	low, high := bounds(d)
	for i := at(low); i <= at(high); i++ {
		cells[i] = line
	}
	cells[at((low+high)/2)] = middle
	return strings.TrimRight(strings.Join(cells, ""), " ")
}
