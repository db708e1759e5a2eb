package html

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
)

// place is a placement with the ways of its networks.
type place struct {
	Placement result.Placement
	Title     string
	Ways      []wayCard
}

// wayCard is a network's way with what it costs.
type wayCard struct {
	insight.Way
	Drawing template.HTML
	Costs   []cost
	// MoreCosts counts the settings whose cost is not listed.
	MoreCosts int
	// Proof says how far the way is proved, in the class that it deserves.
	Proof, ProofClass string
}

// cost is what a network costs in one setting.
type cost struct{ Load, Metric, Change, Difference, Class string }

// costsMost is how many settings are listed with a way.
const costsMost = 4

// ways sorts the networks' ways by placement and adds what each network costs there.
func (p *page) ways(all []insight.Way) []place {
	type on struct {
		name      string
		placement result.Placement
	}
	costs := map[on][]cost{}
	for _, s := range p.Settings {
		for _, d := range s.headlines() {
			key := on{insight.Name(d.Network, d.Path), d.Placement}
			c := cost{Load: s.Load, Metric: metricLabel(d.Metric, d.Unit), Difference: words.Added(d), Class: verdictClass(d.Verdict)}
			if d.Ratio > 0 {
				c.Change = words.Percent(d.Ratio)
			}
			costs[key] = append(costs[key], c)
		}
	}
	var places []place
	for _, placement := range []result.Placement{result.CrossNode, result.SameNode} {
		here := place{Placement: placement, Title: words.Where(placement)}
		for _, w := range all {
			if w.Placement != placement {
				continue
			}
			own := costs[on{w.Name, placement}]
			c := wayCard{Way: w, Costs: own[:min(len(own), costsMost)], MoreCosts: max(0, len(own)-costsMost)}
			c.Drawing = drawWay(w)
			c.Proof, c.ProofClass = proofOf(w)
			here.Ways = append(here.Ways, c)
		}
		if len(here.Ways) > 0 {
			places = append(places, here)
		}
	}
	return places
}

// proofOf says how far a way is proved.
func proofOf(w insight.Way) (text, class string) {
	switch {
	case w.Misrouted > 0:
		return fmt.Sprintf("%s of %d misrouted", unit.Counted(w.Misrouted, "trial"), w.Trials), "bad"
	case w.Proved > 0 && w.Weak == 0 && w.Unwatched == 0:
		return fmt.Sprintf("path proved in %s", all(w.Proved)), "good"
	case w.Proved+w.Weak > 0:
		return fmt.Sprintf("path proved in %d of %d trials, by weaker means in %d", w.Proved, w.Trials, w.Weak), "warn"
	case w.Trials == 0:
		return "not measured in this run", "none"
	}
	return "as the network is built; the trials were not watched", "none"
}

// all counts trials of which none is missing.
func all(n int) string {
	if n == 1 {
		return "its one trial"
	}
	return "all " + unit.Thousands(n) + " trials"
}

// Sizes of a way's drawing, in its own units, which are about pixels on a phone.
const (
	wayWidth    = 304
	columnWidth = 141
	pillWidth   = 121
	pillHeight  = 24
	pillGap     = 14
	wayTop      = 26 // where a node's box begins
)

// pill is a box of the drawing: a device, or what joins two.
type pill struct {
	name, note, class string
	pod               bool
}

// drawWay draws a way as a U: down from the client on the left, along the bottom through what lies between, up to the server
// on the right.
func drawWay(w insight.Way) template.HTML {
	left, right, turn := halves(w)
	d := &drawing{}
	rows := max(len(left), len(right))
	nodeBottom := wayTop + 16 + rows*(pillHeight+pillGap) + 2
	height := nodeBottom + 66
	if turn.across {
		height = nodeBottom + 76
	}
	d.put(`<svg class="way" viewBox="0 0 %d %d" width="%d" height="%d"`, wayWidth, height, wayWidth, height)
	d.WriteString(` role="img"><title>` + template.HTMLEscapeString("The way of a request in "+w.Name+", "+words.At(w.Placement)) + "</title><desc>" +
		template.HTMLEscapeString(spell(w)) + "</desc>")
	if turn.across {
		d.put(`<rect class="node" x="2" y="%d" width="%d" height="%d" rx="8"/>`, wayTop, columnWidth+6, nodeBottom-wayTop)
		d.put(`<rect class="node" x="%d" y="%d" width="%d" height="%d" rx="8"/>`, wayWidth-columnWidth-8, wayTop, columnWidth+6, nodeBottom-wayTop)
	} else {
		d.put(`<rect class="node" x="2" y="%d" width="%d" height="%d" rx="8"/>`, wayTop, wayWidth-4, nodeBottom-wayTop+50)
	}
	d.column(left, 16, "client", nodeOf(w, true), false)
	d.column(right, wayWidth-16-pillWidth, "server", nodeOf(w, false), true)
	d.turn(turn, nodeBottom, len(left), len(right))
	d.put("</svg>")
	return d.html()
}

// bend is what lies between the two halves of a way.
type bend struct {
	across            bool // it leads from node to node
	name, note, class string
}

// halves cuts a way in two where it leaves the client's node, or on one node in the middle.
func halves(w insight.Way) (left, right []pill, turn bend) {
	cut := len(w.Stops) / 2
	for i := 1; i < len(w.Stops); i++ {
		a, b := w.Stops[i-1], w.Stops[i]
		if w.Placement == result.CrossNode && a.Sends && !b.Sends && a.Space != b.Space && isNode(a.Space) == isNode(b.Space) {
			cut = i
			break
		}
	}
	turn = bend{across: w.Placement == result.CrossNode, name: "underlay", class: "under"}
	if turn.across && w.Encapsulation != "" {
		turn.class = "under wrapped"
		turn.note = "inside " + w.Encapsulation
		if w.Overhead > 0 {
			turn.note += fmt.Sprintf(", +%d bytes a packet", int64(w.Overhead))
		}
	}
	if !turn.across {
		turn.name, turn.class = "the node's kernel", "under"
		if cut > 0 && cut < len(w.Stops) {
			a, b := w.Stops[cut-1], w.Stops[cut]
			if a.Within != "" && a.Within == b.Within {
				turn.name = a.Within
			}
			if a.Role == "loopback" {
				turn.name = "loopback"
			}
		}
	}
	return pills(w.Stops[:cut]), pills(w.Stops[cut:]), turn
}

// isNode tells nodes from pods.
func isNode(space string) bool { return !strings.HasPrefix(space, "pod") }

// pills are the boxes of some stops, with what joins them where that counts no packets itself.
func pills(stops []insight.Stop) []pill {
	var list []pill
	for i, s := range stops {
		if i > 0 && s.Within != "" && stops[i-1].Within == s.Within && stops[i-1].Space == s.Space {
			name, rest, _ := strings.Cut(s.Within, " ")
			list = append(list, pill{name: rest, note: name, class: "joint"})
		}
		class := "dev"
		if s.Encapsulated {
			class = "dev wrapped"
		}
		list = append(list, pill{name: s.Device, note: short(s), class: class, pod: !isNode(s.Space)})
	}
	return list
}

// short is what a device is, in a word or two.
func short(s insight.Stop) string {
	for _, kind := range []string{"macvlan", "ipvlan"} {
		if strings.HasPrefix(s.Within, kind) {
			return kind
		}
	}
	names := map[string]string{
		"pod device": "pod", "underlay port": "port", "node's end of a pod's veth": "veth end", "node bridge": "bridge", "encapsulation": "tunnel",
		"underlay switch": "switch",
	}
	return cmp.Or(names[s.Role], shorten(s.Role, 12))
}

// nodeOf is the node of one end of a way; "" if none of its stops is in one.
func nodeOf(w insight.Way, client bool) string {
	name := ""
	for _, s := range w.Stops {
		if isNode(s.Space) && (name == "" || !client) {
			name = s.Space
		}
	}
	return name
}

// column draws one half of a way: its end on top, its devices below, joined by arrows that point down, or up on the right.
func (d *drawing) column(list []pill, x int, end, node string, up bool) {
	d.text(fmt.Sprintf(`class="nodename" x="%d" y="%d"`, x-6, wayTop-8), end+onNode(node))
	if up {
		list = slices.Clone(list)
		slices.Reverse(list)
	}
	pods := 0
	for pods < len(list) && list[pods].pod {
		pods++
	}
	if pods > 0 {
		d.put(`<rect class="podbox" x="%d" y="%d" width="%d" height="%d" rx="6"/>`, x-7, wayTop+8, pillWidth+14, pods*(pillHeight+pillGap)+2)
	}
	for i, p := range list {
		y := wayTop + 16 + i*(pillHeight+pillGap)
		d.put(`<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="5"/>`, p.class, x, y, pillWidth, pillHeight)
		d.text(fmt.Sprintf(`class="devname" x="%d" y="%d"`, x+9, y+16), shorten(p.name, 13))
		d.text(fmt.Sprintf(`class="devnote" x="%d" y="%d" text-anchor="end"`, x+pillWidth-9, y+16), p.note)
		if i > 0 {
			d.arrow(x+pillWidth/2, y-pillGap, y, up)
		}
	}
}

// onNode names a node after what is on it.
func onNode(node string) string {
	if node == "" {
		return ""
	}
	return " · " + shorten(node, 14)
}

// arrow draws an upright arrow between two heights.
func (d *drawing) arrow(x, from, to int, up bool) {
	d.put(`<path class="flow" d="M%d %dV%d"/>`, x, from, to)
	if up {
		d.put(`<path class="tip" d="M%d %dl-4 6h8z"/>`, x, from)
		return
	}
	d.put(`<path class="tip" d="M%d %dl-4 -6h8z"/>`, x, to)
}

// turn draws what lies between the halves, and the arrows to it.
func (d *drawing) turn(t bend, nodeBottom, left, right int) {
	bottom := func(n int) int { return wayTop + 16 + n*(pillHeight+pillGap) - pillGap }
	top := nodeBottom + 6
	if t.across {
		top = nodeBottom + 22
	}
	x1, x2 := 16+pillWidth/2, wayWidth-16-pillWidth/2
	height := 34
	if t.across {
		height = 46
	}
	d.arrow(x1, bottom(left), top, false)
	d.put(`<path class="flow" d="M%d %dV%d"/>`, x2, bottom(right), top)
	d.put(`<path class="tip" d="M%d %dl-4 6h8z"/>`, x2, bottom(right))
	d.put(`<rect class="%s" x="16" y="%d" width="%d" height="%d" rx="6"/>`, t.class, top, wayWidth-32, height)
	middle := top + height/2
	if t.note == "" {
		d.text(fmt.Sprintf(`class="devname" text-anchor="middle" x="%d" y="%d"`, wayWidth/2, middle+4), shorten(t.name, 40))
		return
	}
	d.text(fmt.Sprintf(`class="devname" text-anchor="middle" x="%d" y="%d"`, wayWidth/2, middle-4), shorten(t.name, 40))
	d.text(fmt.Sprintf(`class="devnote strong" text-anchor="middle" x="%d" y="%d"`, wayWidth/2, middle+13), shorten(t.note, 44))
}

// spell describes a way in words, for screen readers.
func spell(w insight.Way) string {
	var parts []string
	for _, s := range w.Stops {
		text := s.Device
		if s.Space != "" {
			text += " in " + s.Space
		}
		if s.Encapsulated {
			text += " (encapsulated)"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "The devices on this way are not known."
	}
	return strings.Join(parts, ", then ") + "."
}
