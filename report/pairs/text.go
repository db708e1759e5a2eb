// Package pairs shows what was measured between all pairs of nodes: as tables, and as a heat map.
package pairs

import (
	_ "embed" // the parts of the page
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"time"

	insight "netdelta/insight/pairs"
	"netdelta/report/page"
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

//go:embed page.tmpl
var layout string

//go:embed frame.css
var frame string

//go:embed map.css
var heat string

// own has no script.
func own() page.Page { return page.New(layout, frame+heat, "") }

// Write writes a report as one page that opens without network: a heat map and a table of nodes for each network. It
// fails if w does.
func Write(w io.Writer, r insight.Report) error {
	return own().Write(w, "the page of pairs", drawing{r})
}

// Part is what the report of a run has of its pairs: a style, and a heat map and a table of nodes for each network.
func Part(r insight.Report) (css string, body template.HTML, err error) {
	body, err = own().Part("networks", drawing{r})
	// The page's other tables have classes of the same names.
	return ".part {\n--worse: light-dark(#d9591c, #e0682e);\n--better: light-dark(#2a78b8, #4a94d0);\n" + heat + "}\n", body, err
}

// drawing is what the template is filled in from.
type drawing struct{ insight.Report }

// square is one pair in the heat map.
type square struct {
	// Class is the colour: h0 is as typical, h1 to h5 are worse, b1 to b5 better; "none" is no figure.
	Class string
	Text  string
	Title string
	Odd   bool
}

// line is a row of the heat map.
type line struct {
	Client  string
	Squares []square
}

// table is one network of the page.
type table struct {
	Network, Typical string
	// Keys are the colours of the map, from the best to the worst.
	Keys     []key
	Lines    []line
	Nodes    []nodeRow
	Findings []string
}

// key is a colour with how far from a typical pair it stands for.
type key struct{ Class, Text string }

type nodeRow struct{ Node, Ratio, Interval, AsClient, AsServer, Mark string }

// scaleLeast is what the darkest colour stands for at least, as a log ratio: less is no matter.
const scaleLeast = 0.1

// Tables of all networks.
func (d drawing) Tables() []table {
	var all []table
	for _, n := range d.Judged {
		t := table{Network: n.Network, Typical: value(d.Report, n.Typical), Findings: findings(d.Report, n)}
		most := scaleLeast
		pairs := map[[2]string]insight.Pair{}
		for _, p := range n.Pairs {
			most = max(most, math.Abs(math.Log(p.Value/n.Typical)))
			pairs[[2]string{p.Client, p.Server}] = p
		}
		t.Keys = keys(most, d.Better)
		for _, client := range d.Nodes {
			l := line{Client: client}
			for _, server := range d.Nodes {
				p, found := pairs[[2]string{client, server}]
				l.Squares = append(l.Squares, d.square(n, p, found, most))
			}
			t.Lines = append(t.Lines, l)
		}
		for _, node := range n.Nodes {
			t.Nodes = append(t.Nodes, nodeRow{node.Node, percent(node.Ratio), interval(node, d.Builds()), percent(node.AsClient), percent(node.AsServer), mark(node)})
		}
		all = append(all, t)
	}
	return all
}

// shades is how many colours there are in either direction.
const shades = 5

// keys are the colours of a map whose darkest one stands for most, a log ratio.
func keys(most float64, better string) []key {
	var all []key
	for shade := -shades; shade <= shades; shade++ {
		k := key{Class: fmt.Sprintf("b%d", -shade), Text: "typical"}
		if shade >= 0 {
			k.Class = fmt.Sprintf("h%d", shade)
		}
		if shade != 0 {
			away := most * float64(shade) / shades // worse to the right
			if better != "lower" {
				away = -away
			}
			k.Text = percent(math.Exp(away))
		}
		all = append(all, k)
	}
	return all
}

func (d drawing) square(n insight.Network, p insight.Pair, found bool, most float64) square {
	if !found {
		return square{Class: "none"}
	}
	away := math.Log(p.Value / n.Typical)
	worse := away > 0 == (d.Better == "lower")
	shade := int(math.Round(math.Abs(away) / most * shades))
	s := square{Class: "h0", Text: value(d.Report, p.Value), Odd: p.Odd}
	if shade > 0 {
		letter := "b"
		if worse {
			letter = "h"
		}
		s.Class = fmt.Sprintf("%s%d", letter, shade)
	}
	s.Title = fmt.Sprintf("%s to %s: %s, %s against a typical pair, %d builds", p.Client, p.Server, s.Text, percent(p.Value/n.Typical), p.Builds)
	return s
}
