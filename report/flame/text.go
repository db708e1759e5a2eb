package flame

import (
	"bufio"
	"fmt"
	"io"
	"text/tabwriter"

	"netdelta/internal/ui"
)

// WriteText prints what the page says in words: what each network took of the processors, and the functions of the page's
// table. The error is that of w.
func WriteText(w io.Writer, sides ...Side) error {
	d := drawing{Sides: sides}
	out := bufio.NewWriter(w)
	per := d.Last().Per.Name
	fmt.Fprintf(out, "Processor time for each %s\n\n", per)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "network\ttime\tidle\t")
	for _, s := range sides {
		fmt.Fprintf(table, "%s\t%s\t%s\t\n", ui.Clean(s.Network), s.Busy(), s.Idle())
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the profile: %w", err)
	}
	fmt.Fprintln(out)
	for _, s := range sides {
		fmt.Fprintf(out, "%s: %s\n", ui.Clean(s.Network), s.Seen())
	}
	heading := "function (its own time)\t"
	for _, s := range sides {
		heading += ui.Clean(s.Network) + "\t"
	}
	if len(sides) == 2 {
		heading += "difference\t"
	}
	fmt.Fprintf(out, "\n")
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, heading)
	for _, r := range d.Rows() {
		fmt.Fprintf(table, "%s\t", ui.Clean(r.Function))
		for _, t := range r.Times {
			fmt.Fprintf(table, "%s\t", t)
		}
		if r.Delta != "" {
			fmt.Fprintf(table, "%s\t", r.Delta)
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the profile: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print the profile: %w", err)
	}
	return nil
}
