package html

import (
	"fmt"
	"html/template"
	"strconv"
	"time"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
)

// Breakdown says whether anything is known of storage, clusters or daemons.
func (p *page) Breakdown() bool {
	r := p.Run
	return len(r.Splits)+len(r.Replications)+len(r.Correlations)+len(r.Services)+len(r.Clients) > 0
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
	on.titles(&d, words.Raw(c), unitName)
	on.box(&d)
	var names []label
	for _, at := range c.Points {
		role := result.RoleCell
		if insight.Name(at.Network, at.Path) == p.Baseline() {
			role = result.RoleBaseline
		}
		s := insight.Series{Name: insight.Name(at.Network, at.Path), Role: role}
		class, place := p.palette.of(s), on.place(at.Raw, at.Value)
		l := label{place.y, s.Name, class, false}
		d.marked("ds big", l, dots([]point{place}))
		names = append(names, l)
	}
	d.put("</svg>")
	d.labels(names, on.height)
	d.put("</svg>")
	return d.html()
}

// The request that the page begins with; its reader chooses another.
const (
	requestTook  = 2 * time.Millisecond
	requestCalls = 8
)

// requested is what the networks of one setting are of a request.
type requested struct {
	Load, Where string
	Rows        []requestRow
}

// requestRow is a network's, with what one call adds in nanoseconds, from which the script computes it for another request.
type requestRow struct {
	words.RequestLine
	Each, Low, High string
}

// Requests are what each network is of the request that the page begins with, nil where no round trips were measured.
func (p *page) Requests() []requested {
	each := insight.Request{Took: 1, Calls: 1}.Shares(p.Run)
	i := 0
	var all []requested
	for at, own := range insight.By(p.request().Shares(p.Run), func(s insight.RequestShare) result.Setting { return s.Delta.Setting }) {
		r := requested{Load: words.Load(at), Where: words.At(at.Placement)}
		for _, s := range own {
			row := requestRow{RequestLine: words.Request(s, p.Run.Margin), Each: exactly(each[i].Added)}
			if s.Known {
				row.Low, row.High = exactly(each[i].AddedLow), exactly(each[i].AddedHigh)
			}
			r.Rows = append(r.Rows, row)
			i++
		}
		all = append(all, r)
	}
	return all
}

// RequestTook and RequestCalls are the request that the page begins with.
func (p *page) RequestTook() string { return requestTook.String() }

// RequestCalls is the number of its calls.
func (p *page) RequestCalls() int { return requestCalls }

func (p *page) request() insight.Request {
	return insight.Request{Took: float64(requestTook), Calls: requestCalls}
}

// exactly is a number with all its digits.
func exactly(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
