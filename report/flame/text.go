package flame

import (
	"io"

	"netdelta/report/ui"
)

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
		for _, r := range d.Rows() {
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
