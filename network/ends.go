package network

import "fmt"

// What is shown of a long list: as much as shows its form, and what comes last, which is often what differs.
const (
	shownFirst = 3
	shownLast  = 6
	shownAll   = 20
)

// ends renders a list, a line each; of a long one the first and the last lines, and how many there are between them.
func ends[T fmt.Stringer](list []T) []string {
	var lines []string
	for k, v := range list {
		switch {
		case len(list) <= shownAll || k < shownFirst || k >= len(list)-shownLast:
			lines = append(lines, v.String())
		case k == shownFirst:
			lines = append(lines, fmt.Sprintf("# and %d more", len(list)-shownFirst-shownLast))
		}
	}
	return lines
}
