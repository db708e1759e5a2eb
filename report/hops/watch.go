package hops

import (
	"bufio"
	"fmt"
	"io"

	"netdelta/insight/hops"
	"netdelta/report/ui"
)

// WriteWatch prints the hops of a running program's connections. The error is that of w.
func WriteWatch(w io.Writer, seen hops.Watched) error {
	out := bufio.NewWriter(w)
	for _, d := range []struct {
		name     string
		segments int
		hops     []hops.HopTime
	}{{"to", seen.SegmentsTo, seen.ToServer}, {"from", seen.SegmentsFrom, seen.FromServer}} {
		put(out, "%s the server at port %d: %d segments\n", d.name, seen.Port, d.segments)
		table := newTable(out)
		put(table, "  hop\tfrom\tto\tp50\tp90\tp99\tshare\n")
		for _, h := range d.hops {
			put(table, "  %s\t%s\t%s\t%s\t%s\t%s\t%.1f%%\n", ui.Clean(h.Step), ui.Clean(h.From), ui.Clean(h.To), ns(h.P50), ns(h.P90), ns(h.P99), 100*h.Share)
		}
		flush(table)
		put(out, "\n")
	}
	put(out, "What tracing costs is in these times.\n")
	if seen.Otherwise > 0 {
		put(out, "%d more segments took another way, or were sent again, and are left out.\n", seen.Otherwise)
	}
	if seen.Lost > 0 {
		put(out, "%d events were lost for want of room: watch for a shorter time.\n", seen.Lost)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print the hops: %w", err)
	}
	return nil
}
