package serve

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"netdelta/report/ui"
	"netdelta/report/words"
)

// Sizes of a course's picture, in pixels.
const (
	courseWidth  = 900
	courseLeast  = 120 // high
	courseMargin = 150 // for the names at the end of the lines
	lineHeight   = 14
)

// course is how the changes of one study's networks went from run to run, in the setting that most of its runs have.
type course struct {
	Study, Setting string
	Runs           int
	// First and Last are when the first and the last of the runs began.
	First, Last string
	names       []string // of the runs, the oldest first
	lines       []courseLine
}

// courseLine is a network: its change in each run, the oldest first; 0 where it was not measured.
type courseLine struct {
	network string
	ratios  []float64
}

// courses returns one for each study with two runs or more, by name.
func courses(entries []entry) []course {
	byStudy := map[string][]entry{}
	for _, e := range slices.Backward(entries) { // the oldest first
		if len(e.figures) > 0 {
			byStudy[e.Study+" on "+e.Testbed] = append(byStudy[e.Study+" on "+e.Testbed], e)
		}
	}
	var all []course
	for _, study := range slices.Sorted(maps.Keys(byStudy)) {
		if c := courseOf(study, byStudy[study]); len(c.lines) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// courseOf takes the setting that most runs have, by name among equals.
func courseOf(study string, runs []entry) course {
	count := map[string]int{}
	for _, e := range runs {
		seen := map[string]bool{}
		for key := range e.figures {
			if !seen[key.setting] {
				seen[key.setting] = true
				count[key.setting]++
			}
		}
	}
	setting := slices.MaxFunc(slices.Collect(maps.Keys(count)), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(b, a))
	})
	c := course{Study: study, Setting: setting, Runs: count[setting]}
	networks := map[string][]float64{}
	at := 0
	for _, e := range runs {
		has := false
		for key, ratio := range e.figures {
			if key.setting == setting {
				has = true
				if networks[key.network] == nil {
					networks[key.network] = make([]float64, c.Runs)
				}
				networks[key.network][at] = ratio
			}
		}
		if has {
			c.names = append(c.names, e.Name)
			c.First, c.Last = cmp.Or(c.First, e.When()), e.When()
			at++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(networks)) {
		if len(slices.DeleteFunc(slices.Clone(networks[name]), func(r float64) bool { return r == 0 })) < 2 {
			continue // a point is no course
		}
		c.lines = append(c.lines, courseLine{name, networks[name]})
	}
	return c
}

// draw draws the lines on a logarithmic axis, with each network's name and last change at its end.
func (c course) draw() template.HTML {
	low, high := 0.0, 0.0
	for _, l := range c.lines {
		for _, r := range l.ratios {
			if r > 0 {
				low, high = min(low, math.Log(r)), max(high, math.Log(r))
			}
		}
	}
	height := float64(max(courseLeast, lineHeight*(len(c.lines)+1)))
	x := func(i int) float64 { return 8 + float64(i)*(courseWidth-courseMargin-16)/float64(c.Runs-1) }
	y := func(ratio float64) float64 {
		return lineHeight/2 + (height-lineHeight)*(high-math.Log(ratio))/max(high-low, 0.01)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %.0f" role="group" aria-label="%s"><line class="none" x1="0" x2="%d" y1="%.1f" y2="%.1f"/>`,
		courseWidth, height, template.HTMLEscapeString("Changes of "+c.Study+" over time"), courseWidth-courseMargin, y(1), y(1))
	labels := []label{{at: y(1), Text: "0%", Colour: "b"}}
	for k, l := range c.lines {
		var points, dots []string
		for i, r := range l.ratios {
			if r > 0 {
				says := template.HTMLEscapeString(ui.Clean(c.names[i] + ": " + l.network + " " + words.Percent(r)))
				points = append(points, fmt.Sprintf("%.1f,%.1f", x(i), y(r)))
				dots = append(dots, fmt.Sprintf(`<a href="/run/%s" aria-label='%s' tabindex="-1"><circle class="dot k%d" cx="%.1f" cy="%.1f" r="2.5"><title>%[2]s</title></circle></a>`,
					url.PathEscape(c.names[i]), says, k%colours, x(i), y(r)))
			}
		}
		fmt.Fprintf(&b, `<polyline class="line k%d" points="%s"/>%s`, k%colours, strings.Join(points, " "), strings.Join(dots, ""))
		labels = append(labels, l.label(k, y))
	}
	spread(labels, height)
	for _, l := range labels {
		fmt.Fprintf(&b, `<text class="k%s" x="%d" y="%.1f">%s</text>`, l.Colour, courseWidth-courseMargin+6, l.at+4, template.HTMLEscapeString(l.Text))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// colours is how many there are.
const colours = 8

// label stands at the end of a line.
type label struct {
	at           float64
	Text, Colour string
}

// label names the line and its last change, in the colour of its number.
func (l courseLine) label(number int, y func(ratio float64) float64) label {
	last := 1.0
	for _, r := range l.ratios {
		if r > 0 {
			last = r
		}
	}
	return label{y(last), ui.Clean(l.network + " " + words.Percent(last)), strconv.Itoa(number % colours)}
}

// Key lists the labels, for screens that have no room at the ends of the lines.
func (c course) Key() []label {
	var all []label
	for k, l := range c.lines {
		all = append(all, l.label(k, func(float64) float64 { return 0 }))
	}
	return all
}

// spread moves labels apart: down from the highest, and up again from the bottom.
func spread(labels []label, height float64) {
	slices.SortStableFunc(labels, func(a, b label) int { return cmp.Compare(a.at, b.at) })
	for i := 1; i < len(labels); i++ {
		labels[i].at = max(labels[i].at, labels[i-1].at+lineHeight)
	}
	bottom := height - lineHeight/2
	for i := range slices.Backward(labels) {
		labels[i].at = min(labels[i].at, bottom)
		bottom = labels[i].at - lineHeight
	}
}
