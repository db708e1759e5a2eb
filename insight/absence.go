package insight

import (
	"slices"
	"strings"

	"netdelta/result"
)

// Absence is a reason for which cells were not measured, with what it keeps out.
type Absence struct {
	// Why is the reason, without the name of the network that it is about.
	Why string
	// Unsupported tells what this machine can't do from what the run left out.
	Unsupported bool
	// Networks are those of the cells, each once, and Cells is how many there are.
	Networks []string
	Cells    int
}

// Absences are the reasons for which cells were not measured, each once, in the order in which they first occur.
func Absences(cells []result.Cell) []Absence {
	type reason struct {
		why         string
		unsupported bool
	}
	var all []Absence
	at := map[reason]int{}
	for _, c := range cells {
		r := reason{why: c.Skipped}
		if c.Unsupported != "" {
			r = reason{strings.TrimPrefix(c.Unsupported, "network "+c.Network+" is unsupported: "), true}
		}
		if r.why == "" {
			continue
		}
		i, known := at[r]
		if !known {
			i = len(all)
			at[r] = i
			all = append(all, Absence{Why: r.why, Unsupported: r.unsupported})
		}
		all[i].Cells++
		if !slices.Contains(all[i].Networks, c.Network) {
			all[i].Networks = append(all[i].Networks, c.Network)
		}
	}
	return all
}
