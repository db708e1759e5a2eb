package study

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/testbed"
)

// HostNetwork is the network of a cluster that pods have when they are in their node's: it is there in every state of the cluster.
const HostNetwork = "host"

// AsFound is the state of a cluster in which nothing is changed.
const AsFound = "as found"

// AcrossStates says whether deltas are taken across states of the cluster: where the baseline is a network that one of them has. A
// baseline of host stands in each state together with the networks.
func (s *Study) AcrossStates() bool { return len(s.Changes) > 0 && s.Baseline != HostNetwork }

// Changed is what the study does to the cluster, as a record has it.
func (s *Study) Changed() (all []result.Changed) {
	typed := func(actions []testbed.Action) (lines []string) {
		return gather.Each(actions, func(a testbed.Action) string { return a.String() })
	}
	for _, c := range s.Changes {
		all = append(all, result.Changed{For: c.Network, Expect: string(c.Expect), Apply: typed(c.Apply), Undo: typed(c.Restore)})
	}
	return all
}

// ChangesLevels says whether levels of factors are made by changing the cluster. A baseline then has one state at each.
func (s *Study) ChangesLevels() bool { return len(s.changedKeys()) > 0 }

// State names the state of the cluster that a network is measured in at a combination of levels: the first network that is changed in the
// same way, and the levels that are changes. It is "" where the study changes nothing.
func (s *Study) State(network string, p result.Params) string {
	if len(s.Changes) == 0 {
		return ""
	}
	if all := s.changesOf(network, p); len(all) > 0 {
		return stateName(all)
	}
	return AsFound
}

func stateName(changes []testbed.Change) string {
	names := gather.Each(changes, func(c testbed.Change) string { return c.Network })
	return strings.Join(names, ", ")
}

// changesOf are the changes that lead to a state, in the order in which they are made: the network's, then the levels'.
func (s *Study) changesOf(network string, p result.Params) (all []testbed.Change) {
	if change, changes := s.Change(network); changes {
		all = append(all, s.Changes[slices.IndexFunc(s.Changes, change.Same)])
	}
	for _, key := range s.changedKeys() {
		d, _ := parameterOf(s.parameters(), key)
		if change, changes := s.Change(key + "=" + written(get(p, d))); changes {
			all = append(all, change)
		}
	}
	return all
}

// StateChanges are the changes of a study, and one more for each state that takes several: they are made one after the other, and undone in
// the opposite order. Each has its state's name, but for networks that share a state with an earlier one.
func (s *Study) StateChanges() []testbed.Change {
	all := slices.Clone(s.Changes)
	for _, w := range s.Workloads {
		for _, p := range s.Combinations(w) {
			for _, n := range s.Networks {
				parts := s.changesOf(n, p)
				name := stateName(parts)
				if len(parts) < 2 || slices.ContainsFunc(all, func(c testbed.Change) bool { return c.Network == name }) {
					continue
				}
				whole := testbed.Change{Network: name, Kept: true}
				for _, c := range parts {
					whole.Apply, whole.Ready = slices.Concat(whole.Apply, c.Apply), slices.Concat(whole.Ready, c.Ready)
					whole.Restore, whole.Settle = slices.Concat(c.Restore, whole.Restore), slices.Concat(whole.Settle, c.Settle)
					whole.Within, whole.Kept = max(whole.Within, c.Within), whole.Kept && c.Kept
				}
				all = append(all, whole)
			}
		}
	}
	return all
}

// changedKeys are the factors of which levels are changes, in the order of the study.
func (s *Study) changedKeys() (keys []string) {
	for _, c := range s.Changes {
		if key, _, is := strings.Cut(c.Network, "="); is && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Asked are parameters without those that the cluster has by its state: the testbed is not asked for them.
func (s *Study) Asked(p result.Params) result.Params {
	for _, key := range s.changedKeys() {
		if d, known := parameterOf(s.parameters(), key); known {
			p = p.With(d, d.Kind.Zero())
		}
	}
	return p
}

// changes reads the levels of factors that are changes.
func (r *reader) changes(path string, n *yaml.Node) {
	count := 0
	r.each(path, n, func() int { return count }, func(path string, n *yaml.Node) {
		count++
		c := testbed.Change{Uses: DefaultUses, Within: DefaultWithin}
		if r.mapping(path, "a level that changes the cluster", n, readersOf(levelFields(r, &c))); c.Network == "" {
			if !r.bad[path] {
				r.fail(path, r.place(n), "a change has no level", "say which level of a factor it makes: level: mtu=9000")
			}
			return
		}
		r.study.Changes = append(r.study.Changes, c)
	})
}

// levelFields are the keys of a level that changes the cluster.
func levelFields(r *reader, c *testbed.Change) []field {
	return append([]field{text(r, "level", &c.Network)}, stepFields(r, c)...)
}

// changedLevels checks the levels that are changes.
func (c *checker) changedLevels() {
	i := -1
	for _, n := range c.study.Changes {
		key, level, is := strings.Cut(n.Network, "=")
		if slices.Contains(c.study.Networks, n.Network) {
			continue
		}
		i++
		path := fmt.Sprintf("changes[%d]", i)
		d, known := parameterOf(c.study.parameters(), key)
		switch {
		case !is || !known || !c.isWhole(d):
			c.fail(path+".level", fmt.Sprintf("%s is no level that a cluster could be changed to", printed(n.Network)),
				"write mtu or a condition, and one of its levels: mtu=9000, encryption=wireguard; of a policy or a service make a network that changes the cluster")
		case !slices.ContainsFunc(c.study.Factors[key], func(v any) bool { return written(v) == level }):
			c.fail(path+".level", fmt.Sprintf("%s is not one of the factors' levels", printed(n.Network)), fmt.Sprintf("add %s to factors, with at least one more level of %s", level, key))
		case c.study.Baseline == HostNetwork && len(c.study.changing()) > 0:
			c.fail(path, "networks and levels both change the cluster, and the baseline host stands in the states of several networks", "take a baseline that is one state of the cluster: pod")
		}
		c.steps(path, "level", n)
	}
}

// isWhole says whether a level of a parameter says all of a condition: of a policy or a service there would be a number of rules or services as
// well, which a cluster has in its own way.
func (c *checker) isWhole(d result.Parameter) bool {
	return (d.Key == "mtu" || strings.HasPrefix(d.Field, "Conditions.")) &&
		!slices.ContainsFunc(c.study.parameters(), func(o result.Parameter) bool { return needs(d, o.Key) || needs(o, d.Key) })
}

// levelsMeasured refuses a claim between levels of which a study that changes the cluster has not both: hours later it would be untested.
func (c *checker) levelsMeasured(path string, clauses Expectation) {
	if len(c.study.Changes) == 0 || len(c.errs) > 0 {
		return
	}
	var cells []result.Cell
	for _, w := range c.study.Workloads {
		var defaults result.Params
		if i := slices.IndexFunc(c.known.Workloads, func(k KnownWorkload) bool { return k.Name == w.Name }); i >= 0 {
			defaults = c.known.Workloads[i].Defaults
		}
		for _, p := range c.study.Combinations(w) {
			p = WithDefaults(p, defaults)
			for _, at := range c.study.Placement {
				cells = append(cells, result.Cell{Workload: w.Name, Params: p, Placement: at, Path: HostNetwork})
			}
		}
	}
	for _, clause := range clauses {
		for _, level := range []Condition{clause.From, clause.To} {
			if clause.BetweenLevels() && level.Key != "path" && !slices.ContainsFunc(cells, level.Holds) {
				c.fail(path, fmt.Sprintf("%s is no level of this study", level), fmt.Sprintf("add it: factors: {%s: [...]}", level.Key))
			}
		}
	}
}

// changesNode writes the levels that are changes; nil where there are none.
func (s *Study) changesNode() *yaml.Node {
	levels := slices.DeleteFunc(slices.Clone(s.Changes), func(c testbed.Change) bool { return !strings.Contains(c.Network, "=") })
	if len(levels) == 0 {
		return nil
	}
	return block(levels, func(c testbed.Change) *yaml.Node {
		return mapping(0, levelFields(nil, &c)...)
	})
}
