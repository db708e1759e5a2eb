package ui

import (
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
)

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
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			t.Width = width
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
