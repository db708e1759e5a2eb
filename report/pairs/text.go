// Package pairs shows what was measured between all pairs of nodes: as tables, and as a heat map.
package pairs

import (
	"fmt"
	"io"
	"strings"
	"time"

	insight "netdelta/insight/pairs"
	"netdelta/report/ui"
	"netdelta/unit"
)

// Limits of what is printed: larger matrices are for the page, longer lists for the JSON.
const (
	shownNodes    = 12
	shownFailures = 5
)

// WriteText prints a report. It fails if w does.
func WriteText(w io.Writer, r insight.Report) error {
	return ui.Print(w, "the pairs", func(out ui.Text) {
		for i, n := range r.Judged {
			out.Put("%s %s in network %s, from each node (rows) to each node (columns)\n", ui.Clean(r.Workload), r.Metric, ui.Clean(n.Network))
			writeMatrix(out, r, n)
			table := ui.NewTable("node", "against the others", "95% interval", "as client", "as server")
			for _, node := range n.Nodes {
				table.Row(node.Node, percent(node.Ratio), interval(node, r.Builds()), percent(node.AsClient), percent(node.AsServer), mark(node))
			}
			out.Table(table)
			for _, line := range findings(r, n) {
				out.Put("%s\n", ui.Clean(line))
			}
			writeFailures(out, r, i)
			out.Put("\n")
		}
	})
}

func writeMatrix(out ui.Text, r insight.Report, n insight.Network) {
	if len(r.Nodes) > shownNodes {
		out.Put("  %d nodes: the matrix is in the page (--out) and in the JSON\n\n", len(r.Nodes))
		return
	}
	row := func(name string, cell func(node string) string) []any {
		cells := []any{name}
		for _, node := range r.Nodes {
			cells = append(cells, cell(node))
		}
		return cells
	}
	table := ui.NewTable(row("", func(node string) string { return node })...)
	for _, client := range r.Nodes {
		table.Row(row(client, func(server string) string { return cellOf(r, n, client, server) })...)
	}
	out.Table(table)
}

// cellOf is what the matrix says of a pair.
func cellOf(r insight.Report, n insight.Network, client, server string) string {
	for _, p := range n.Pairs {
		if p.Client != client || p.Server != server {
			continue
		}
		text := value(r, p.Value)
		if p.Low != nil && p.High != nil {
			text += fmt.Sprintf(" +-%.1f%%", 100*(*p.High / *p.Low - 1)/2)
		}
		if p.Odd {
			text += " !"
		}
		return text
	}
	return "-"
}

// value is a figure in the report's unit.
func value(r insight.Report, v float64) string {
	if r.Unit == "bit/s" {
		return unit.BitsPerSecond(v).String()
	}
	return unit.Duration(time.Duration(v))
}

func percent(ratio float64) string { return unit.Ratio(ratio).Percent() }

func interval(n insight.Node, builds int) string {
	if n.RatioLow == nil || n.RatioHigh == nil {
		return fmt.Sprintf("%d builds are too few", builds)
	}
	return fmt.Sprintf("[%s, %s]", percent(*n.RatioLow), percent(*n.RatioHigh))
}

func mark(n insight.Node) string {
	if n.Odd {
		return "odd: " + string(n.Verdict)
	}
	return ""
}

// findings says in sentences what is odd in a network, or that nothing is. Names of nodes are as the testbed gave them.
func findings(r insight.Report, n insight.Network) []string {
	var lines []string
	for _, node := range n.Nodes {
		if node.Odd {
			lines = append(lines, fmt.Sprintf("odd node: %s is %s than the others: %s %s in network %s, %s", node.Node, node.Verdict, r.Metric, percent(node.Ratio), n.Network, interval(node, r.Builds())))
		}
	}
	for _, p := range n.Pairs {
		if p.Odd {
			lines = append(lines, fmt.Sprintf("odd pair: from %s to %s %s is %s against what both nodes show elsewhere", p.Client, p.Server, r.Metric, percent(p.Ratio)))
		}
	}
	if len(lines) == 0 && n.Note == "" {
		lines = append(lines, fmt.Sprintf("no node of %d stands out in network %s", len(n.Nodes), n.Network))
	}
	if n.Note != "" {
		lines = append(lines, n.Note)
	}
	return lines
}

func writeFailures(out ui.Text, r insight.Report, network int) {
	failures := r.Networks[network].Failures
	for _, f := range failures[:min(len(failures), shownFailures)] {
		where := fmt.Sprintf("build %d", f.Build+1)
		if f.Client != "" {
			where += ", " + f.Client
		}
		if f.Server != f.Client {
			where += " to " + f.Server
		}
		out.Put("failed: %s: %s\n", ui.Clean(where), ui.Clean(strings.Join(strings.Fields(f.Why), " ")))
	}
	if more := len(failures) - shownFailures; more > 0 {
		out.Put("and %d more failed\n", more)
	}
}
