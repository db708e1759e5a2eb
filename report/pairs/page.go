package pairs

import (
	_ "embed" // the parts of the page
	"fmt"
	"html/template"
	"io"
	"math"

	insight "netdelta/insight/pairs"
	"netdelta/report/page"
)

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
	Network, Typical, Scale string
	Lines                   []line
	Nodes                   []nodeRow
	Findings                []string
}

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
		t.Scale = percent(math.Exp(most))
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
