package experiment

import (
	"context"
	"slices"
	"strings"
	"testing"

	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/testbed"
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

// Where there is one node, what needs two is unsupported, and the rest is measured on one.
func TestTooFewNodes(t *testing.T) {
	able := testbed.Capabilities{Places: func(_ context.Context, nodes int) error {
		if nodes > 1 {
			return &testbed.UnsupportedError{Feature: "placement cross-node", Need: "2 nodes", Fix: "add one"}
		}
		return nil
	}}
	p := Plan{Cells: []result.Cell{{ID: "near", Placement: result.SameNode}, {ID: "far", Placement: result.CrossNode}}}
	s := &study.Study{Testbed: study.Testbed{Nodes: 2}}
	if n := p.nodes(s, able); n != 2 {
		t.Errorf("with cells across nodes: %d nodes", n)
	}
	if err := p.refuse(p.unplaced(t.Context(), able)); err != nil {
		t.Fatal(err)
	}
	if p.Cells[0].Unsupported != "" || !strings.HasPrefix(p.Cells[1].Unsupported, "placement cross-node is unsupported") {
		t.Errorf("got %+v", p.Cells)
	}
	if n := p.nodes(s, able); n != 1 {
		t.Errorf("without cells across nodes: %d nodes", n)
	}
	if n := p.nodes(s, testbed.Capabilities{}); n != 2 {
		t.Errorf("where nodes are made as they are asked for: %d", n)
	}
}

// Where the provider does not describe its nodes, the record has what the first one is, and not what this machine is.
func TestNodesDescribeThemselves(t *testing.T) {
	here := result.Environment{Kernel: "6.1", Boot: "here", Clock: "tsc", CPU: result.CPU{Model: "fast"}, Virtual: "QEMU"}
	e := onNodes(here, map[string]result.Environment{"node1": {Kernel: "5.0"}, "node0": {Kernel: "6.12", Boot: "there", Clock: "tsc", CPU: result.CPU{Model: "emulated"}}})
	if e.Kernel != "6.12" || e.Boot != "there" || e.CPU.Model != "emulated" || e.Virtual != "QEMU" {
		t.Errorf("the environment is %+v", e)
	}
}

// The record says which processors of a server took its cards' interrupts, and that one of these was given to a workload.
func TestInterruptsOfServers(t *testing.T) {
	servers := []result.Server{{Name: "a", InterruptCounts: []uint64{12345, 0, 7}}, {Name: "b", InterruptCounts: []uint64{0, 0}}, {Name: "c"}}
	notes := interruptNotes(servers, &result.Pins{Client: 2, Server: 0}) // a few are no matter
	want := "interrupts of the cards of a while it was measured: 12,345 on CPU 0, 7 on CPU 2"
	if !slices.Equal(notes, []string{want}) || !slices.Equal(interruptNotes(servers, nil), notes) {
		t.Errorf("%q", notes)
	}
	notes = interruptNotes(servers, &result.Pins{Client: 0, Server: 7})
	if len(notes) != 1 || !strings.HasPrefix(notes[0], want+"; the client ran on CPU 0 and was held up by them") {
		t.Errorf("%q", notes)
	}
}

// What the doctor finds on servers is in the record under the names that the user gave them, and once where it is the same on several.
func TestFindingsOnServers(t *testing.T) {
	seen := map[string]result.Environment{
		"node0": {Clock: "hpet", CPU: result.CPU{Governor: "powersave", Idle: "C1, 2 µs"}}, "node1": {Clock: "tsc", CPU: result.CPU{Governor: "powersave"}},
	}
	before := result.Finding{Topic: "placement"}
	e := onNodes(result.Environment{Servers: []result.Server{{Name: "a"}, {Name: "b"}}, Findings: []result.Finding{before}}, seen)
	var topics []string
	for _, f := range e.Findings {
		topics = append(topics, f.Topic)
	}
	if want := []string{"placement", "clock on a", "governor on all nodes"}; !slices.Equal(topics, want) || e.Cluster != nil {
		t.Errorf("the doctor's findings are about %q, want %q", topics, want)
	}
}
