package path_test

import (
	"slices"
	"testing"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/lab/plugin"
)

// TestObserved: of a network that plugins build, the proof says what it found on the way, and that it all passed the pods'
// devices and the underlay.
func TestObserved(t *testing.T) {
	require.Namespaces(t)
	require.Need(t, "the CNI plugins bridge and host-local", plugin.Find("bridge", plugin.Path()) != "" && plugin.Find("host-local", plugin.Path()) != "")
	name := network.CNIPrefix + "../../docs/cni/bridge.conflist"
	tb, err := lab.NewDriver(nil).Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 2, Network: name})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	}()
	for to, want := range map[int][]string{1: {"pod0/eth0", "pod1/eth0"}, 2: {"pod0/eth0", "node0/eth0", "node1/eth0", "pod2/eth0", "node0/cni0", "node1/cni0"}} {
		e := newEnds(t, tb.Instruments().Observer, 0, to)
		for _, protocol := range []string{"tcp", "udp"} {
			p := e.proof(t, protocol, 1000, 20)
			if !p.OK || len(p.Stray) > 0 {
				t.Errorf("to pod %d by %s: not proved: %q, stray %+v", to, protocol, p.Findings, p.Stray)
			}
			for _, device := range want {
				if !slices.ContainsFunc(p.Hops, func(h result.PathHop) bool { return h.Device == device }) {
					t.Errorf("to pod %d by %s: %s is not among %+v", to, protocol, device, p.Hops)
				}
			}
			veths := 0
			for _, h := range p.Hops {
				if h.Role == string(path.RoleObserved) && h.Sends && h.Device[:9] == "node0/vet" {
					veths++
				}
			}
			if veths == 0 {
				t.Errorf("to pod %d by %s: no node's end of a pod's veth was observed: %+v", to, protocol, p.Hops)
			}
		}
		e.close(t)
	}
}
