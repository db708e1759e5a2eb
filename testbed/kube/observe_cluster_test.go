package kube

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/testbed"
	"netdelta/testbed/testbedtest"
)

// unwatched is why nodes are not looked at, when the way between the pods of a testbed is watched and counted.
func unwatched(t *testing.T, tb testbed.Testbed) (why string, places int) {
	t.Helper()
	from, to := tb.Pods()[0], tb.Pods()[1]
	w, err := tb.Instruments().PathObserver.Watch(t.Context(), from, to)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := to.Ports()
	seen, err := w.End(t.Context(), tb.Endpoint(from, to, first))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tb.Instruments().PathObserver.Count(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	return seen.Client.Unwatched + seen.Server.Unwatched, len(seen.Spaces)
}

// TestLostNodeAgentOnCluster: an agent on a node whose pod is deleted costs proofs of that node until the next testbed has it made anew, and
// nothing else; a note says so.
func TestLostNodeAgentOnCluster(t *testing.T) {
	t.Parallel()
	c := connect(t, "privileged")
	d := newDriver(t, c, Options{NodeAgent: true})
	build := func() testbed.Testbed {
		tb := openBed(t, d, testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: Pod})
		testbedtest.StartPeers(t, tb.Pods()...)
		return tb
	}
	first := build()
	if why, places := unwatched(t, first); why != "" || places != 4 {
		t.Fatalf("%d places are watched: %s", places, why)
	}
	agents, err := c.API.Pods(c.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: LabelRole + "=" + string(RoleNodeAgent)})
	if err != nil || len(agents.Items) != 2 {
		t.Fatalf("%d agents, %v", len(agents.Items), err)
	}
	victim := agents.Items[0]
	if err := c.deletePod(c.Namespace, victim.Name); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a pod that was made while the build is measured would disturb it
		if why, places := unwatched(t, first); !strings.Contains(why, victim.Name) || places != 3 {
			t.Errorf("%d places are watched, unwatched: %q", places, why)
		}
	}
	second := build()
	if why, places := unwatched(t, second); why != "" || places != 4 {
		t.Errorf("the next build: %d places are watched: %s", places, why)
	}
	if why, _ := unwatched(t, first); why != "" {
		t.Errorf("with another agent: %s", why)
	}
	if notes := second.Instruments().Notes(); !slices.ContainsFunc(notes, func(n string) bool {
		return strings.Contains(n, "the agent on node "+victim.Spec.NodeName+" was lost") && strings.Contains(n, "no proof from that node")
	}) {
		t.Errorf("the notes are %q", notes)
	}
}
