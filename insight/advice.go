package insight

import (
	"slices"

	"netdelta/result"
	"netdelta/stats"
)

// AdviceKind is what an advice is about.
type AdviceKind int

// The kinds.
const (
	AdviceFree   AdviceKind = iota // Networks cost nothing that matters
	AdviceSwitch                   // take To rather than From
	AdviceDisk                     // the disk bounds Settings
	AdviceLink                     // the links bound Settings
	AdviceMore                     // Open of Headlines deltas are unresolved
)

// Advice is a change that headline deltas speak for. It is about costs alone; what else a network is chosen for is for the reader to
// weigh.
type Advice struct {
	Kind      AdviceKind
	Workload  string
	Placement result.Placement
	Networks  []string
	Baseline  string
	Margin    float64
	From, To  result.Delta
	Settings  []result.Setting
	// Open deltas of Headlines are unresolved; about Need builds would settle them, 0 if that is not known.
	Open, Headlines, Need int
	Exact, Imported       bool // of the run
}

// Advise says what to change: which network to take where several were measured, where host networking buys nothing, and what a
// run lacked.
func Advise(run result.Run) []Advice {
	var all []Advice
	parts := Parts(run)
	for _, p := range []result.Placement{result.SameNode, result.CrossNode} {
		seen := map[string]bool{}
		for _, c := range run.Cells {
			if !seen[c.Workload] {
				seen[c.Workload] = true
				all = append(all, choose(parts, p, c.Workload)...)
			}
		}
	}
	return append(append(all, boundAdvice(parts)...), more(run)...)
}

// choose compares the networks of a workload over all settings of it in one placement: advice is given only where all of
// them agree.
func choose(parts []Part, p result.Placement, load string) []Advice {
	var free, best, worst map[string]bool
	var sample []result.Delta
	margin := 0.0
	for _, part := range parts {
		if s := part.Setting; s.Placement != p || s.Workload != load || len(part.Cells) == 0 {
			continue
		}
		margin = part.Margin
		var intervals, same []result.Delta
		for _, d := range part.Headlines() {
			if HasInterval(d) && d.Ratio > 0 {
				intervals = append(intervals, d)
				if d.Verdict == string(stats.Same) {
					same = append(same, d)
				}
			}
		}
		if len(intervals) == 0 {
			return nil
		}
		least, most, _ := extremes(intervals)
		if len(least) == len(intervals) {
			least = nil
		}
		free, best, worst = both(free, same), both(best, least), both(worst, most)
		if len(sample) == 0 {
			sample = intervals
		}
	}
	var all []Advice
	if names := Names(within(sample, free)); len(names) > 0 {
		all = append(all, Advice{Kind: AdviceFree, Workload: load, Placement: p, Networks: names, Baseline: sample[0].Baseline, Margin: margin})
	}
	if from, to := within(sample, worst), within(sample, best); len(worst) == 1 && len(best) == 1 && len(from) > 0 && len(to) > 0 {
		all = append(all, Advice{Kind: AdviceSwitch, Workload: load, Placement: p, From: from[0], To: to[0]})
	}
	return all
}

// more says what a run lacked for the verdicts that it leaves open.
func more(run result.Run) []Advice {
	a := Advice{Kind: AdviceMore, Exact: run.Exact != nil, Imported: run.Testbed == result.Imported}
	for _, d := range run.Deltas {
		if !d.Headline {
			continue
		}
		a.Headlines++
		if d.Verdict == string(stats.Unresolved) {
			a.Open++
			a.Need = max(a.Need, d.Need)
		}
	}
	if a.Open == 0 {
		return nil
	}
	return []Advice{a}
}

// both are the names that are in a set and among deltas; a nil set holds every name.
func both(set map[string]bool, deltas []result.Delta) map[string]bool {
	common := map[string]bool{}
	for _, name := range Names(deltas) {
		if set == nil || set[name] {
			common[name] = true
		}
	}
	return common
}

// within are the deltas whose names are in a set.
func within(deltas []result.Delta, set map[string]bool) []result.Delta {
	var own []result.Delta
	for _, d := range deltas {
		if set[Name(d.Network, d.Path)] {
			own = append(own, d)
		}
	}
	return own
}

// boundOf is what bounded a cell in more than half of its trials that count, "" if nothing did or that is not known.
func boundOf(cell string, all []batch) string {
	by, known := map[string]int{}, 0
	for _, s := range all {
		if t := s.good(cell); t != nil && t.trial.Bound != nil {
			by[t.trial.Bound.By]++
			known++
		}
	}
	for name, n := range by {
		if 2*n > known {
			return name
		}
	}
	return ""
}

// Bound is what kept some networks of a setting from doing more.
type Bound struct {
	By       string // result.BoundCPU and its like
	Networks []string
}

// Bounds says what bounded the networks of a setting, by their headline deltas and the baseline's; it is empty where that is not known.
func (p Part) Bounds() []Bound {
	var all []Bound
	add := func(by, name string) {
		if by == "" {
			return
		}
		i := slices.IndexFunc(all, func(b Bound) bool { return b.By == by })
		if i < 0 {
			i, all = len(all), append(all, Bound{By: by})
		}
		if !slices.Contains(all[i].Networks, name) {
			all[i].Networks = append(all[i].Networks, name)
		}
	}
	for _, d := range p.Null {
		if d.Headline {
			add(d.Bound, d.Baseline)
		}
	}
	for _, d := range p.Deltas {
		if d.Headline {
			add(d.Bound, Name(d.Network, d.Path))
		}
	}
	return all
}

// boundAdvice names the settings that something else than the network holds back.
func boundAdvice(parts []Part) []Advice {
	disk, link := Advice{Kind: AdviceDisk}, Advice{Kind: AdviceLink}
	for _, part := range parts {
		heads := part.Headlines()
		all := func(bound string) bool {
			return len(heads) > 0 && !slices.ContainsFunc(heads, func(d result.Delta) bool { return d.Bound != bound })
		}
		switch {
		case all(result.BoundDisk):
			disk.Settings = append(disk.Settings, part.Setting)
		case all(result.BoundLink):
			link.Settings = append(link.Settings, part.Setting)
		}
	}
	return slices.DeleteFunc([]Advice{disk, link}, func(a Advice) bool { return len(a.Settings) == 0 })
}
