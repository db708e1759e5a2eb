package ssh_test

import (
	"testing"
	"time"

	"netdelta/testbed/ssh"
	"netdelta/testbed/testbedtest"
)

// TestTestbed: testbeds whose nodes are SSH servers pass the suite of all testbeds, over a card that the server keeps and over a spare
// one, and leave the servers as they were.
func TestTestbed(t *testing.T) {
	f := newFarm(t, 2)
	for _, nic := range []ssh.NIC{{Mode: "macvlan"}, {Mode: "take", Card: "eth1"}} {
		t.Run(nic.Mode, func(t *testing.T) {
			before := f.before(t)
			o := f.options()
			o.NIC = nic
			s, err := ssh.Open(t.Context(), o)
			must(t, err)
			t.Run("suite", func(t *testing.T) {
				testbedtest.Run(t, testbedtest.Suite{
					Driver: s, Networks: []string{"routed", "vxlan"}, ReachByPod: func(string) bool { return true },
				})
			})
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			f.unchanged(t, before, 5*time.Second)
		})
	}
}

// TestOneServer: a single server has the whole lab, in its own namespaces.
func TestOneServer(t *testing.T) {
	f := newFarm(t, 1)
	before := f.before(t)
	s, err := ssh.Open(t.Context(), f.options())
	must(t, err)
	t.Run("suite", func(t *testing.T) {
		testbedtest.Run(t, testbedtest.Suite{
			Driver: s, Networks: []string{"bridge", "routed"}, ReachByPod: func(string) bool { return true },
		})
	})
	must(t, s.Close())
	f.unchanged(t, before, 5*time.Second)
}
