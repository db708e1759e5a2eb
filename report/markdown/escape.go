package markdown

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"netdelta/report/ui"
)

// escape makes text from outside (names, notes, what a study asks) stand for itself in Markdown: in a paragraph, a list or a
// table's cell. HTML in it is shown, not carried out, and an @ in it notifies no one.
func escape(text string) string {
	text = ui.Clean(text)
	var b strings.Builder
	for i, r := range text {
		switch r {
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '&':
			b.WriteString("&amp;")
		case '@':
			b.WriteByte('@')
			if next, _ := utf8.DecodeRuneInString(text[i+1:]); unicode.IsLetter(next) || unicode.IsDigit(next) {
				b.WriteString("<!-- -->") // an empty comment: what follows is not taken for somebody's name
			}
		case '\\', '`', '*', '_', '{', '}', '[', ']', '#', '|', '~', '!', '$':
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return unlisted(b.String())
}

// code makes a line of text safe within a block of code, which three backquotes would end.
func code(line string) string { return strings.ReplaceAll(ui.Clean(line), "```", "'"+"''") }

// unlisted keeps text at the beginning of a line from being taken for a list's item, a heading's underline or a quotation.
func unlisted(text string) string {
	text = strings.TrimLeft(text, " ")
	switch {
	case text == "":
		return ""
	case strings.ContainsRune("-+=", rune(text[0])):
		return `\` + text
	}
	if at := numbered().FindStringSubmatchIndex(text); at != nil {
		return text[:at[3]] + `\` + text[at[3]:]
	}
	return text
}

// numbered is the beginning of an item in a numbered list.
func numbered() *regexp.Regexp { return regexp.MustCompile(`^([0-9]+)[.)]( |$)`) }
