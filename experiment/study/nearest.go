package study

import (
	"fmt"
	"slices"
	"strings"

	meant "netdelta/internal/suggest"
)

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
