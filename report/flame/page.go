// Package flame draws where the processors' time went: a flame graph of one network, or of two with their difference, as one
// page that opens without network and is searched and zoomed into.
package flame

import (
	"cmp"
	_ "embed" // the parts of the page
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"time"

	"netdelta/probe/flame"
	"netdelta/report/page"
	"netdelta/report/ui"
	"netdelta/unit"
)

//go:embed page.tmpl
var layout string

//go:embed style.css
var style string

//go:embed script.js
var script string

func own() page.Page { return page.New(layout, style, script) }

// Write draws the profile of one network or, as the difference, of two: the second is compared with the first. It
// fails if w does, or where there are not one or two sides.
func Write(w io.Writer, sides ...Side) error {
	if len(sides) == 0 || len(sides) > 2 {
		return fmt.Errorf("draw the flame graph of %d profiles: it takes one or two", len(sides))
	}
	data, err := treeOf(sides).pack()
	if err != nil {
		return err
	}
	return own().Write(w, "the flame graph of "+ui.Clean(sides[0].Network), drawing{Sides: sides, data: data})
}

// drawing is what the template is filled in from.
type drawing struct {
	Sides []Side
	data  []byte
}

// Title names the networks.
func (p drawing) Title() string {
	if len(p.Sides) == 2 {
		return p.Sides[1].Network + " against " + p.Sides[0].Network
	}
	return p.Sides[0].Network
}

// Last is the network that the page is about: the second, where there are two.
func (p drawing) Last() Side { return p.Sides[len(p.Sides)-1] }

// Data is the tree, for the script.
func (p drawing) Data() template.JS { return template.JS(p.data) }

// tick is the time for one unit that one tick stands for.
func (s Side) tick() float64 { return s.per(float64(s.Profile.Period)) }

// Idle is the share of the processors' time in which there was nothing to do.
func (s Side) Idle() string {
	total := s.Profile.Total()
	if total == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.0f%%", 100*float64(s.Profile.Idle())/float64(total))
}

// Busy is the processors' time for one unit, without idle time and other programs.
func (s Side) Busy() string { return duration(s.per(float64(s.Profile.Busy()))) }

// Seen says what the profile rests on.
func (s Side) Seen() string {
	ticks := int64(0)
	for _, sample := range s.Profile.Samples {
		ticks += sample.Ticks
	}
	text := fmt.Sprintf("%d ticks of %s in %s on %d processors", ticks, s.Profile.Event, s.Profile.Duration.Round(time.Millisecond), s.Profile.Processors)
	if s.Profile.Lost > 0 {
		text += fmt.Sprintf("; %d more were lost", s.Profile.Lost)
	}
	return text
}

// row is a function of the table.
type row struct {
	Function string
	Kernel   bool
	Times    []string // each side's own time in the function, for one unit
	Delta    string   // between two sides
	change   float64
	chance   float64 // how far two sides may differ by the number of ticks alone
}

// rows is how long the table is.
const rows = 25

// sure is how many standard errors of the ticks counted two sides of a function must differ by.
const sure = 3

// Rows are the functions that took the most time of their own or, of two networks, those that differ the most, and by more than chance:
// a tick more or less in one of hundreds of functions says nothing.
func (p drawing) Rows() []row {
	times := map[flame.Frame][2]float64{}
	for i, s := range p.Sides {
		for _, u := range s.Profile.Functions() {
			t := times[u.Frame]
			t[i] = s.per(float64(u.Own))
			times[u.Frame] = t
		}
	}
	var list []row
	for f, t := range times {
		r := row{Function: f.Function, Kernel: f.Kernel, change: t[0]}
		for i := range p.Sides {
			r.Times = append(r.Times, duration(t[i]))
		}
		if len(p.Sides) == 2 {
			r.change = t[1] - t[0]
			r.Delta = signed(r.change)
			r.chance = sure * math.Sqrt(t[0]*p.Sides[0].tick()+t[1]*p.Sides[1].tick())
		}
		if whole(r.change) != 0 && math.Abs(r.change) >= r.chance {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b row) int {
		return cmp.Or(cmp.Compare(math.Abs(b.change), math.Abs(a.change)), cmp.Compare(a.Function, b.Function))
	})
	return list[:min(len(list), rows)]
}

// NoneDiffers stands in place of a table without rows.
func (drawing) NoneDiffers() string { return noneDiffers }

// NoneDiffers stands in place of a list without functions.
func (Summary) NoneDiffers() string { return noneDiffers }

const noneDiffers = "No single function differs by more than chance: profile for longer."

// duration prints a time in nanoseconds, scaled.
func duration(nanoseconds float64) string { return unit.Duration(whole(nanoseconds)) }

// signed prints a difference of times in nanoseconds, scaled.
func signed(nanoseconds float64) string { return unit.Difference(whole(nanoseconds)) }

func whole(nanoseconds float64) time.Duration { return time.Duration(math.Round(nanoseconds)) }

// Summary is what the page of a run says of a flame graph, which is a page of its own.
type Summary struct {
	// Page is the file of the graph, as the run's page links to it.
	Page     string   `json:"page"`
	Networks []string `json:"networks"`
	Per      string   `json:"per"`
	// Busy is the processor time of each network for one unit.
	Busy      []string   `json:"busy"`
	Functions []Function `json:"functions"`
}

// Function is one that differs between the networks, in its own time for one unit.
type Function struct {
	Name       string   `json:"name"`
	Kernel     bool     `json:"kernel"`
	Times      []string `json:"times"`
	Difference string   `json:"difference,omitempty"`
}

// summaryMost is how many functions a summary has.
const summaryMost = 10

// Summarise sums up the graph of networks: the functions that differ most, the largest difference first.
func Summarise(page string, sides ...Side) Summary {
	d := drawing{Sides: sides}
	s := Summary{Page: page, Per: d.Last().Per.Name}
	for _, side := range sides {
		s.Networks, s.Busy = append(s.Networks, side.Network), append(s.Busy, side.Busy())
	}
	rows := d.Rows()
	for _, r := range rows[:min(len(rows), summaryMost)] {
		s.Functions = append(s.Functions, Function{Name: r.Function, Kernel: r.Kernel, Times: r.Times, Difference: r.Delta})
	}
	return s
}

// WriteText prints what the page says in words: what each network took of the processors, and the functions of the page's
// table. The error is w's.
func WriteText(w io.Writer, sides ...Side) error {
	return ui.Print(w, "the profile", func(out ui.Text) {
		d := drawing{Sides: sides}
		out.Put("Processor time for each %s\n\n", d.Last().Per.Name)
		table := ui.NewFigures("network", "time", "idle")
		head := []any{"function (its own time)"}
		for _, s := range sides {
			table.Row(s.Network, s.Busy(), s.Idle())
			head = append(head, s.Network)
		}
		out.Table(table)
		for _, s := range sides {
			out.Put("%s: %s\n", ui.Clean(s.Network), s.Seen())
		}
		if len(sides) == 2 {
			head = append(head, "difference")
		}
		table = ui.NewFigures(head...)
		list := d.Rows()
		if len(list) == 0 {
			out.Put("\n%s\n", d.NoneDiffers())
			return
		}
		for _, r := range list {
			row := []any{r.Function}
			for _, t := range r.Times {
				row = append(row, t)
			}
			if r.Delta != "" {
				row = append(row, r.Delta)
			}
			table.Row(row...)
		}
		out.Put("\n%s", table)
	})
}
