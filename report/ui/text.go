// Package ui is what the program shows to a person: what the terminal can do, colours, text that is safe to print, and the
// progress of a run.
package ui

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
	"golang.org/x/term"

	"netdelta/internal/gather"
	"netdelta/network"
)

// Clean makes text from outside (a study file, a record, an error) safe to print within a line: control characters,
// escape sequences, characters that are not seen or turn the direction of writing, and what is not UTF-8 become "?"; line breaks become
// spaces.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r == utf8.RuneError || Unseen(r):
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// Unseen says of a character that a terminal or a browser obeys it instead of showing it, or shows nothing: two names that look the same
// may differ by it.
func Unseen(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// ASCII spells out the characters beyond ASCII that this program uses, and puts "?" for all others.
func ASCII(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r == 'µ' || r == 'μ':
			b.WriteByte('u')
		case r == '·' || r == '–' || r == '—':
			b.WriteByte('-')
		case r == '…':
			b.WriteByte('~')
		case r == '±':
			b.WriteString("+-")
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}

// Text is text as the terminal can show it.
func (t Terminal) Text(text string) string {
	text = Clean(text)
	if !t.Unicode {
		return ASCII(text)
	}
	return text
}

// Columns is how many columns clean text takes.
func Columns(text string) int { return displaywidth.String(text) }

// Shorten cuts clean text to so many columns, ending in "…" where something was cut. Three columns or less are just cut. Of a
// network's name that is the path of a list of plugins, the end is kept, which tells it from others.
func Shorten(text string, columns int) string {
	if Columns(text) <= columns {
		return text
	}
	if path, found := strings.CutPrefix(text, network.CNIPrefix); found && columns > len(network.CNIPrefix)+3 {
		return network.CNIPrefix + "…" + lastColumns(path, columns-len(network.CNIPrefix)-1)
	}
	end := "…"
	if columns <= 3 {
		end = ""
	}
	kept, width := "", 0
	for _, r := range text {
		w := Columns(string(r))
		if width+w > columns-Columns(end) {
			break
		}
		kept, width = kept+string(r), width+w
	}
	return kept + end
}

// lastColumns is the end of a text that takes at most so many columns.
func lastColumns(text string, columns int) string {
	runes, width := []rune(text), 0
	for i := len(runes) - 1; i >= 0; i-- {
		if width += Columns(string(runes[i])); width > columns {
			return string(runes[i+1:])
		}
	}
	return text
}

// Wrap breaks clean text into lines of at most so many columns, between words; a longer word stays whole.
func Wrap(text string, columns int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case Columns(line)+1+Columns(word) <= columns:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// Table is a table of text that is written row by row, two spaces between columns. Its lines end where their last word does.
type Table struct {
	columns *tabwriter.Writer
	text    strings.Builder
	end     string // of each row
}

// WrapCommand breaks a command of a shell into lines of at most so many columns, where it can be broken: at blanks outside quotes. Each
// line but the last ends in a backslash, by which a shell joins it with the next; comments stay comments. A word that is longer than a
// line stays whole.
func WrapCommand(command string, columns int) []string {
	const indent = "  "
	if strings.HasPrefix(command, "#") {
		var lines []string
		for _, line := range Wrap(strings.TrimSpace(strings.TrimPrefix(command, "#")), max(columns-len("# "), 1)) {
			lines = append(lines, "# "+line)
		}
		return lines
	}
	if Columns(command) <= columns {
		return []string{command}
	}
	var lines []string
	line := ""
	for _, word := range shellWords(command) {
		switch {
		case line == "":
			line = word
		case Columns(line)+1+Columns(word)+len(` \`) <= columns:
			line += " " + word
		default:
			lines, line = append(lines, line+` \`), indent+word
		}
	}
	return append(lines, line)
}

// shellWords are the words of a command, with their quotes: blanks within quotes and after a backslash don't end one.
func shellWords(command string) []string {
	var words []string
	quote, start := byte(0), 0
	for i := 0; i < len(command); i++ {
		switch c := command[i]; {
		case c == '\\' && quote != '\'':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '#' && i == start: // the rest is a comment, which no backslash goes on
			return append(words, command[start:])
		case c == ' ':
			if i > start {
				words = append(words, command[start:i])
			}
			start = i + 1
		}
	}
	if start < len(command) {
		words = append(words, command[start:])
	}
	return words
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

// DefaultWidth is the width of what is not a terminal and does not say.
const DefaultWidth = 80

// maxWidth keeps lines readable, and a nonsensical COLUMNS from making them endless.
const maxWidth = 400

// Terminal is what text is printed on: a plain value, so that tests and files have one too.
type Terminal struct {
	// Interactive says that a person looks on: lines may be drawn again.
	Interactive bool
	// Width is the number of columns, at least 20.
	Width int
	// Height is the number of lines, 0 where that is not known.
	Height int
	// Colour says that colours may be used.
	Colour bool
	// Unicode says that more than ASCII may be printed.
	Unicode bool
}

// Detect finds out what w is. Of the environment it heeds NO_COLOR, TERM, COLUMNS (where w is not a terminal) and the
// locale.
func Detect(w io.Writer, getenv func(string) string) Terminal {
	t := Terminal{Width: DefaultWidth, Unicode: unicodeLocale(getenv)}
	if columns, err := strconv.Atoi(getenv("COLUMNS")); err == nil {
		t.Width = columns
	}
	file, ok := w.(*os.File)
	if ok && term.IsTerminal(int(file.Fd())) {
		dumb := getenv("TERM") == "dumb"
		t.Interactive = !dumb
		t.Colour = !dumb && getenv("NO_COLOR") == ""
		if width, height, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			t.Width, t.Height = width, max(height, 0)
		}
	}
	t.Width = min(max(t.Width, 20), maxWidth)
	return t
}

// unicodeLocale says whether the locale, if one is set, has UTF-8. Most terminals without a locale, as in a container, do.
func unicodeLocale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(getenv(name)); locale != "" {
			return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
		}
	}
	return true
}

// Style is how a piece of text looks. The zero Style is plain.
type Style string

// The styles: the parameters of the terminal's SGR sequence. The colours come from the terminal's own palette, so that
// they suit its background.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Blue   Style = "34"
)

// Paint gives text a style where the terminal has colours. The text must be clean: see Clean.
func (t Terminal) Paint(s Style, text string) string {
	if !t.Colour || s == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}
