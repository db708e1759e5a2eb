package testbedtest

import (
	"net/netip"
	"testing"
	"time"

	"netdelta/internal/require"
)

// resume is how long a connection may take to carry messages again after a swap: TCP doubles the time between its attempts
// while there is no network.
const resume = 30 * time.Second

// testSwap swaps from each network to each other one under live connections on one node and between nodes, which must go
// on wherever pods are reached at their own addresses; and new connections must come about everywhere.
func (s Suite) testSwap(t *testing.T) {
	tb := s.open(t, true)
	pods := tb.Pods()
	peers := StartPeers(t, pods[:3]...)
	client, near, far := peers[0], peers[1], peers[2]
	clientFar := StartPeer(t, pods[0])
	for _, server := range []*Peer{near, far} {
		first, _ := server.Pod.Ports()
		require.NoError(t, server.Serve("tcp", first))
	}
	if !s.ReachByPod(s.Networks[0]) {
		t.Fatalf("the first network, %s, must reach pods at their own addresses", s.Networks[0])
	}
	nearPort, _ := near.Pod.Ports()
	farPort, _ := far.Pod.Ports()
	require.NoError(t, client.Connect(netip.AddrPortFrom(near.Pod.Address(), nearPort), 500))
	require.NoError(t, clientFar.Connect(netip.AddrPortFrom(far.Pod.Address(), farPort), 500))
	addresses := make([]netip.Addr, len(pods))
	for i, p := range pods {
		addresses[i] = p.Address()
	}
	for step, name := range tour(s.Networks) {
		began := time.Now()
		require.NoError(t, tb.Swap(t.Context(), name))
		took := time.Since(began)
		for i, p := range pods {
			if p.Address() != addresses[i] {
				t.Fatalf("step %d: %s changed the address of %s from %s to %s", step, name, p.Name(), addresses[i], p.Address())
			}
		}
		for _, to := range []*Peer{near, far} {
			first, _ := to.Pod.Ports()
			if _, err := client.Exchange("tcp", tb.Endpoint(client.Pod, to.Pod, first), 100, 2); err != nil {
				t.Fatalf("step %d: after the swap to %s: %v", step, name, err)
			}
		}
		if s.ReachByPod(name) {
			for _, c := range []*Peer{client, clientFar} {
				if err := c.Advances(resume); err != nil {
					t.Fatalf("step %d: after the swap to %s: %v", step, name, err)
				}
			}
		}
		t.Logf("step %d: %s in %s, carried on after %s", step, name, took.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	}
}

// tour visits networks, starting at the first, so that each ordered pair of them is a step: from network i to each later one
// and back, and then on to network i+1.
func tour(networks []string) []string {
	var steps []string
	for i := range networks {
		for j := i + 1; j < len(networks); j++ {
			steps = append(steps, networks[j], networks[i])
		}
		if i+1 < len(networks) {
			steps = append(steps, networks[i+1])
		}
	}
	return steps
}
