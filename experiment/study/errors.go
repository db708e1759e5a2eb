package study

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"netdelta/internal/gather"
	meant "netdelta/internal/suggest"
)

// Position is where in the user's input a value stands: a position in a file, or a flag.
type Position struct {
	File         string
	Line, Column int    // from 1, in characters; 0 is unknown
	Flag         string // "--networks", for values that came from the command line
}

// String prints file:line:column, as far as they are known, or the flag.
func (p Position) String() string {
	if p.Flag != "" {
		return p.Flag
	}
	name := p.File
	if strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) {
		name = strconv.Quote(name)
	}
	if p.Line == 0 {
		return name
	}
	return fmt.Sprintf("%s:%d:%d", name, p.Line, p.Column)
}

// Error is one thing that is wrong with a study, where it is and what to do about it.
type Error struct {
	Position Position
	Problem  string
	Fix      string // "" when the problem says it all
}

// Error prints the place, the problem and the fix on one line.
func (e *Error) Error() string {
	s := e.Position.String() + ": " + e.Problem
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return s
}

// Errors are all that is wrong with a study, sorted by place. Every error that Parse and Override return is of this type,
// so errors.As tells bad input from other failures.
type Errors []*Error

// Error prints one error on each line.
func (e Errors) Error() string {
	lines := gather.Each(e, func(one *Error) string { return one.Error() })
	return strings.Join(lines, "\n")
}

// Unwrap makes errors.As find each *Error.
func (e Errors) Unwrap() []error {
	return gather.Each(e, func(one *Error) error { return one })
}

// sorted returns the errors in the order of their places, each once, and nil (not an empty list) when there are none.
func (e Errors) sorted() error {
	if len(e) == 0 {
		return nil
	}
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(
			cmp.Compare(a.Position.Flag, b.Position.Flag),
			cmp.Compare(a.Position.Line, b.Position.Line),
			cmp.Compare(a.Position.Column, b.Position.Column),
		)
	})
	return slices.CompactFunc(e, func(a, b *Error) bool { return *a == *b })
}

// suggest says which of the known names was probably meant, or lists them when none is near.
func suggest(name string, known []string) string {
	if best, ok := meant.Nearest(name, known); ok {
		return fmt.Sprintf("did you mean %q?", best)
	}
	if len(known) == 0 {
		return "none is known here"
	}
	sorted := slices.Sorted(slices.Values(known))
	return "known are " + strings.Join(sorted, ", ")
}

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
