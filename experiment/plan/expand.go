package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/unit"
)

// PathPod is the path of a client that names the server by its pod. It is the only one for now.
const PathPod = "pod"

// Expand returns every combination of the study's levels as cells, each once: workload by workload, and within a setting the
// baseline, its A/A control, and then the other networks in the order of the study.
func Expand(s *study.Study) []result.Cell {
	var cells []result.Cell
	known := map[result.Setting]bool{}
	for _, w := range s.Workloads {
		for _, p := range w.Levels.Join(s.Factors).Combinations() {
			for _, placement := range s.Placement {
				at := result.Setting{Workload: w.Name, Params: p, Placement: placement}
				if known[at] {
					continue
				}
				known[at] = true
				cells = append(cells, cell(s.Baseline, at, result.RoleBaseline), cell(s.Baseline, at, result.RoleTwin))
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
	if role == result.RoleTwin {
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
	var parts []string
	add := func(set bool, format string, value any) {
		if set {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	add(p.Message != 0, "%s", exact(p.Message))
	add(p.Connections != 0, "conns=%d", p.Connections)
	add(p.Rate != 0, "rate=%s", rate(p.Rate))
	add(p.Search, "rate=%s", "search")
	add(p.RequestRate != 0, "rps=%s", strconv.FormatFloat(p.RequestRate, 'f', -1, 64))
	add(p.File != 0, "file=%s", exact(p.File))
	add(p.Reconnect, "%s", "reconnect")
	add(p.Store != "", "%s", p.Store)
	add(p.Operation != "", "%s", p.Operation)
	add(p.Block != 0, "%s", exact(p.Block))
	add(p.Depth != 0, "depth=%d", p.Depth)
	add(p.Clients != 0, "clients=%d", p.Clients)
	add(p.Mix != "", "%s", p.Mix)
	add(p.Engine != "", "by=%s", p.Engine)
	add(p.Target != "", "to=%s", target(p.Target))
	add(p.StorageClass != "", "class=%s", p.StorageClass)
	add(p.CPU != "", "cpu=%s", p.CPU)
	add(p.BusyPoll != 0, "poll=%s", strings.Replace(p.BusyPoll.String(), "µ", "u", 1))
	add(p.CongestionControl != "", "cc=%s", p.CongestionControl)
	add(p.Nagle, "%s", "nagle")
	add(p.MTU != 0, "mtu=%d", p.MTU)
	add(p.Family != "", "%s", p.Family)
	for _, l := range p.Conditions.Levels() {
		// A slash parts an ID; rps is taken by the rate of requests.
		add(true, "%s", short(l.Factor)+"="+strings.TrimSuffix(l.Value, "/s"))
	}
	return parts
}

// target is a URL within an ID, which slashes part.
func target(text string) string {
	return strings.NewReplacer("~", "%7E", "/", "~").Replace(strings.Replace(text, "://", ":", 1))
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

// exact prints a size without rounding, so that two sizes never share a name.
func exact(b unit.Bytes) string {
	text, err := b.MarshalText()
	if err != nil {
		return strconv.FormatInt(int64(b), 10) + "B"
	}
	return string(text)
}

// rate prints a rate without rounding and without a slash, which parts an ID.
func rate(r unit.BitsPerSecond) string {
	text, err := r.MarshalText()
	if err != nil {
		return strconv.FormatFloat(float64(r), 'f', -1, 64)
	}
	return strings.TrimSuffix(string(text), "/s")
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
