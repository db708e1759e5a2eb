// Package golden compares what a test gets with a golden file, which holds what the test has to get, and writes the file when a person
// asks for it with `make golden`. Only tests import it.
package golden

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
)

// updateVariable is the environment variable that `make golden` sets to 1: files are then written instead of compared with.
const updateVariable = "NETDELTA_UPDATE_GOLDEN"

// Check fails the test with a short diff when the text differs from the file at the path.
func Check(t testing.TB, path, got string) {
	t.Helper()
	check(t, path, got, func(_, got string) string { return got })
}

// CheckRounded is Check for a text whose numbers have to agree to twelve digits only, because processors round differently.
func CheckRounded(t testing.TB, path, got string) {
	t.Helper()
	check(t, path, got, withKnownRounding)
}

// check compares after the text was adapted to the file.
func check(t testing.TB, path, got string, adapt func(want, got string) string) {
	t.Helper()
	file, err := os.ReadFile(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		t.Fatalf("read the golden file: %v", err)
	}
	want := string(file)
	got = adapt(want, got)
	switch {
	case !missing && got == want:
	case os.Getenv(updateVariable) == "1":
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
			t.Fatalf("write the golden file: %v", err)
		}
	case missing:
		t.Errorf("there is no golden file %s; %s writes it", path, updateCommand())
	default:
		t.Errorf("the golden file %s (-) differs from what the test got (+); if the change is meant, %s writes the file:\n%s", path, updateCommand(), shortDiff(want, got))
	}
}

// updateCommand is what a person types to write the golden files of the package whose test runs in the working directory.
func updateCommand() string {
	folder, err := os.Getwd()
	root := folder
	for err == nil {
		if _, err = os.Stat(filepath.Join(root, "go.mod")); err == nil {
			relative, _ := filepath.Rel(root, folder)
			return "`make golden PKGS=./" + filepath.ToSlash(relative) + "`"
		}
		if parent := filepath.Dir(root); parent != root {
			root, err = parent, nil
		}
	}
	return "`make golden`"
}

// Limits keep a failed test readable: a page of HTML has lines of many kilobytes, and a new column changes every line of a table.
const (
	mostLines  = 40  // in a diff
	mostInARow = 12  // removed, or added, at one place
	mostRunes  = 160 // in a line
	runesAhead = 60  // shown before the first difference in a line
)

// shortDiff is a unified diff within the limits.
func shortDiff(want, got string) string {
	text := strings.TrimSuffix(string(diff.Diff("", []byte(want), "", []byte(got))), "\n")
	lines := strings.Split(text, "\n")[3:] // after the names of the two texts
	var shown []string
	hidden := 0
	for len(lines) > 0 {
		removed := leading(lines, '-')
		added := leading(lines[len(removed):], '+')
		lines = lines[len(removed)+len(added):]
		for _, block := range [][2][]string{{removed, added}, {added, removed}} {
			for i, line := range block[0][:min(len(block[0]), mostInARow)] {
				counterpart := ""
				if i < len(block[1]) {
					counterpart = block[1][i][1:]
				}
				shown = append(shown, cutAround(line, counterpart))
			}
			if more := len(block[0]) - mostInARow; more > 0 {
				shown, hidden = append(shown, "..."), hidden+more
			}
		}
		if len(removed)+len(added) == 0 {
			shown, lines = append(shown, cutAround(lines[0], "")), lines[1:]
		}
	}
	if len(shown) > mostLines {
		for _, line := range shown[mostLines:] {
			if line[0] == '-' || line[0] == '+' {
				hidden++
			}
		}
		shown = shown[:mostLines]
	}
	if hidden > 0 {
		shown = append(shown, fmt.Sprintf("... %d more lines differ", hidden))
	}
	return strings.Join(shown, "\n")
}

// leading are the first lines that begin with the sign, with the diff's note about a last line that does not end.
func leading(lines []string, sign byte) []string {
	n := slices.IndexFunc(lines, func(line string) bool { return line[0] != sign })
	switch {
	case n < 0:
		return lines
	case n > 0 && lines[n][0] == '\\':
		n++
	}
	return lines[:n]
}

// cutAround is a line of a diff, cut around the first place where it differs from its counterpart.
func cutAround(line, counterpart string) string {
	runes, others := []rune(visible(line[1:])), []rune(visible(counterpart))
	same := 0
	for same < min(len(runes), len(others)) && runes[same] == others[same] {
		same++
	}
	from := max(0, min(same-runesAhead, len(runes)-mostRunes))
	to := min(len(runes), from+mostRunes)
	text := string(runes[from:to])
	if from > 0 {
		text = "…" + text
	}
	if to < len(runes) {
		text += "…"
	}
	return line[:1] + text
}

// visible is a line with escapes for what a terminal would obey, and what readers can't see.
func visible(line string) string {
	quoted := strconv.Quote(line)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// number matches a number without its sign.
var number = regexp.MustCompile(`[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?`)

// withKnownRounding is the text with the file's lines in place of those that differ in nothing but rounding.
func withKnownRounding(want, got string) string {
	wanted, lines := strings.Split(want, "\n"), strings.Split(got, "\n")
	if len(wanted) != len(lines) {
		return got
	}
	for i, line := range lines {
		if alike(wanted[i], line) {
			lines[i] = wanted[i]
		}
	}
	return strings.Join(lines, "\n")
}

// alike compares two lines, their numbers to twelve digits.
func alike(a, b string) bool {
	return slices.Equal(number.Split(a, -1), number.Split(b, -1)) &&
		slices.EqualFunc(number.FindAllString(a, -1), number.FindAllString(b, -1), func(a, b string) bool {
			v, err := strconv.ParseFloat(a, 64)
			w, err2 := strconv.ParseFloat(b, 64)
			return a == b || err == nil && err2 == nil && math.Abs(v-w) <= 1e-12*math.Abs(v)
		})
}
