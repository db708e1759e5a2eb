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
				cells = append(cells, cell(s.Baseline, at, result.RoleBaseline), cell(s.Baseline, at, result.RoleControl))
				for _, n := range s.Networks {
					if n != s.Baseline {
						cells = append(cells, cell(n, at, result.RoleCell))
					}
				}
			}
		}
	}
	return cells
}

func cell(network string, at result.Setting, role result.Role) result.Cell {
	name := network
	if role == result.RoleControl {
		name += "+twin" // no network has a plus in its name
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
		parts = append(parts, short(l.Factor)+"="+strings.TrimSuffix(l.Value, "/s"))
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
