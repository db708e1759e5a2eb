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

// Services are the daemons that served, with what they took.
func (p *page) Services() string { return words.Services(p.Run.Services) }

// SplitMeans says what the parts of a latency are.
func (p *page) SplitMeans() string { return words.SplitParts() }

// splitRow is where the latency of a cell goes.
type splitRow struct{ Load, Network, Total, Disk, Common, Added, Interval, RoundTrip string }

// Splits are the rows of the table of latencies; a load is named once.
func (p *page) Splits() []splitRow {
	var all []splitRow
	last := ""
	for _, s := range p.Run.Splits {
		row := splitRow{
			Load:    inWords(s.Workload, s.Params, s.Placement),
			Network: insight.Name(s.Network, s.Path), Total: unit.Duration(s.Total), Disk: unit.Duration(s.Disk),
			Common: unit.Duration(s.Common), Added: unit.Difference(s.Added),
		}
		if s.AddedLow != nil && s.AddedHigh != nil {
			row.Interval = fmt.Sprintf("[%s, %s]", unit.Difference(*s.AddedLow), unit.Difference(*s.AddedHigh))
		}
		if s.RoundTrip > 0 {
			row.RoundTrip = unit.Duration(s.RoundTrip)
		}
		if row.Load == last {
			row.Load = ""
		} else {
			last = row.Load
		}
		all = append(all, row)
	}
	return all
}

// inWords names a setting with its placement.
func inWords(workload string, params result.Params, at result.Placement) string {
	return words.Load(result.Setting{Workload: workload, Params: params, Placement: at}) + ", " + words.At(at)
}

// Replications are what clusters measured of themselves.
func (p *page) Replications() []fact {
	var all []fact
	for _, r := range p.Run.Replications {
		all = append(all, fact{insight.Name(r.Network, r.Path) + ", " + inWords(r.Workload, r.Params, r.Placement), words.Replication(r)})
	}
	return all
}

// correlationHeight is that of a chart of networks as dots.
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
		title := inWords(c.Workload, c.Params, c.Placement) + " against the " + words.Raw(c)
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
	unitName := words.Unit(result.Delta{Workload: c.Workload, Unit: c.Unit})
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
