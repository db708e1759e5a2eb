package ssh_test

import (
	"strings"
	"testing"
	"time"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/servers"
	"netdelta/testbed/ssh"
	"netdelta/testbed/testbedtest"
)

// TestTestbed: testbeds whose nodes are SSH servers pass the suite of all testbeds, and leave the servers as they were.
func TestTestbed(t *testing.T) { // not parallel: the suite sets the environment
	f := newFarm(t, 2)
	before := f.before(t)
	s, err := ssh.Open(t.Context(), f.options())
	must(t, err)
	t.Run("suite", func(t *testing.T) {
		testbedtest.Run(t, testbedtest.Suite{
			Driver: s, Networks: []string{"routed", "vxlan"}, ReachByPod: func(string) bool { return true },
		})
	})
	must(t, s.Close())
	f.unchanged(t, before, 5*time.Second)
	t.Run("take", func(t *testing.T) { testTake(t, f, before) })
}

// testTake: a spare card is away while it is taken, carries packets of full size, and comes back as it was.
func testTake(t *testing.T, f *farm, before []string) {
	o := f.options()
	o.NIC = servers.NIC{Mode: "take", Card: "eth1"}
	s, err := ssh.Open(t.Context(), o)
	must(t, err)
	if now := f.state(t, 0); now == before[0] {
		t.Error("the card was not taken")
	}
	bed, err := s.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "routed"})
	must(t, err)
	at := bed.Pods()
	must(t, bed.Instruments().Observer.Fit(t.Context(), at[0], at[1], serverMTU))
	must(t, bed.Close())
	bed, err = s.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "routed", Link: testbed.Link{MTU: 9000}})
	must(t, err)
	at = bed.Pods()
	must(t, bed.Instruments().Observer.Fit(t.Context(), at[0], at[1], 9000))
	must(t, bed.Close())
	must(t, s.Close())
	f.unchanged(t, before, 5*time.Second)
}

// TestOneServer: a single server has the whole lab, in its own namespaces.
func TestOneServer(t *testing.T) { // not parallel: the suite sets the environment
	f := newFarm(t, 1)
	before := f.before(t)
	s, err := ssh.Open(t.Context(), f.options())
	must(t, err)
	t.Run("suite", func(t *testing.T) {
		testbedtest.Run(t, testbedtest.Suite{
			Driver: s, Networks: []string{"bridge", "routed"}, ReachByPod: func(string) bool { return true },
		})
	})
	must(t, s.Supports(t.Context(), testbed.Spec{Network: network.Metal, Link: testbed.Link{MTU: serverMTU}}))
	metal := testbed.Spec{Nodes: 1, PodsPerNode: 2, Network: network.Metal, Link: testbed.Link{MTU: serverMTU}}
	bed, err := s.Open(t.Context(), metal)
	must(t, err)
	must(t, bed.Close())
	metal.Nodes = 2
	if _, err := s.Open(t.Context(), metal); err == nil || !strings.Contains(err.Error(), "none is two nodes of its own network") {
		t.Errorf("one server as two nodes of its own network: %v", err)
	}
	must(t, s.Close())
	f.unchanged(t, before, 5*time.Second)
}
