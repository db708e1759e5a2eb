package experiment

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"netdelta/result"
	"netdelta/unit"
)

// onNodes describes a run that was measured on the nodes of a cluster: those that agents have seen, in place of this machine. What the
// cluster says of a node is kept; what only its own kernel can say is added.
func onNodes(e result.Environment, seen map[string]result.Environment) result.Environment {
	if len(seen) == 0 {
		return e // nothing was measured: the cluster is as it says of itself
	}
	about := *e.Cluster
	told := map[string]result.ClusterNode{}
	for _, n := range about.Nodes {
		told[n.Name] = n
	}
	about.Nodes = nil
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		is, n := seen[name], told[name]
		n.Name = name
		n.Kernel, n.Arch, n.CPU, n.Memory = is.Kernel, is.Arch, is.CPU, is.Memory
		n.Virtual, n.Clock = is.Virtual, is.Clock
		about.Nodes = append(about.Nodes, n)
	}
	e.Cluster = &about
	return summed(e)
}

// summed fills in what an environment has of one machine with what all nodes have alike, or with each of what they differ in.
func summed(e result.Environment) result.Environment {
	nodes := e.Cluster.Nodes
	texts := func(of func(result.ClusterNode) string) string {
		var all []string
		for _, n := range nodes {
			if t := of(n); t != "" && !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
		return strings.Join(all, ", ")
	}
	e.Kernel = texts(func(n result.ClusterNode) string { return n.Kernel })
	e.Arch = texts(func(n result.ClusterNode) string { return n.Arch })
	e.OS = texts(func(n result.ClusterNode) string { return n.OS })
	e.Virtual = texts(func(n result.ClusterNode) string { return n.Virtual })
	e.Clock = texts(func(n result.ClusterNode) string { return n.Clock })
	e.CPU = result.CPU{
		Model:       texts(func(n result.ClusterNode) string { return n.CPU.Model }),
		Governor:    texts(func(n result.ClusterNode) string { return n.CPU.Governor }),
		Mitigations: texts(func(n result.ClusterNode) string { return n.CPU.Mitigations }),
		Count:       least(nodes, func(n result.ClusterNode) int { return n.CPU.Count }),
	}
	e.Boot = "" // this machine's, which was not measured
	e.Memory = least(nodes, func(n result.ClusterNode) unit.Bytes { return n.Memory })
	return e
}

// least is the smallest that a node has of something.
func least[T cmp.Ordered](nodes []result.ClusterNode, of func(result.ClusterNode) T) T {
	var smallest, zero T
	for _, n := range nodes {
		if v := of(n); smallest == zero || v != zero && v < smallest {
			smallest = v
		}
	}
	return smallest
}
