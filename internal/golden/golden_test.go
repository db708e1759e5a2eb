package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// recorder is a test whose failures are looked at.
type recorder struct {
	testing.TB
	said string
}

func (*recorder) Helper()                     {}
func (r *recorder) Errorf(f string, a ...any) { r.said += fmt.Sprintf(f, a...) }
func (r *recorder) Fatalf(f string, a ...any) { r.said += "fatal: " + fmt.Sprintf(f, a...) }

// checked is what Check, or CheckRounded, says of a text, and what the file holds afterwards.
func checked(t *testing.T, check func(testing.TB, string, string), path, got string) (said, file string) {
	t.Helper()
	r := &recorder{TB: t}
	check(r, path, got)
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return r.said, string(text)
}

func written(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheck(t *testing.T) {
	t.Setenv(updateVariable, "")
	path := written(t, "a\nb\n")
	if said, _ := checked(t, Check, path, "a\nb\n"); said != "" {
		t.Errorf("of the same text it says %s", said)
	}
	want := "the golden file " + path + " (-) differs from what the test got (+); if the change is meant, `make golden PKGS=./internal/golden` writes the file:\n" +
		"@@ -1,2 +1,2 @@\n a\n-b\n+c"
	if said, file := checked(t, Check, path, "a\nc\n"); said != want || file != "a\nb\n" {
		t.Errorf("it says %s\nwant %s\nand the file holds %q", said, want, file)
	}
	missing := filepath.Join(t.TempDir(), "missing.txt")
	want = "there is no golden file " + missing + "; `make golden PKGS=./internal/golden` writes it"
	for _, text := range []string{"", "a\n"} {
		if said, file := checked(t, Check, missing, text); said != want || file != "" {
			t.Errorf("of a missing file it says %s, want %s; and the file holds %q", said, want, file)
		}
	}
	folder := &recorder{TB: t}
	if Check(folder, t.TempDir(), ""); !strings.HasPrefix(folder.said, "fatal: read the golden file: ") {
		t.Errorf("of a folder it says %q", folder.said)
	}
}

func TestUpdateWrites(t *testing.T) {
	t.Setenv(updateVariable, "1")
	path := written(t, "a\n")
	for _, path := range []string{path, filepath.Join(t.TempDir(), "new", "missing.txt")} {
		if said, file := checked(t, Check, path, "b\n"); said != "" || file != "b\n" {
			t.Errorf("the file holds %q, and the test says %q", file, said)
		}
	}
	nowhere := filepath.Join(t.TempDir(), "link.txt")
	if err := os.Symlink("missing/file.txt", nowhere); err != nil {
		t.Fatal(err)
	}
	if said, _ := checked(t, Check, nowhere, ""); !strings.HasPrefix(said, "fatal: write the golden file: ") {
		t.Errorf("of a file that can't be written it says %q", said)
	}
}

func TestCheckRounded(t *testing.T) {
	const file = "x 0.1 1e-7 y\r\nz,3,1234567890123\r\n"
	path := written(t, file)
	for got, alike := range map[string]bool{
		file: true,
		"x 0.10000000000000001 1.00000000000001e-07 y\r\nz,3,1234567890123\r\n": true,
		"x 0.10000000001 1e-7 y\r\nz,3,1234567890123\r\n":                       false,
		"x 0.1 1e-7 z\r\nz,3,1234567890123\r\n":                                 false,
		"x 0.1  1e-7 y\r\nz,3,1234567890123\r\n":                                false,
		"x -0.1 1e-7 y\r\nz,3,1234567890123\r\n":                                false,
		"x 0.1 1e-7 y\r\nz,3,1234567890125\r\n":                                 false,
		"x 0.1 1e-7 y\r\n":                                                      false,
		"x 0.1 1e-7 y\r\nz,3,1234567890123":                                     false,
	} {
		t.Setenv(updateVariable, "")
		if said, _ := checked(t, CheckRounded, path, got); (said == "") != alike {
			t.Errorf("%q: it says %q", got, said)
		}
	}
	// What is only rounded differently is neither shown nor written.
	const got = "x 0.1 1.00000000000001e-7 y\r\nw,3,1234567890123\r\n"
	said, _ := checked(t, CheckRounded, path, got)
	if want := "@@ -1,2 +1,2 @@\n x 0.1 1e-7 y\\r\n-z,3,1234567890123\\r\n+w,3,1234567890123\\r"; !strings.HasSuffix(said, want) {
		t.Errorf("it says %s\nwant at its end %s", said, want)
	}
	t.Setenv(updateVariable, "1")
	if said, file := checked(t, CheckRounded, path, got); said != "" || file != "x 0.1 1e-7 y\r\nw,3,1234567890123\r\n" {
		t.Errorf("the file holds %q, and the test says %q", file, said)
	}
}

func TestShortDiff(t *testing.T) {
	page := strings.Repeat("<p>before</p>", 500) + "%s" + strings.Repeat("<p>after</p>", 500)
	var long, other, spread, scattered strings.Builder
	for i := range 300 {
		fmt.Fprintf(&long, "line %d\n", i)
		fmt.Fprintf(&other, "row %d\n", i)
		fmt.Fprintf(&spread, "line %d\n", i)
		if i%10 == 5 {
			fmt.Fprintf(&scattered, "changed %d\n", i)
		} else {
			fmt.Fprintf(&scattered, "line %d\n", i)
		}
	}
	for name, c := range map[string]struct{ want, got, shows, ends string }{
		"a long line":        {fmt.Sprintf(page, "one"), fmt.Sprintf(page, "two"), "</p>two<p>", "No newline at end of file"},
		"all lines":          {long.String(), other.String(), "-line 11\n...\n+row 0\n", "... 576 more lines differ"},
		"lines here, there":  {spread.String(), scattered.String(), "-line 5\n+changed 5\n", "more lines differ"},
		"a terminal's codes": {"\x1b[31mred\n", "red\n", `-\x1b[31mred`, "+red"},
		"spaces at the end":  {"a\n", "a\r\n", "-a\n", `+a\r`},
		"no end":             {"a\nb", "a\nb\n", "-b\n\\ No newline at end of file\n+b", "+b"},
		"nothing":            {"", "a\n", "+a", "+a"},
		"a list":             {"- a\n", "- b\n", "-- a\n+- b", "b"},
	} {
		got := shortDiff(c.want, c.got)
		if !strings.Contains(got, c.shows) || !strings.HasSuffix(got, c.ends) {
			t.Errorf("%s: the diff is\n%s\nwant in it %q, and at its end %q", name, got, c.shows, c.ends)
		}
		lines := strings.Split(got, "\n")
		if len(lines) > mostLines+1 {
			t.Errorf("%s: the diff has %d lines", name, len(lines))
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > mostRunes+len("-……") {
				t.Errorf("%s: a line is %d characters long", name, n)
			}
		}
	}
}
