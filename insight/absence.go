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

// Absences are the reasons for which cells were not measured, each once, in the order in which they first occur. What this
// machine lacks is sorted by what to do about it: networks of which each needs something else, and that one thing would fix, are
// one absence.
func Absences(cells []result.Cell) []Absence {
	type reason struct {
		why         string
		unsupported bool
	}
	var all []Absence
	var needs [][]string // of each
	at := map[reason]int{}
	for _, c := range cells {
		r, need := reason{why: c.Skipped}, ""
		if c.Unsupported != "" {
			why := strings.TrimPrefix(c.Unsupported, "network "+c.Network+" is ")
			why = strings.TrimPrefix(why, "unsupported: ")
			if what, fix, found := cutLast(why, "; "); found && strings.HasPrefix(what, "needs ") {
				need, why = strings.TrimPrefix(what, "needs "), fix
			}
			r = reason{why, true}
		}
		if r.why == "" {
			continue
		}
		i, known := at[r]
		if !known {
			i = len(all)
			at[r] = i
			all, needs = append(all, Absence{Why: r.why, Unsupported: r.unsupported}), append(needs, nil)
		}
		all[i].Cells++
		if !slices.Contains(all[i].Networks, c.Network) {
			all[i].Networks = append(all[i].Networks, c.Network)
		}
		if need != "" && !slices.Contains(needs[i], need) {
			needs[i] = append(needs[i], need)
		}
	}
	for i := range all {
		switch {
		case len(needs[i]) == 1:
			all[i].Why = "needs " + needs[i][0] + "; " + all[i].Why
		case len(needs[i]) > 1:
			all[i].Why = "each needs one of " + strings.Join(needs[i], ", ") + "; " + all[i].Why
		}
	}
	return all
}

// cutLast cuts a text at the last place where sep stands.
func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}
