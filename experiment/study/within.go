package study

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// within finds where the byte at offset of a text stands in the file, the text being the value at path. Lines may have been
// folded, so blanks count for nothing: the other characters are matched one by one. It gives up where the file writes the
// text in another way than it reads, as with escapes.
func (r *reader) within(path, text string, offset int) (Place, bool) {
	start, ok := r.places[path]
	if !ok || start.Line == 0 {
		return Place{}, false
	}
	at := start
	rest := r.source
	for range start.Line - 1 {
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
	}
	step := func() rune {
		c, size := utf8.DecodeRune(rest)
		if rest = rest[size:]; c == '\n' {
			at.Line, at.Column = at.Line+1, 1
		} else {
			at.Column++
		}
		return c
	}
	at.Column = 1
	for at.Column < start.Column && len(rest) > 0 {
		step()
	}
	switch {
	case bytes.HasPrefix(rest, []byte(">")), bytes.HasPrefix(rest, []byte("|")):
		for len(rest) > 0 && step() != '\n' { // a block begins below its sign
		}
	case bytes.HasPrefix(rest, []byte(`"`)), bytes.HasPrefix(rest, []byte(`'`)):
		step()
	}
	for i, want := range text + "\x00" {
		if blank := unicode.IsSpace(want); i >= offset && (blank || i == len(text)) {
			return at, true // something is missing after the character before
		} else if blank {
			continue
		}
		for len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\n' || rest[0] == '\r' || rest[0] == '\t') {
			step()
		}
		if i >= offset {
			return at, true
		}
		if len(rest) == 0 || step() != want {
			return Place{}, false
		}
	}
	return Place{}, false
}
