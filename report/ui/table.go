package ui

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"netdelta/internal/gather"
)

// Table is a table of text that is written row by row, two spaces between columns. Its lines end where their last word does.
type Table struct {
	columns *tabwriter.Writer
	text    strings.Builder
	end     string // of each row
}

// NewTable begins a table with a head.
func NewTable(head ...any) *Table { return newTable(0, "\n", head) }

// NewFigures begins a table with a head whose columns are aligned to the right.
func NewFigures(head ...any) *Table { return newTable(tabwriter.AlignRight, "\t\n", head) }

func newTable(flags uint, end string, head []any) *Table {
	t := &Table{end: end}
	t.columns = tabwriter.NewWriter(&t.text, 0, 0, 2, ' ', flags)
	if len(head) > 0 {
		t.Row(head...)
	}
	return t
}

// Row adds a row, whose cells are made safe to print.
func (t *Table) Row(cells ...any) {
	texts := gather.Each(cells, func(c any) string { return Clean(fmt.Sprint(c)) })
	_, _ = io.WriteString(t.columns, strings.Join(texts, "\t")+t.end) // its text takes everything
}

// String ends the table.
func (t *Table) String() string {
	_ = t.columns.Flush()
	var lines strings.Builder
	for line := range strings.Lines(t.text.String()) {
		lines.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return lines.String()
}

// Text is text on its way to a writer, whose error is kept until the end.
type Text struct{ w *bufio.Writer }

// Print writes on w what write puts into the text. The error is w's, and names what could not be printed.
func Print(w io.Writer, what string, write func(out Text)) error {
	out := Text{bufio.NewWriter(w)}
	write(out)
	if err := out.w.Flush(); err != nil {
		return fmt.Errorf("print %s: %w", what, err)
	}
	return nil
}

// Put prints by a format.
func (t Text) Put(format string, args ...any) { fmt.Fprintf(t.w, format, args...) }

// Table prints a table and an empty line after it.
func (t Text) Table(table *Table) { t.Put("%s\n", table) }
