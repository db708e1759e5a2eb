package html

import (
	"fmt"
	"html/template"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
)

// Breakdown says whether anything is known of storage, clusters or daemons.
func (p *page) Breakdown() bool {
	r := p.Run
	return len(r.Splits)+len(r.Replications)+len(r.Correlations)+len(r.Services) > 0
}

// Splits are the rows of the table of latencies: load, network, total, disk, what is common to all networks, what the network adds
// with its interval, and a raw round trip. A load is named once.
func (p *page) Splits() [][]string {
	var all [][]string
	last := ""
	for _, s := range p.Run.Splits {
		load, interval, roundTrip := words.Title(s.Setting), "", ""
		if s.AddedLow != nil && s.AddedHigh != nil {
			interval = fmt.Sprintf("[%s, %s]", unit.Difference(*s.AddedLow), unit.Difference(*s.AddedHigh))
		}
		if s.RoundTrip > 0 {
			roundTrip = unit.Duration(s.RoundTrip)
		}
		row := []string{
			load, insight.Name(s.Network, s.Path), unit.Duration(s.Total), unit.Duration(s.Disk), unit.Duration(s.Common), unit.Difference(s.Added), interval, roundTrip,
		}
		if load == last {
			row[0] = ""
		}
		last = load
		all = append(all, row)
	}
	return all
}

// correlationHeight is the height of a chart of networks as dots.
const correlationHeight = 220

// correlation is a chart of an application against a raw figure.
type correlation struct {
	Title, Caption string
	Chart          template.HTML
}

// Correlations draws how applications go with raw figures: a dot for each network.
func (p *page) Correlations() []correlation {
	var all []correlation
	for _, c := range p.Run.Correlations {
		var x, y []float64
		for _, at := range c.Points {
			x, y = append(x, at.Raw), append(y, at.Value)
		}
		across, ok := spanOf(x, true)
		up, fine := spanOf(y, true)
		if !ok || !fine {
			continue
		}
		title := words.Title(c.Setting) + " against the " + words.Raw(c)
		all = append(all, correlation{
			Title: title, Chart: p.dots(c, title, plane{x: across.room(0.08), y: up.room(0.08), height: correlationHeight}),
			Caption: "Correlation " + words.Correlation(c) + ".",
		})
	}
	return all
}

// dots draws the networks of a correlation.
func (p *page) dots(c result.Correlation, title string, on plane) template.HTML {
	var d drawing
	unitName := words.Unit(result.Delta{Setting: c.Setting, Unit: c.Unit})
	on.open(&d, "networks", c.Unit, title, "A dot for each network: its raw figure to the right, what the application got done upwards, both logarithmic.")
	on.grid(&d, on.y.logTicks(4), func(v float64) string { return valueLabel(c.Unit, v) })
	on.uprights(&d, on.x.logTicks(6), func(v float64) string { return valueLabel(c.RawUnit, v) })
	on.box(&d)
	var names []label
	for _, at := range c.Points {
		role := result.RoleCell
		if insight.Name(at.Network, at.Path) == p.Baseline() {
			role = result.RoleBaseline
		}
		s := insight.Series{Name: insight.Name(at.Network, at.Path), Role: role}
		class, place := p.palette.of(s), on.place(at.Raw, at.Value)
		d.put(`<path class="ds big %s" d="%s"/>`, class, dots([]point{place}))
		names = append(names, label{place.y, s.Name, "lab " + class})
	}
	d.put("</svg>")
	d.labels(names, on.height)
	d.text(`class="al" x="0" y="-6"`, unitName)
	d.put("</svg>")
	return d.html()
}
