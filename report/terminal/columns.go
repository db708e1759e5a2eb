package terminal

import (
	"fmt"
	"strings"

	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
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
	switch t.deltas[row].Verdict {
	case "slower":
		return ui.Red
	case "faster":
		return ui.Green
	case "same":
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

// percent prints a ratio as a change with so many decimals as its interval bears.
func percent(ratio float64, d result.Delta) string {
	decimals := words.Decimals(ratio, d)
	text := fmt.Sprintf("%+.*f", decimals, 100*(ratio-1))
	if strings.Trim(text, "+-0.") == "" {
		return strings.TrimLeft(text, "+-")
	}
	return text
}

func (p *page) costColumn(t table) column {
	return t.column("vs "+ui.Shorten(p.terminal.Text(t.deltas[0].Baseline), nameMost/2), true, func(d result.Delta) string {
		if d.Ratio == 0 {
			return words.Added(d)
		}
		return percent(d.Ratio, d) + "%"
	})
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
		switch {
		case !insight.HasInterval(d):
			return fmt.Sprintf("%d of %d builds", d.Blocks, d.Need)
		case d.Ratio == 0:
			return fmt.Sprintf("[%+.2f, %+.2f]", 100**d.DifferenceLow, 100**d.DifferenceHigh)
		}
		return "[" + percent(*d.RatioLow, d) + ", " + percent(*d.RatioHigh, d) + "]"
	})
}

// addedColumn is what the change comes to in the metric's unit.
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

// Metrics that are shown beside the headline where there is room.
const (
	tailMetric   = "p99"
	cpuMetric    = "cpu"
	loadedMetric = "p50_at_50" // in place of the tail where rates were searched for
)

// besideColumn is the change of another metric than the headline, in brackets where it is unresolved.
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
		text := percent(other.Ratio, other) + "%"
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
