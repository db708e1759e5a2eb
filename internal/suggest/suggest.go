// Package suggest finds the name that somebody who mistyped one probably meant.
package suggest

import (
	"strings"

	"netdelta/internal/gather"
)

// Nearest returns the known name with the least edit distance to the given one, if it is near enough to be a slip: a third
// of the name's length, and at least one; or, failing that, the only known name that begins with what was given. Case, and
// whether words are joined by dashes or underscores, make no difference.
func Nearest(name string, known []string) (string, bool) {
	if len(name) > 64 { // an edit distance costs the product of the lengths; no slip is this large
		return "", false
	}
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	best, least := "", max(1, len(name)/3)+1
	for _, k := range known {
		if d := distance([]rune(name), []rune(strings.ToLower(strings.ReplaceAll(k, "_", "-")))); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return best, true
	}
	starts := gather.Where(known, func(k string) bool { return len(name) >= 2 && strings.HasPrefix(k, name) })
	if len(starts) == 1 {
		return starts[0], true
	}
	return "", false
}

// distance counts the insertions, deletions, replacements and swaps of neighbours that turn a into b (optimal string
// alignment).
func distance(a, b []rune) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := above[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(above[j]+1, row[j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
