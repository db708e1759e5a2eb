package flame

import (
	"bufio"
	_ "embed" // the parts of the page
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"sync"
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

// Write draws the profile of one network or, as the difference, of two: the first is what the second is held against. The
// error is that of w, or of a number of sides that can't be drawn.
func Write(w io.Writer, sides ...Side) error {
	if len(sides) == 0 || len(sides) > 2 {
		return fmt.Errorf("draw the flame graph of %d profiles: it takes one or two", len(sides))
	}
	t, err := parsed()
	if err != nil {
		return err
	}
	data, err := treeOf(sides).pack()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	if err := errors.Join(t.Execute(out, drawing{Sides: sides, data: data}), out.Flush()); err != nil {
		return fmt.Errorf("write the flame graph of %s: %w", ui.Clean(sides[0].Network), err)
	}
	return nil
}

// parsed is the page's template.
var parsed = sync.OnceValues(func() (*template.Template, error) { return template.New("flame").Parse(layout) })

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

// Style is the page's own.
func (p drawing) Style() template.CSS { return template.CSS(style) }

// Script is what the page draws with.
func (p drawing) Script() template.JS { return template.JS(script) }

// Policy is the page's content security policy.
func (p drawing) Policy() string { return page.Policy(script, style) }

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
}

// rows is how long the table is.
const rows = 25

// Rows are the functions that took the most time of their own or, of two networks, those that differ the most.
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
		}
		if whole(r.change) != 0 {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b row) int {
		if d := math.Abs(b.change) - math.Abs(a.change); d != 0 {
			return int(math.Copysign(1, d))
		}
		if a.Function < b.Function {
			return -1
		}
		return 1
	})
	return list[:min(len(list), rows)]
}

// duration prints a time in nanoseconds, scaled.
func duration(nanoseconds float64) string { return unit.Duration(whole(nanoseconds)) }

// signed prints a difference of times in nanoseconds, scaled.
func signed(nanoseconds float64) string { return unit.Difference(whole(nanoseconds)) }

func whole(nanoseconds float64) time.Duration { return time.Duration(math.Round(nanoseconds)) }
