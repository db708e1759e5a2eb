package study

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// within finds where the byte at offset of a text stands in the file, the text being the value at path. Lines may have been
// folded, so blanks count for nothing: the other characters are matched one by one. It gives up where the file writes the
// text in another way than it reads, as with escapes.
func (r *reader) within(path, text string, offset int) (Position, bool) {
	start, ok := r.places[path]
	if !ok || start.Line == 0 {
		return Position{}, false
	}
	s := newScanner(r.source, start)
	for i, want := range text + "\x00" {
		if blank := unicode.IsSpace(want); i >= offset && (blank || i == len(text)) {
			return s.at, true // something is missing after the character before
		} else if blank {
			continue
		}
		for bytes.IndexAny(s.next(1), " \t\r\n") == 0 {
			s.step()
		}
		if i >= offset {
			return s.at, true
		}
		if s.step() != want {
			return Position{}, false
		}
	}
	return Position{}, false
}

// scanner walks through a file and keeps count of lines and columns.
type scanner struct {
	rest []byte
	at   Position
}

// newScanner stands where the text of the scalar that begins at start does.
func newScanner(source []byte, start Position) *scanner {
	s := &scanner{rest: source, at: Position{File: start.File, Line: 1, Column: 1}}
	for len(s.rest) > 0 && (s.at.Line < start.Line || s.at.Line == start.Line && s.at.Column < start.Column) {
		s.step()
	}
	switch string(s.next(1)) {
	case ">", "|": // a block begins on the line below its sign
		for len(s.rest) > 0 && s.at.Line == start.Line {
			s.step()
		}
	case `"`, `'`:
		s.step()
	}
	return s
}

// next are the next n bytes, or as many as there are.
func (s *scanner) next(n int) []byte { return s.rest[:min(n, len(s.rest))] }

// step goes on by a character and returns it; at the end of the file it is the replacement character.
func (s *scanner) step() rune {
	c, size := utf8.DecodeRune(s.rest)
	if s.rest = s.rest[size:]; c == '\n' {
		s.at.Line, s.at.Column = s.at.Line+1, 1
	} else {
		s.at.Column++
	}
	return c
}
