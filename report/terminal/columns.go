package terminal

import (
	"fmt"
	"math"
	"strings"

	"netdelta/insight"
	"netdelta/network"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
)

// nameMost is the widest name that is shown whole.
const nameMost = 24

// isNull says whether a row is the baseline against itself.
func (t table) isNull(row int) bool { return t.null && row == 0 }

// style is the colour of a row's verdict.
func (t table) style(row int) ui.Style {
	if t.isNull(row) {
		return ui.Dim
	}
	return verdictStyle(t.deltas[row].Verdict)
}

// verdictStyle is the colour of a verdict on a delta or a change.
func verdictStyle(verdict string) ui.Style {
	switch stats.Verdict(verdict) {
	case stats.Slower, stats.Regressed:
		return ui.Red
	case stats.Faster, stats.Improved:
		return ui.Green
	case stats.Same:
		return ui.Blue
	}
	return ui.Yellow
}

// column makes a column of a text for each row.
func (t table) column(title string, right bool, text func(d result.Delta) string) column {
	c := column{title: title, right: right}
	for i, d := range t.deltas {
		style := ui.Plain
		if t.isNull(i) {
			style = ui.Dim
		}
		c.cells = append(c.cells, piece{text(d), style})
	}
	return c
}

func (p *page) nameColumn(t table) column {
	return t.column("", false, func(d result.Delta) string {
		return ui.Shorten(p.terminal.Text(insight.Name(d.Network, d.Path)), nameMost)
	})
}

func (t table) costColumn(title string) column {
	return t.column(title, true, func(d result.Delta) string {
		if d.Ratio == 0 {
			return words.Added(d)
		}
		return words.Change(d.Ratio, d) + "%"
	})
}

// against is the title of a column of costs.
func (p *page) against(baseline string) string {
	return "vs " + ui.Shorten(p.terminal.Text(baseline), nameMost/2)
}

func (t table) intervalColumn() column {
	title := "interval"
	switch {
	case t.exact:
		title = "range over seeds"
	case t.confidence > 0:
		title = fmt.Sprintf("%.4g%% interval", 100*t.confidence)
	}
	return t.column(title, true, func(d result.Delta) string {
		if !insight.HasInterval(d) {
			return fmt.Sprintf("%d of %d builds", d.Blocks, d.Need)
		}
		return words.Interval(d)
	})
}

// addedColumn is the change in the metric's unit.
func (t table) addedColumn() column {
	if t.deltas[0].Ratio == 0 {
		return column{}
	}
	title := "added"
	if t.deltas[0].Better == "higher" {
		title = "change"
	}
	return t.column(title, true, words.Added)
}

func (t table) valueColumn() column {
	return t.column(t.deltas[0].Metric, true, func(d result.Delta) string { return words.Value(words.Unit(d), d.Value) })
}

// Metrics that are shown next to the headline where there is room.
const (
	tailMetric   = "p99"
	cpuMetric    = "cpu"
	loadedMetric = "p50_at_50" // in place of the tail where rates were searched for
)

// secondColumn is the change of another metric than the headline, in brackets where it is unresolved.
func (t table) secondColumn(metric string) column {
	others := map[string]result.Delta{}
	for _, d := range t.all {
		if d.Metric == metric && !d.Headline {
			others[d.Cell] = d
		}
	}
	found := false
	c := t.column(metric, true, func(d result.Delta) string {
		other, ok := others[d.Cell]
		if !ok {
			return ""
		}
		found = true
		text := words.Change(other.Ratio, other) + "%"
		if other.Verdict == "unresolved" {
			return "(" + text + ")"
		}
		return text + " "
	})
	if !found {
		return column{}
	}
	return c
}

// Widths of the lists of products next to networks: at most, and where there is little room.
const (
	usersMost  = 34
	usersLeast = 22
)

// usersColumn names the products of which networks have the datapath. There is none in a table without any.
func (p *page) usersColumn(t table, most int) column {
	users, found := network.Users(), false
	c := t.column("used by", false, func(d result.Delta) string {
		names := users[d.Network]
		found = found || len(names) > 0 && d.Network != d.Baseline
		return wholeNames(names, most)
	})
	if !found {
		return column{}
	}
	for i := range c.cells {
		c.cells[i].style = ui.Dim
	}
	return c
}

// wholeNames joins as many names as fit; of the first as much as fits is shown.
func wholeNames(names []string, columns int) string {
	all := strings.Join(names, ", ")
	if ui.Columns(all) <= columns {
		return all
	}
	for n := len(names) - 1; n > 0; n-- {
		if kept := strings.Join(names[:n], ", "); ui.Columns(kept) < columns {
			return kept + "…"
		}
	}
	return ui.Shorten(all, columns)
}

// unseenLegend explains the verdict "~".
const unseenLegend = "~: no change seen; in brackets the smallest that would have been."

// unseen is the smallest change that would have been seen where none was: half the interval, or the noise floor where that is larger. It
// is 0 where a change was seen, or where too little is known.
func unseen(d result.Delta) float64 {
	if d.Verdict != string(stats.Unresolved) || d.RatioLow == nil || d.RatioHigh == nil || *d.RatioLow > 1 || *d.RatioHigh < 1 || *d.RatioLow <= 0 {
		return 0
	}
	least := math.Sqrt(*d.RatioHigh / *d.RatioLow) - 1
	if d.Floor != nil {
		least = max(least, *d.Floor)
	}
	return least
}

// withUnseen is a column of verdicts in which "~" stands where no change was seen, with the smallest that would have been.
func (t table) withUnseen(c column) column {
	for i, d := range t.deltas {
		if least := unseen(d); least > 0 && !t.isNull(i) {
			c.cells[i].text = "~ (" + strings.TrimPrefix(words.Percent(1+least), "+") + ")"
		}
	}
	return c
}

func (t table) verdictColumn() column {
	c := t.column("verdict", false, func(d result.Delta) string { return d.Verdict })
	for i := range c.cells {
		c.cells[i].style = t.style(i)
		if t.isNull(i) {
			c.cells[i].text = "null check"
			if v := t.deltas[i].Verdict; v == "slower" || v == "faster" {
				c.cells[i] = piece{"null failed", ui.Yellow}
			}
		}
	}
	return c
}
