package serve

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"netdelta/report/page"
	"netdelta/report/ui"
	"netdelta/report/words"
)

// Sizes of a course's picture, in pixels.
const (
	courseLeast = 140  // high
	courseWide  = 1000 // units of the width, which is as wide as there is room
	lineHeight  = 14
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

// scale is the logarithmic axis of a course: its range with no change in it, and its height.
type scale struct{ low, high, height float64 }

func (c course) scale() scale {
	s := scale{height: float64(max(courseLeast, lineHeight*(len(c.lines)+1)))}
	for _, l := range c.lines {
		for _, r := range l.ratios {
			if r > 0 {
				s.low, s.high = min(s.low, math.Log(r)), max(s.high, math.Log(r))
			}
		}
	}
	return s
}

// y is where a ratio stands.
func (s scale) y(ratio float64) float64 {
	return lineHeight/2 + (s.height-lineHeight)*(s.high-math.Log(ratio))/max(s.high-s.low, 0.01)
}

// ticks are round changes as ratios, far enough from each other for their values, and no change is always among them.
func (s scale) ticks() []float64 {
	const most = 6
	all := []float64{1}
	for _, x := range page.Ticks(math.Expm1(s.low), math.Expm1(s.high), most) {
		if !slices.ContainsFunc(all, func(r float64) bool { return math.Abs(s.y(r)-s.y(1+x)) < lineHeight }) {
			all = append(all, 1+x)
		}
	}
	return all
}

// draw draws the lines on a logarithmic axis: its values on the left, and each network's name and last change at its line's end.
func (c course) draw() template.HTML {
	s := c.scale()
	x := func(i int) float64 { return 8 + float64(i)*(courseWide-16)/float64(c.Runs-1) }
	var axis, plot, names strings.Builder
	for _, r := range s.ticks() {
		text := "0%"
		if r != 1 {
			text = fmt.Sprintf("%+.4g%%", 100*(r-1))
		}
		fmt.Fprintf(&axis, `<text class="value" x="100%%" y="%.1f" text-anchor="end">%s</text>`, s.y(r)+4, text)
		fmt.Fprintf(&plot, `<line class="%s" x2="%d" y1="%.1f" y2="%.1f"/>`, map[bool]string{true: "none", false: "tick"}[r == 1], courseWide, s.y(r), s.y(r))
	}
	var labels []label
	for k, l := range c.lines {
		var points, dots []string
		for i, r := range l.ratios {
			if r > 0 {
				says := template.HTMLEscapeString(ui.Clean(c.names[i] + ": " + l.network + " " + words.Percent(r)))
				points = append(points, fmt.Sprintf("%.1f,%.1f", x(i), s.y(r)))
				dots = append(dots, fmt.Sprintf(`<a href='%s' aria-label='%s' tabindex="-1"><path class="dot k%d" d="M%.1f %.1fh0"><title>%[2]s</title></path></a>`,
					address(c.names[i]), says, k%colours, x(i), s.y(r)))
			}
		}
		fmt.Fprintf(&plot, `<polyline class="line k%d" points="%s"/>%s`, k%colours, strings.Join(points, " "), strings.Join(dots, ""))
		labels = append(labels, l.label(k, s.y))
	}
	spread(labels, s.height)
	for _, l := range labels {
		fmt.Fprintf(&names, `<text class="k%s" x="6" y="%.1f">%s</text>`, l.Colour, l.at+4, template.HTMLEscapeString(l.Text))
	}
	high := fmt.Sprintf(`height="%.0f"`, s.height)
	return template.HTML(fmt.Sprintf(`<div class="course"><svg class="axis" %s aria-hidden="true">%s</svg>`, high, axis.String()) +
		fmt.Sprintf(`<svg class="plot" viewBox="0 0 %d %.0f" %s preserveAspectRatio="none" role="group" aria-label='%s'>%s</svg>`,
			courseWide, s.height, high, template.HTMLEscapeString("Changes of "+c.Study+" over time"), plot.String()) +
		fmt.Sprintf(`<svg class="names" %s aria-hidden="true">%s</svg><p class="times"><span>%s</span><span>%s</span></p></div>`,
			high, names.String(), c.First, c.Last))
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
