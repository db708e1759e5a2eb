package repotest

import (
	"bytes"
	"strings"
	"testing"
)

// foreign is a text that refers to one machine or workplace and means nothing to other readers. Each is
// written in two halves, so that this file does not hold it.
type foreign struct{ first, second, reason string }

func foreigners() []foreign {
	return []foreign{
		{"/wo", "rk/", "a folder of one machine"},
		{"/ro", "ot/", "a folder of one machine"},
		{"/ho", "me/", "a folder of one machine"},
		{"../sha", "red", "a folder next to one checkout"},
		{".libr", "ary", "a folder of one machine"},
		{"proxy.gol", "ang", "modules come from wherever the reader's toolchain is told to look"},
		{"sum.gol", "ang", "modules come from wherever the reader's toolchain is told to look"},
		{"index.gol", "ang", "modules come from wherever the reader's toolchain is told to look"},
		{"as an a", "i ", "a project speaks of itself only"},
		{"language mo", "del", "a project speaks of itself only"},
	}
}

// TestSpeaksOfItselfOnly: no file tells of the place where it was written.
func TestSpeaksOfItselfOnly(t *testing.T) {
	for _, f := range files(t, func(p string) bool { return !strings.HasSuffix(p, "go.sum") }) {
		text := bytes.ToLower(f.text)
		for _, word := range foreigners() {
			at := bytes.Index(text, []byte(word.first+word.second))
			if at < 0 {
				continue
			}
			t.Errorf("%s:%d says %q: %s", f.path, 1+bytes.Count(text[:at], []byte("\n")), word.first+word.second, word.reason)
		}
	}
}
