package plan

import (
	"slices"
	"strings"
	"time"

	"netdelta/experiment/study"
	"netdelta/internal/gather"
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

// HaveStates says whether cells are measured in states of a cluster, one after the other.
func HaveStates(cells []result.Cell) bool { return slices.ContainsFunc(cells, counts) }

// counts says whether a cell is measured in one state of its own, and for its own sake.
func counts(c result.Cell) bool { return c.State != "" && c.Role != result.RoleReference }

// States lists the states that cells are measured in for their own sake, in the order of the cells.
func States(cells []result.Cell) []string {
	var all []string
	for _, c := range cells {
		if counts(c) && !slices.Contains(all, c.State) {
			all = append(all, c.State)
		}
	}
	return all
}

// stateOf is the state of the cells of a build, "" without states. The baseline's A/A control is of the baseline's.
func stateOf(cells []result.Cell) string {
	for _, c := range cells {
		if counts(c) {
			return FirstState(c.State)
		}
	}
	return ""
}

// byState sorts cells into those that can be measured side by side: each part has the cells of one state, with the baselines that stand
// in every state. Without states there is one part, of all cells.
func byState(cells []result.Cell) [][]result.Cell {
	states := States(cells)
	if len(states) == 0 {
		return [][]result.Cell{cells}
	}
	all := make([][]result.Cell, len(states))
	for i, state := range states {
		settings := map[result.Setting]bool{}
		for _, c := range cells {
			if c.State == state && counts(c) {
				settings[c.Setting()] = true
			}
		}
		for _, c := range cells {
			if (c.State == state || c.State == "") && settings[c.Setting()] {
				all[i] = append(all[i], c)
			}
		}
	}
	return all
}

// nextState is the part of the participants that the next build has: a random one of those that were in the fewest builds. So each
// state has its turn, in a fresh random order, before one has its next, also in a run that is resumed or in which some are done.
func (s *Scheduler) nextState(participants []result.Cell) []result.Cell {
	parts := byState(participants)
	if len(parts) == 0 {
		return participants // nothing but baselines
	}
	var next []result.Cell
	fewest := 0
	for _, i := range Order(s.rules.Seed, s.next, -1, len(parts)) {
		if b := s.fewestBuilds(parts[i]); next == nil || b < fewest {
			next, fewest = parts[i], b
		}
	}
	return next
}

// fewestBuilds is the least number of builds that a cell of the part was in.
func (s *Scheduler) fewestBuilds(part []result.Cell) int {
	fewest := -1
	for _, c := range part {
		if b := s.builds[c.ID]; counts(c) && (fewest < 0 || b < fewest) {
			fewest = b
		}
	}
	return fewest
}

// behind says of a baseline or A/A control with a state of its own that another cell of its setting was in more builds: the block is not
// complete without it, whatever is known by then.
func (s *Scheduler) behind(c result.Cell) bool {
	if c.Role == result.RoleCell || !counts(c) {
		return false
	}
	return slices.ContainsFunc(s.cells, func(o result.Cell) bool {
		return counts(o) && o.Setting() == c.Setting() && s.builds[o.ID] > s.builds[c.ID]
	})
}

// Visit is a planned visit to a state of the cluster.
type Visit struct {
	State    string
	Networks []string      // that are measured there, the baseline first
	Takes    time.Duration // with as many rounds as it has at least
}

// Visits lists the visits of one block, and says how long all blocks take; there are none without states.
func Visits(cells []result.Cell, costs Costs, rules Rules) (all []Visit, whole time.Duration) {
	cells = Measured(cells)
	n := needOf(costs, rules)
	for i, part := range byState(cells) {
		if !HaveStates(part) {
			return nil, 0
		}
		v := Visit{State: States(cells)[i], Takes: roundUp(costs.Build + n.of(part))}
		for _, c := range part {
			v.Networks = gather.Once(v.Networks, c.Network)
		}
		all = append(all, v)
	}
	return all, roundUp(n.with(cells).in(rules.Builds))
}
