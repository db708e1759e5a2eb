package kube

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/internal/require"
	"netdelta/testbed"
	"netdelta/testbed/testbedtest"
	"netdelta/unit"
)

// peersOf is a testbed of a client and peers that is nowhere.
func peersOf(l *Launcher, spec testbed.Spec, nodes ...string) *Testbed {
	t := &Testbed{driver: &Driver{cluster: l.cluster, launcher: l}, spec: spec, slot: 3}
	for j := range len(nodes) * spec.PodsPerNode {
		t.pods = append(t.pods, &pod{bed: t, index: j, node: nodes[j/spec.PodsPerNode], host: spec.Network == Host})
	}
	t.peers = newPeers(t)
	return t
}

// The StatefulSet of peers: one on each node, none on the node of another pod of the testbed, with the memory that its daemons take.
func TestPeersManifest(t *testing.T) {
	spec := testbed.Spec{PodsPerNode: 2, Network: Pod, Peers: testbed.Peers{Count: 3, Memory: 600 * unit.MiB, Ports: [4]uint16{3306}}}
	host := spec
	host.Network = Host
	nodes := []string{"w1", "w2", "w3", "w4"}
	for name, bed := range map[string]*Testbed{
		"statefulset":            peersOf(launcherWith(t, Options{BaseImage: "programs:1"}), spec, nodes...),
		"statefulset-guaranteed": peersOf(launcherWith(t, Options{QoS: Guaranteed}), host, nodes...),
	} {
		t.Run(name, func(t *testing.T) {
			goldenYAML(t, name, bed.peers.manifest())
		})
	}
}

// Clients of peers stand on the nodes after theirs, and only they and the first pod send.
func TestClientsOfPeers(t *testing.T) {
	spec := testbed.Spec{PodsPerNode: 2, Network: Pod, Peers: testbed.Peers{Count: 2, Clients: 2}}
	bed := peersOf(launcherWith(t, Options{}), spec, "w1", "w2", "w3", "w4", "w5")
	for i, p := range bed.pods {
		wants := map[int]Role{0: RoleClient, 6: RoleClient}[i]
		if is := p.wish().Role; is == RoleClient != (wants == RoleClient) || bed.peers.has(p) != (i == 2 || i == 4) {
			t.Errorf("pod %d on %s is a %s, and a peer: %v", i, p.node, is, bed.peers.has(p))
		}
	}
}

func TestPeersPossible(t *testing.T) {
	told, ported := testbed.Peers{Count: 3}, testbed.Peers{Count: 3, Ports: [4]uint16{3306}}
	for _, c := range []struct {
		network string
		peers   testbed.Peers
		want    bool
	}{
		{Host, told, true}, {Pod, told, true}, {Headless, told, true}, {ClusterIP, told, false}, {NodePort, told, false},
		{ClusterIP, ported, true}, {NodePort, ported, true}, {NodePort, testbed.Peers{}, true},
	} {
		err := peersPossible(testbed.Spec{Network: c.network, PodsOutlive: true, Peers: c.peers})
		if (err == nil) != c.want || err != nil && !errors.Is(err, testbed.ErrUnsupported) {
			t.Errorf("%s with %+v: %v", c.network, c.peers, err)
		}
	}
}

// TestPeersOnCluster: a peer stands on the node that it is planned for, by a StatefulSet, is reached at its own port by a Service, and
// one that is lost is not taken for the one that the cluster makes in its place. Too few nodes are told.
func TestPeersOnCluster(t *testing.T) {
	t.Parallel()
	d := newDriver(t, connect(t, "restricted"), Options{Ports: 2})
	spec := testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: Pod, PodsOutlive: true, Peers: testbed.Peers{Count: 1, Memory: unit.MiB, Ports: [4]uint16{3306}}}
	if err := d.Supports(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	many := spec
	many.Peers.Count = 99
	if err := d.Supports(t.Context(), many); !errors.Is(err, testbed.ErrUnsupported) || !strings.Contains(err.Error(), "100 nodes") {
		t.Errorf("99 peers: %v", err)
	}
	many.Peers.Count, many.Peers.Clients = 1, 99
	if err := d.Supports(t.Context(), many); !errors.Is(err, testbed.ErrUnsupported) || !strings.Contains(err.Error(), "99 others") || !strings.Contains(err.Error(), "100 nodes") {
		t.Errorf("99 clients: %v", err)
	}
	tb := openBed(t, d, spec)
	client, peer := tb.Pods()[0], tb.Pods()[1]
	lost := testbedtest.StartPeers(t, client, peer)[1]
	c := d.cluster
	sets, err := c.API.StatefulSets(c.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: d.Run().Selector()})
	if err != nil || len(sets.Items) != 1 || !strings.HasPrefix(peer.Name(), sets.Items[0].Name) {
		t.Fatalf("pod %s, StatefulSets %v, %v", peer.Name(), sets, err)
	}
	is, err := c.API.Pods(c.Namespace).Get(t.Context(), peer.Name(), metav1.GetOptions{})
	if err != nil || is.Spec.NodeName != peer.Node() || peer.Node() == client.Node() {
		t.Fatalf("the peer of node %s is on %s, the client on %s: %v", peer.Node(), is.Spec.NodeName, client.Node(), err)
	}
	if err := tb.Swap(t.Context(), ClusterIP); err != nil {
		t.Fatal(err)
	}
	if at := tb.Endpoint(client, peer, 3306); !at.IsValid() || at.Addr() == peer.Address() || at.Port() != 3306 {
		t.Errorf("port 3306 is reached at %v", at)
	}
	if err := tb.Swap(t.Context(), Host); err == nil {
		t.Error("pods have moved into their node's namespace")
	}
	if err := c.API.Pods(c.Namespace).Delete(t.Context(), peer.Name(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := lost.Wait(); err == nil || !strings.Contains(err.Error(), "deleted") {
		t.Errorf("of the peer that was deleted: %v", err)
	}
	require.NoError(t, require.Await(time.Minute, "another pod of the StatefulSet runs", func() error {
		now, err := c.API.Pods(c.Namespace).Get(t.Context(), peer.Name(), metav1.GetOptions{})
		if err == nil && (now.UID == is.UID || now.Status.Phase != corev1.PodRunning) {
			err = fmt.Errorf("pod %s is %s", now.UID, now.Status.Phase)
		}
		return err
	}))
	if said := c.failureReason(t.Context(), peer.(*pod).live.place, 0); !strings.Contains(said, "another of its name") {
		t.Errorf("what became of the first: %s", said)
	}
}
