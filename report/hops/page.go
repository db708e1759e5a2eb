package hops

import (
	_ "embed" // the parts of the page
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"netdelta/insight/hops"
	"netdelta/internal/gather"
	"netdelta/report/page"
)

//go:embed page.tmpl
var layout string

//go:embed style.css
var style string

// Style is what a page needs that holds a Section.
//
//go:embed section.css
var Style string

// own has no script.
func own() page.Page { return page.New(layout, style+Style, "") }

// Write writes the hops of networks as one page that opens without network: the lanes, drawn to scale, and a table of each. The
// other networks are compared with the first. The error is w's.
func Write(w io.Writer, ways ...hops.Way) error {
	return own().Write(w, "the page of hops", drawing{ways})
}

// Section is the lanes and the tables as a part of another page.
func Section(ways ...hops.Way) (template.HTML, error) { return own().Part("hops", drawing{ways}) }

// drawing is what the template is filled in from.
type drawing struct{ Ways []hops.Way }

// Title names the networks.
func (d drawing) Title() string {
	names := gather.Each(d.Ways, func(w hops.Way) string { return w.Network })
	return "Where the time goes: " + strings.Join(names, ", ")
}

// Lanes is the picture.
func (d drawing) Lanes() template.HTML { return lanes(d.Ways) }

// table is one direction of one network.
type table struct {
	Title string
	// Base is the network that it is held against, "" for the first itself.
	Base string
	Rows []row
}

// row is a hop: its time in the base and here, with the difference, its bar and its interval.
type row struct {
	Name, Base, P50, P90, P99, Share, Difference, Interval string
	Bar                                                    template.HTML
}

// Conclusions say where the others differ from the first, a sentence each.
func (d drawing) Conclusions() []string {
	return gather.Each(d.Ways[min(1, len(d.Ways)):], func(w hops.Way) string { return conclusion(d.Ways[0], w) })
}

// Tables are the tables of all networks.
func (d drawing) Tables() []table {
	var all []table
	for i, w := range d.Ways {
		for _, way := range []struct {
			title       string
			base, other []hops.HopTime
		}{{"request of ", d.Ways[0].Request, w.Request}, {"response of ", d.Ways[0].Response, w.Response}} {
			t := table{Title: way.title + w.Network}
			if i == 0 {
				for _, h := range way.other {
					t.Rows = append(t.Rows, rowOf(h))
				}
			} else {
				t.Base, t.Rows = d.Ways[0].Network, comparedRows(way.base, way.other)
			}
			all = append(all, t)
		}
	}
	return all
}

func rowOf(h hops.HopTime) row {
	return row{Name: h.Name, P50: ns(h.P50), P90: ns(h.P90), P99: ns(h.P99), Share: fmt.Sprintf("%.1f%%", 100*h.Share)}
}

func comparedRows(base, other []hops.HopTime) []row {
	var rows []row
	lines, most := hops.Compare(base, other), 0.0
	for _, l := range lines {
		most = max(most, math.Abs(l.Difference))
	}
	for _, l := range lines {
		r := row{P50: "-"}
		if l.Other != nil {
			r = rowOf(*l.Other)
		}
		r.Name, r.Base, r.Difference, r.Interval = l.Name(), timeOf(l.Base), signed(l.Difference), interval(l.Low, l.High)
		r.Bar = bar(l.Difference, most)
		rows = append(rows, r)
	}
	return rows
}

// partRow is a part of the round trip in all networks: its time and its share in each.
type partRow struct {
	Name, Changes string
	Cells         []string
}

// Parts are what the round trips are made of. Networks have the same parts, whichever are empty.
func (d drawing) Parts() []partRow {
	var rows []partRow
	for i, w := range d.Ways {
		for _, p := range w.Parts() {
			at := slices.IndexFunc(rows, func(r partRow) bool { return r.Name == p.Name })
			if at < 0 {
				at = len(rows)
				rows = append(rows, partRow{Name: p.Name, Changes: changes(p), Cells: make([]string, 2*len(d.Ways))})
			}
			rows[at].Cells[2*i], rows[at].Cells[2*i+1] = ns(p.Time), fmt.Sprintf("%.1f%%", 100*p.Share)
		}
	}
	return rows
}

// Slow are the networks for whose slowest transactions it is known what was different about them.
func (d drawing) Slow() []hops.Way {
	return slices.DeleteFunc(slices.Clone(d.Ways), func(w hops.Way) bool { return w.Outliers == nil })
}

// Slowest says which transactions these are.
func (d drawing) Slowest(w hops.Way) string { return slowest(w) }

// Percent prints a share.
func (d drawing) Percent(format string, share float64) string { return fmt.Sprintf(format, 100*share) }

// BasedOn says what the figures rest on.
func (d drawing) BasedOn() []string {
	var lines []string
	for _, w := range d.Ways {
		lines = append(lines, basedOn(w)...)
	}
	return lines
}
