package plan

import (
	"slices"
	"strings"

	"netdelta/experiment/study"
	"netdelta/result"
)

// PathPod is the path of a client that names the server by its pod. It is the only one for now.
const PathPod = "pod"

// Expand returns every combination of the study's levels as cells, each once: workload by workload, and within a setting the
// baseline, its A/A control, and then the other networks in the order of the study.
func Expand(s *study.Study) []result.Cell {
	var cells []result.Cell
	known := map[result.Setting]bool{}
	for _, w := range s.Workloads {
		for _, p := range s.Combinations(w) {
			for _, placement := range s.Placement {
				at := result.Setting{Workload: w.Name, Params: p, Placement: placement}
				if known[at] {
					continue
				}
				known[at] = true
				cells = append(cells, ofSetting(s, at)...)
			}
		}
	}
	return cells
}

// ofSetting are the cells of one setting: the baseline and its A/A control first.
func ofSetting(s *study.Study, at result.Setting) []result.Cell {
	across, base := s.AcrossStates(), s.State(s.Baseline, at.Params)
	cells := []result.Cell{cell(s.Baseline, at, result.RoleBaseline), cell(s.Baseline, at, result.RoleControl)}
	switch {
	case across:
		cells[0].State, cells[1].State = base, base+again
	case s.ChangesLevels(): // of one state at each level
		cells[0].State, cells[1].State = base, base
	}
	for _, n := range s.Networks {
		if n == s.Baseline {
			continue
		}
		c := cell(n, at, result.RoleCell)
		if c.State = s.State(n, at.Params); across && n == study.HostNetwork {
			c.State = base
		}
		cells = append(cells, c)
	}
	if across && slices.Contains(s.Networks, study.HostNetwork) {
		for _, state := range States(cells) {
			if state != base {
				cells = append(cells, reference(state, at))
			}
		}
	}
	return cells
}

// again marks the A/A control: no network has a plus in its name.
const again = "+twin"

// FirstState is the state that a visit is to: the baseline's, where it is its A/A control.
func FirstState(state string) string { return strings.TrimSuffix(state, again) }

// reference is the nodes' own network as it is measured together with others, in their state.
func reference(state string, at result.Setting) result.Cell {
	c := cell(study.HostNetwork, at, result.RoleReference)
	c.State = state
	c.ID = study.HostNetwork + "@" + strings.ReplaceAll(state, " ", "-") + strings.TrimPrefix(c.ID, study.HostNetwork)
	return c
}

func cell(network string, at result.Setting, role result.Role) result.Cell {
	name := network
	if role == result.RoleControl {
		name += again
	}
	parts := append([]string{name, string(at.Placement), at.Workload}, levels(at.Params)...)
	return result.Cell{
		ID: strings.Join(parts, "/"), Network: network, Placement: at.Placement, Path: PathPod, Workload: at.Workload,
		Params: at.Params, Role: role,
	}
}

// levels names the levels that are set, exactly and in a fixed order: "300B", "conns=8", "mtu=9000", "ipv6".
func levels(p result.Params) []string {
	parts := p.Names()
	for _, l := range p.Conditions.Levels() {
		// A slash parts an ID; rps is taken by the rate of requests.
		parts = append(parts, short(l.Factor)+"="+strings.ReplaceAll(l.Value, "/s", ""))
	}
	return parts
}

// short is a condition's name within an ID.
func short(factor string) string {
	switch factor {
	case "link.rate":
		return "link"
	case "rps":
		return "steering"
	}
	return strings.TrimPrefix(strings.TrimPrefix(factor, "link."), "offload.")
}

// Describe names a setting's workload and levels for people: "tcp-rr 300B".
func Describe(workload string, p result.Params) string {
	return strings.Join(append([]string{workload}, levels(p)...), " ")
}

// Measured returns the cells that take part: neither unsupported nor skipped, and with a baseline to be held against.
func Measured(cells []result.Cell) []result.Cell {
	based := map[result.Setting]bool{}
	usable := func(c result.Cell) bool { return c.Unsupported == "" && c.Skipped == "" }
	for _, c := range cells {
		if c.Role == result.RoleBaseline && usable(c) {
			based[c.Setting()] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(cells), func(c result.Cell) bool { return !usable(c) || !based[c.Setting()] })
}
