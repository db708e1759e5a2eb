package insight

import (
	"slices"

	"netdelta/result"
)

// boundOf is what bounded a cell in more than half of its trials that count, "" if nothing did or that is not known.
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
