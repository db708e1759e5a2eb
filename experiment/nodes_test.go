package experiment

import (
	"slices"
	"testing"

	"netdelta/result"
)

// On a cluster's nodes, what a lab's part there saw of a node is said of that node, not of one more.
func TestNodesOfServers(t *testing.T) {
	e := result.Environment{Cluster: &result.Cluster{}, Servers: []result.Server{{Name: "w1"}, {Name: "w2"}}}
	seen := map[string]result.Environment{"node0": {Kernel: "6.1"}, "node1": {Kernel: "6.1"}, "w1": {Kernel: "6.1"}}
	var names []string
	for _, n := range onNodes(e, seen).Cluster.Nodes {
		names = append(names, n.Name)
	}
	if !slices.Equal(names, []string{"w1", "w2"}) || len(seen) != 3 {
		t.Errorf("the nodes are %q", names)
	}
}
