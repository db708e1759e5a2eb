package flame

import (
	"bufio"
	"fmt"
	"io"
	"text/tabwriter"

	"netdelta/report/ui"
)

// WriteText prints what the page says in words: what each network took of the processors, and the functions of the page's
// table. The error is that of w.
func WriteText(w io.Writer, sides ...Side) error {
	d := drawing{Sides: sides}
	out := bufio.NewWriter(w)
	per := d.Last().Per.Name
	put(out, "Processor time for each %s\n\n", per)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	put(table, "network\ttime\tidle\t\n")
	for _, s := range sides {
		put(table, "%s\t%s\t%s\t\n", ui.Clean(s.Network), s.Busy(), s.Idle())
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the profile: %w", err)
	}
	put(out, "\n")
	for _, s := range sides {
		put(out, "%s: %s\n", ui.Clean(s.Network), s.Seen())
	}
	heading := "function (its own time)\t"
	for _, s := range sides {
		heading += ui.Clean(s.Network) + "\t"
	}
	if len(sides) == 2 {
		heading += "difference\t"
	}
	put(out, "\n")
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	put(table, "%s\n", heading)
	for _, r := range d.Rows() {
		put(table, "%s\t", ui.Clean(r.Function))
		for _, t := range r.Times {
			put(table, "%s\t", t)
		}
		if r.Delta != "" {
			put(table, "%s\t", r.Delta)
		}
		put(table, "\n")
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the profile: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print the profile: %w", err)
	}
	return nil
}

// put prints into a buffer. An error stays with the buffer and comes with its Flush.
func put(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
