package hops

import (
	"bufio"
	_ "embed" // the parts of the page
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"

	"netdelta/insight/hops"
	"netdelta/report/page"
)

//go:embed page.tmpl
var layout string

//go:embed style.css
var style string

// Write writes the hops of networks as one page that opens without network: the lanes, drawn to scale, and a table of each. The
// first network is what the others are held against. The error is that of w.
func Write(w io.Writer, ways ...hops.Way) error {
	t, err := parsed()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	if err := errors.Join(t.Execute(out, drawing{ways}), out.Flush()); err != nil {
		return fmt.Errorf("write the page of hops: %w", err)
	}
	return nil
}

// Section is the lanes and the tables as a part of another page.
func Section(ways ...hops.Way) (template.HTML, error) {
	t, err := parsed()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := t.ExecuteTemplate(&b, "hops", drawing{ways}); err != nil {
		return "", fmt.Errorf("write the section of hops: %w", err)
	}
	return template.HTML(b.String()), nil
}

// parsed is the page's template.
var parsed = sync.OnceValues(func() (*template.Template, error) { return template.New("page").Parse(layout) })

// drawing is what the template is filled in from.
type drawing struct{ Ways []hops.Way }

// Title names the networks.
func (d drawing) Title() string {
	title := "Where the time goes"
	for i, w := range d.Ways {
		if i == 0 {
			title += ": " + w.Network
		} else {
			title += ", " + w.Network
		}
	}
	return title
}

// Lanes is the picture.
func (d drawing) Lanes() template.HTML { return Lanes(d.Ways) }

// Style is the page's own.
func (d drawing) Style() template.CSS { return template.CSS(style) }

// Policy is the page's content security policy: it has no script.
func (d drawing) Policy() string { return page.Policy("", style) }

// table is one direction of one network.
type table struct {
	Title string
	// Base is the network that it is held against, "" for the first itself.
	Base string
	Rows []row
}

// row is a hop: its time in the base and here, with the difference and its interval.
type row struct{ Name, Base, P50, P90, P99, Share, Difference, Interval string }

// Tables are those of all networks.
func (d drawing) Tables() []table {
	var all []table
	for i, w := range d.Ways {
		if i == 0 {
			all = append(all, table{Title: "request of " + w.Network, Rows: alone(w.Request)}, table{Title: "response of " + w.Network, Rows: alone(w.Response)})
			continue
		}
		base := d.Ways[0]
		all = append(all,
			table{"request of " + w.Network, base.Network, beside(base.Request, w.Request)},
			table{"response of " + w.Network, base.Network, beside(base.Response, w.Response)})
	}
	return all
}

func alone(list []hops.HopTime) []row {
	var rows []row
	for _, h := range list {
		rows = append(rows, rowOf(h))
	}
	return rows
}

func rowOf(h hops.HopTime) row {
	return row{Name: h.Name, P50: ns(h.P50), P90: ns(h.P90), P99: ns(h.P99), Share: fmt.Sprintf("%.1f%%", 100*h.Share)}
}

func beside(base, other []hops.HopTime) []row {
	var rows []row
	for _, l := range hops.Beside(base, other) {
		r := row{Base: of(l.Base), P50: "-"}
		switch {
		case l.Other != nil:
			r = rowOf(*l.Other)
			r.Base = of(l.Base)
		case l.Base != nil:
			r.Name = l.Base.Name
		}
		r.Difference, r.Interval = signed(l.Difference), Interval(l.Low, l.High)
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
				rows = append(rows, partRow{Name: p.Name, Changes: Changes(p), Cells: make([]string, 2*len(d.Ways))})
			}
			rows[at].Cells[2*i], rows[at].Cells[2*i+1] = ns(p.Time), fmt.Sprintf("%.1f%%", 100*p.Share)
		}
	}
	return rows
}

// slow is what was different about the slowest transactions of a network.
type slow struct {
	Says    string
	Reasons []reason
}

type reason struct {
	Says, Of, OfOthers string
	Count              int
}

// Slow are the outliers of the networks for which they are known.
func (d drawing) Slow() []slow {
	var all []slow
	for _, w := range d.Ways {
		if w.Outliers == nil {
			continue
		}
		s := slow{Says: Slowest(w)}
		for _, r := range w.Outliers.Reasons {
			s.Reasons = append(s.Reasons, reason{r.Says, fmt.Sprintf("%.0f%%", 100*r.Outliers), fmt.Sprintf("%.2g%%", 100*r.Others), r.Count})
		}
		all = append(all, s)
	}
	return all
}

// Trust says what the figures rest on.
func (d drawing) Trust() []string {
	var lines []string
	for _, w := range d.Ways {
		lines = append(lines, Trust(w)...)
	}
	return lines
}
