package tail_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"netdelta/internal/tail"
)

// same is a reader of one byte again and again.
type same byte

// Read implements io.Reader.
func (s same) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(s)
	}
	return len(b), nil
}

// What has no end is given up, and its beginning is in the error.
func TestWithoutEnd(t *testing.T) {
	const most = 100 << 10
	line, err := tail.Line(bufio.NewReader(same('x')), most)
	if !errors.Is(err, tail.ErrEndless) || !strings.Contains(err.Error(), `"xxx`) || len(line) > most+4096 {
		t.Errorf("a line without end: %d bytes, %v", len(line), err)
	}
	all, err := tail.All(same('\n'), most)
	if !errors.Is(err, tail.ErrEndless) || len(all) > most+1 {
		t.Errorf("a text without end: %d bytes, %v", len(all), err)
	}
}

// FuzzLine: lines, one after the other, are what was said, each ends with its end, and none is longer than it may be.
func FuzzLine(f *testing.F) {
	f.Add([]byte("Welcome\r\nnetdelta-ready x86_64 -\n"), 30)
	f.Add([]byte("\n\nno end"), 100)
	f.Add(bytes.Repeat([]byte("y"), 5000), 4999)
	f.Add([]byte("\x00\xff\n"), 0)
	f.Fuzz(func(t *testing.T, text []byte, most int) {
		if most < 0 {
			return
		}
		r, rest := bufio.NewReaderSize(bytes.NewReader(text), 16), text
		for {
			line, err := tail.Line(r, most)
			if !bytes.HasPrefix(rest, line) {
				t.Fatalf("%q is no beginning of %q", line, rest)
			}
			rest = rest[len(line):]
			switch {
			case errors.Is(err, tail.ErrEndless) && len(line) > most && len(line) <= most+16:
				return
			case errors.Is(err, io.EOF) && len(rest) == 0 && !bytes.HasSuffix(line, []byte("\n")):
				return
			case err != nil || len(line) > most || bytes.IndexByte(line, '\n') != len(line)-1:
				t.Fatalf("the line %q of at most %d bytes: %v", line, most, err)
			}
		}
	})
}
