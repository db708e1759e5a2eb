// Package hops shows where on the way of a request the time goes: as tables, and as lanes that are drawn to scale.
package hops

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"netdelta/insight/hops"
	"netdelta/report/ui"
	"netdelta/unit"
)

// WriteText prints the hops of one network or, side by side, of two: the first is what the second is held against. The error
// is that of w.
func WriteText(w io.Writer, ways ...hops.Way) error {
	out := bufio.NewWriter(w)
	if len(ways) == 2 {
		base, other := ways[0], ways[1]
		writeBeside(out, "request", base, other, hops.Beside(base.Request, other.Request))
		writeBeside(out, "response", base, other, hops.Beside(base.Response, other.Response))
	} else {
		for _, way := range ways {
			writeOne(out, way, "request", way.Request)
			writeOne(out, way, "response", way.Response)
		}
	}
	writeParts(out, ways)
	writeOutliers(out, ways)
	for _, way := range ways {
		writeTrust(out, way)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print the hops: %w", err)
	}
	return nil
}

func newTable(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0) }

func writeOne(out io.Writer, way hops.Way, direction string, list []hops.HopTime) {
	put(out, "%s of %s\n", direction, ui.Clean(way.Network))
	table := newTable(out)
	put(table, "  hop\tp50\tp90\tp99\tshare\n")
	sum := 0.0
	for _, h := range list {
		put(table, "  %s\t%s\t%s\t%s\t%.1f%%\n", ui.Clean(h.Name), ns(h.P50), ns(h.P90), ns(h.P99), 100*h.Share)
		sum += h.P50
	}
	put(table, "  sum\t%s\t\t\t%.1f%%\n", ns(sum), 100*sum/way.Untraced)
	flush(table)
	put(out, "\n")
}

func writeBeside(out io.Writer, direction string, base, other hops.Way, lines []hops.HopDelta) {
	put(out, "%s: %s against %s\n", direction, ui.Clean(other.Network), ui.Clean(base.Network))
	table := newTable(out)
	put(table, "  hop\t%s\t%s\tdifference\t95%% interval\n", ui.Clean(base.Network), ui.Clean(other.Network))
	sum := 0.0
	for _, l := range lines {
		name := ""
		if l.Base != nil {
			name = l.Base.Name
		}
		if l.Other != nil {
			name = l.Other.Name
		}
		put(table, "  %s\t%s\t%s\t%s\t%s\n", ui.Clean(name), of(l.Base), of(l.Other), signed(l.Difference), Interval(l.Low, l.High))
		sum += l.Difference
	}
	put(table, "  sum\t\t\t%s\n", signed(sum))
	flush(table)
	put(out, "\n")
}

// writeParts prints what the round trip of each network is made of.
func writeParts(out io.Writer, ways []hops.Way) {
	table := newTable(out)
	for _, w := range ways {
		put(table, "parts of %s\tp50\tshare\twhat the network can change\n", ui.Clean(w.Network))
		for _, p := range w.Parts() {
			put(table, "  %s\t%s\t%.1f%%\t%s\n", p.Name, ns(p.Time), 100*p.Share, Changes(p))
		}
	}
	flush(table)
	put(out, "\n")
}

// writeOutliers prints what was different about the slowest transactions of each network, where that is known.
func writeOutliers(out io.Writer, ways []hops.Way) {
	for _, w := range ways {
		o := w.Outliers
		if o == nil {
			continue
		}
		put(out, "%s\n", Slowest(w))
		table := newTable(out)
		put(table, "  what was different\tof these\tof all others\tcount\n")
		for _, r := range o.Reasons {
			put(table, "  %s\t%.0f%%\t%.2g%%\t%d\n", ui.Clean(r.Says), 100*r.Outliers, 100*r.Others, r.Count)
		}
		flush(table)
		put(out, "\n")
	}
}

// Slowest says which transactions of a network are its outliers.
func Slowest(w hops.Way) string {
	o := w.Outliers
	return fmt.Sprintf("the slowest of %s: %d of %d transactions, beyond p%g, %s", ui.Clean(w.Network), o.Count, o.Transactions, 100*o.Quantile, ns(o.Threshold))
}

// Changes says whether another network changes a part.
func Changes(p hops.Part) string {
	if p.Network {
		return "yes"
	}
	return "hardly"
}

// writeTrust says what the figures of a network rest on.
func writeTrust(out io.Writer, w hops.Way) {
	for _, line := range Trust(w) {
		put(out, "%s\n", line)
	}
}

// Trust says what the figures of a network rest on, in sentences.
func Trust(w hops.Way) []string {
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
		lines = append(lines, fmt.Sprintf("  %d events were lost for want of room", w.Lost))
	}
	if w.Events == 0 {
		lines = append(lines, "  this traffic passes no device")
	}
	return lines
}

func flush(table *tabwriter.Writer) { _ = table.Flush() } // the error stays with what is below and comes with its Flush

// of is a hop's time, a dash where there is none.
func of(h *hops.HopTime) string {
	if h == nil {
		return "-"
	}
	return ns(h.P50)
}

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

// Interval prints the bounds of a difference in nanoseconds, or that there are too few builds for any.
func Interval(low, high *float64) string {
	if low == nil || high == nil {
		return "too few builds"
	}
	return fmt.Sprintf("[%s, %s]", signed(*low), signed(*high))
}

// put prints into a buffer. An error stays with the buffer and comes with its Flush.
func put(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
