// Package hops shows where on the way of a request the time goes: as tables, and as lanes that are drawn to scale.
package hops

import (
	"fmt"
	"io"
	"math"
	"time"

	"netdelta/insight/hops"
	"netdelta/report/ui"
	"netdelta/unit"
)

// WriteText prints the hops of one network or, side by side, of two: the second is compared with the first. The error is w's.
func WriteText(w io.Writer, ways ...hops.Way) error {
	return ui.Print(w, "the hops", func(out ui.Text) {
		if why := withheld(ways); why != "" {
			out.Put("%s\n\n", why)
		} else {
			writeHops(out, ways)
		}
		for _, way := range ways {
			if way.Outliers != nil {
				writeOutliers(out, way)
			}
		}
		for _, way := range ways {
			for _, line := range basedOn(way) {
				out.Put("%s\n", line)
			}
		}
	})
}

// writeHops prints the hops, two networks side by side, and what they are parts of.
func writeHops(out ui.Text, ways []hops.Way) {
	if len(ways) == 2 {
		out.Put("%s\n\n", conclusion(ways[0], ways[1]))
		writeTwo(out, "request", ways[0], ways[1], hops.Compare(ways[0].Request, ways[1].Request))
		writeTwo(out, "response", ways[0], ways[1], hops.Compare(ways[0].Response, ways[1].Response))
	} else {
		for _, way := range ways {
			writeOne(out, way, "request", way.Request)
			writeOne(out, way, "response", way.Response)
		}
	}
	writeParts(out, ways)
}

// withheld says in a sentence why hops are not shown, "" where they are.
func withheld(ways []hops.Way) string {
	d, found := hops.FindDoubt(ways)
	if !found {
		return ""
	}
	network, how, against := ui.Clean(d.Network), "by its hops", "without tracing"
	if d.Run {
		how, against = "without tracing", "in the run"
	}
	what := fmt.Sprintf("a round trip of %s takes %s %s and %s %s", network, ns(d.Traced), how, ns(d.Measured), against)
	if d.Base != "" {
		what = fmt.Sprintf("%s adds %s to %s %s and %s %s", network, signed(d.Traced), ui.Clean(d.Base), how, signed(d.Measured), against)
	}
	return "The hops are not shown, since figures that should agree do not: " + what + "."
}

func writeOne(out ui.Text, way hops.Way, direction string, list []hops.HopTime) {
	out.Put("%s of %s\n", direction, ui.Clean(way.Network))
	table := ui.NewTable("  hop", "p50", "p90", "p99", "share")
	sum := 0.0
	for _, h := range list {
		table.Row("  "+h.Name, ns(h.P50), ns(h.P90), ns(h.P99), percent(h.Share))
		sum += h.P50
	}
	table.Row("  sum", ns(sum), "", "", percent(sum/way.Untraced))
	out.Table(table)
}

func writeTwo(out ui.Text, direction string, base, other hops.Way, lines []hops.HopDelta) {
	out.Put("%s: %s against %s\n", direction, ui.Clean(other.Network), ui.Clean(base.Network))
	table := ui.NewTable("  hop", base.Network, other.Network, "difference", "95% interval")
	sum := 0.0
	for _, l := range lines {
		table.Row("  "+l.Name(), timeOf(l.Base), timeOf(l.Other), signed(l.Difference), interval(l.Low, l.High))
		sum += l.Difference
	}
	table.Row("  sum", "", "", signed(sum))
	out.Table(table)
}

// writeParts prints what the round trip of each network is made of.
func writeParts(out ui.Text, ways []hops.Way) {
	table := ui.NewTable()
	for _, w := range ways {
		table.Row("parts of "+w.Network, "p50", "share", "what the network can change")
		for _, p := range w.Parts() {
			table.Row("  "+p.Name, ns(p.Time), percent(p.Share), changes(p))
		}
	}
	out.Table(table)
}

// writeOutliers prints what was different about the slowest transactions of a network.
func writeOutliers(out ui.Text, w hops.Way) {
	out.Put("%s\n", slowest(w))
	table := ui.NewTable("  what was different", "of these", "of all others", "count")
	for _, r := range w.Outliers.Reasons {
		table.Row("  "+r.Says, fmt.Sprintf("%.0f%%", 100*r.Outliers), fmt.Sprintf("%.2g%%", 100*r.Others), r.Count)
	}
	out.Table(table)
}

// slowest says which transactions of a network are its outliers.
func slowest(w hops.Way) string {
	o := w.Outliers
	return fmt.Sprintf("the slowest of %s: %d of %d transactions, beyond p%g, %s", ui.Clean(w.Network), o.Count, o.Transactions, 100*o.Quantile, ns(o.Threshold))
}

// changes says whether another network changes a part.
func changes(p hops.Part) string {
	if p.Network {
		return "yes"
	}
	return "hardly"
}

// basedOn says what the figures of a network rest on, in sentences.
func basedOn(w hops.Way) []string {
	if w.Stamped {
		return []string{
			fmt.Sprintf("%s: round trip p50 %s; with both ends on one thread, where no program is woken up, %s; the hops add up to %s", ui.Clean(w.Network), ns(w.Untraced), ns(w.Traced), ns(w.Sum)),
			fmt.Sprintf("  by the sockets' own time stamps; %d transactions in %d builds, %d more without stamps", w.Transactions, w.Builds, w.Otherwise),
		}
	}
	lines := []string{
		fmt.Sprintf("%s: round trip p50 %s without tracing, %s with it (%+.1f%%); %d events of %s each are taken off", ui.Clean(w.Network), ns(w.Untraced), ns(w.Traced), 100*w.Overhead(), w.Events, ns(w.Cost)),
		fmt.Sprintf("  the hops add up to %s, %+.1f%% of the round trip without tracing; %d transactions in %d builds", ns(w.Sum), 100*w.Gap(), w.Transactions, w.Builds),
	}
	if w.Otherwise > 0 {
		lines = append(lines, fmt.Sprintf("  %d more transactions took another way and are left out", w.Otherwise))
	}
	if w.Lost > 0 {
		lines = append(lines, fmt.Sprintf("  %d events were lost for want of room; transactions from then on are left out", w.Lost))
	}
	if w.Events == 0 && w.Transactions > 0 {
		lines = append(lines, "  this traffic passes no device")
	}
	return lines
}

// WriteWatch prints the hops of a running program's connections. The error is w's.
func WriteWatch(w io.Writer, seen hops.Watched) error {
	return ui.Print(w, "the hops", func(out ui.Text) {
		for _, d := range []struct {
			name     string
			segments int
			hops     []hops.HopTime
		}{{"to", seen.SegmentsTo, seen.ToServer}, {"from", seen.SegmentsFrom, seen.FromServer}} {
			out.Put("%s the server at port %d: %d segments\n", d.name, seen.Port, d.segments)
			table := ui.NewTable("  hop", "from", "to", "p50", "p90", "p99", "share")
			for _, h := range d.hops {
				table.Row("  "+h.Step, h.From, h.To, ns(h.P50), ns(h.P90), ns(h.P99), percent(h.Share))
			}
			out.Table(table)
		}
		out.Put("What tracing costs is in these times.\n")
		if seen.Otherwise > 0 {
			out.Put("%d more segments took another way, or were sent again, and are left out.\n", seen.Otherwise)
		}
		if seen.Lost > 0 {
			out.Put("%d events were lost for want of room: watch for a shorter time.\n", seen.Lost)
		}
	})
}

// timeOf is a hop's time, a dash where a way does not have the hop.
func timeOf(h *hops.HopTime) string {
	if h == nil {
		return "-"
	}
	return ns(h.P50)
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

// ns prints nanoseconds, scaled.
func ns(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return unit.Duration(time.Duration(math.Round(v)))
}

func signed(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return unit.Difference(time.Duration(math.Round(v)))
}

// interval prints the bounds of a difference in nanoseconds, or that there are too few builds for any.
func interval(low, high *float64) string {
	if low == nil || high == nil {
		return "too few builds"
	}
	return fmt.Sprintf("[%s, %s]", signed(*low), signed(*high))
}
