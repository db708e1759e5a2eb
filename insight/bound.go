package insight

import (
	"slices"
	"strings"

	"netdelta/result"
)

// boundOf is what bounded a cell in more than half of its trials that count, "" if nothing did or nobody could tell.
func boundOf(cell string, all []sitting) string {
	by, told := map[string]int{}, 0
	for _, s := range all {
		if t := s.good(cell); t != nil && t.trial.Bound != nil {
			by[t.trial.Bound.By]++
			told++
		}
	}
	for name, n := range by {
		if 2*n > told {
			return name
		}
	}
	return ""
}

// Bounded says what bounded the networks of a setting, of the part of a run that is about it, and what its deltas are therefore:
// "" where nobody knows. It speaks of the headline's deltas and of the baseline.
func Bounded(part result.Run) string {
	var order []string
	by := map[string][]string{}
	add := func(bound, name string) {
		if bound == "" || slices.Contains(by[bound], name) {
			return
		}
		if by[bound] == nil {
			order = append(order, bound)
		}
		by[bound] = append(by[bound], name)
	}
	for _, d := range part.Null {
		if d.Headline {
			add(d.Bound, d.Baseline)
		}
	}
	for _, d := range part.Deltas {
		if d.Headline {
			add(d.Bound, Name(d.Network, d.Path))
		}
	}
	if len(order) == 0 {
		return ""
	}
	if len(order) == 1 {
		return "Bounded by " + boundName(order[0]) + ": " + boundMeans(order[0]) + "."
	}
	parts := make([]string, len(order))
	for i, bound := range order {
		parts[i] = list(by[bound]) + " by " + boundName(bound)
	}
	return "Bounded differently: " + strings.Join(parts, ", ") + "; the deltas tell of more than one thing."
}

// boundName is a bound in a sentence.
func boundName(bound string) string {
	switch bound {
	case result.BoundCPU:
		return "CPU"
	case result.BoundLink:
		return "the link"
	case result.BoundDisk:
		return "the disk"
	}
	return bound
}

// boundMeans is what deltas under a bound are.
func boundMeans(bound string) string {
	switch bound {
	case result.BoundCPU:
		return "these deltas are CPU costs"
	case result.BoundLink:
		return "these deltas are what headers take of the link's rate, not what networks could do on a faster one"
	case result.BoundDisk:
		return "networks can't differ by more than the disk lets them"
	}
	return "no link, disk or processor is full, and each answer is waited for"
}

// boundAdvice says what won't help the workloads that something else than the network holds back.
func boundAdvice(parts []Part) []result.Advice {
	var disks, links []string
	add := func(to *[]string, load string) {
		if !slices.Contains(*to, load) {
			*to = append(*to, load)
		}
	}
	for _, part := range parts {
		heads := Headlines(part.Run.Deltas, part.Setting)
		if len(heads) == 0 {
			continue
		}
		all := func(bound string) bool {
			return !slices.ContainsFunc(heads, func(d result.Delta) bool { return d.Bound != bound })
		}
		switch {
		case all(result.BoundDisk):
			add(&disks, Load(part.Setting))
		case all(result.BoundLink):
			add(&links, Load(part.Setting))
		}
	}
	var advice []result.Advice
	if len(disks) > 0 {
		advice = append(advice, result.Advice{
			Says: "Don't change the network for " + list(disks) + ": the disk is what bounds it.",
			Why:  "Its operations take nearly all that the server's storage does without a network.",
		})
	}
	if len(links) > 0 {
		advice = append(advice, result.Advice{
			Says: "For " + list(links) + ", a faster link or smaller headers help; a network that only costs less CPU does not.",
			Why:  "The links carried at least 90% of their rate on every network.",
		})
	}
	return advice
}
