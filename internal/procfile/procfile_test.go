package procfile_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"netdelta/internal/procfile"
)

func TestParseCPUs(t *testing.T) {
	for list, want := range map[string][]int{"0": {0}, "0-3": {0, 1, 2, 3}, "0-1,4,6-7": {0, 1, 4, 6, 7}, "": nil, "3-1": nil, "a": nil, "0-": nil} {
		got, err := procfile.ParseCPUs(list)
		if (err == nil) != (want != nil) || err == nil && !slices.Equal(got, want) {
			t.Errorf("%q: got %v (%v), want %v", list, got, err, want)
		}
	}
}

// A process's name may look like fields of its stat.
func TestParseStat(t *testing.T) {
	const rest = " S 7 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 0 0 0 0 44"
	for text, want := range map[string]string{
		"22 (sh)" + rest: "sh", "22 (a) R 1 (b c)" + rest: "a) R 1 (b c", "22 ()" + rest: "", "22 sh" + rest: "!", "22 (sh) S 7": "!", "": "!",
	} {
		name, fields, err := procfile.ParseStat([]byte(text))
		if want == "!" {
			if err == nil {
				t.Errorf("%q: got %q and %v, want an error", text, name, fields)
			}
			continue
		}
		if err != nil || name != want || fields[procfile.StatParent] != "7" || fields[procfile.StatFlags] != "2129984" || fields[procfile.StatStart] != "44" {
			t.Errorf("%q: got %q, %v and error %v", text, name, fields, err)
		}
	}
}

// A file that has grown is read whole, however large it was when it was opened.
func TestFileGrows(t *testing.T) {
	path := t.TempDir() + "/stat"
	if err := os.WriteFile(path, []byte("cpu"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := procfile.Open(path, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, want := range []string{"cpu", strings.Repeat("cpu0 1 2\n", 100), "x"} {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		if text, err := f.Read(); err != nil || string(text) != want {
			t.Errorf("got %q and error %v, want %q", text, err, want)
		}
	}
}
