package ui

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table is a table of text that is written row by row, with tabs between the cells and a newline after each row. Its lines end
// where their last word does.
type Table struct {
	*tabwriter.Writer
	text *strings.Builder
}

// NewTable begins a table, with two spaces between columns.
func NewTable() Table {
	text := &strings.Builder{}
	return Table{tabwriter.NewWriter(text, 0, 0, 2, ' ', 0), text}
}

// Print ends the table and prints it, with an empty line after it. An error is that of out.
func (t Table) Print(out io.Writer) error {
	_ = t.Flush() // its text takes everything
	var lines strings.Builder
	for line := range strings.Lines(t.text.String()) {
		lines.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	_, err := fmt.Fprintln(out, lines.String())
	return err
}
