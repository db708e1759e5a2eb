package path_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/testbedtest"
	"netdelta/unit"
)

func TestMain(m *testing.M) {
	os.Exit(testbedtest.MainWithPeers(m, map[string]func() int{"give-up-raw": giveUpRaw, "prove": prove, "look": look}))
}

// trying is held while it is tried what the kernel has: where two at once have it load a module, one is told that there is none.
var trying sync.Mutex

// open opens a lab of two nodes with two pods each on a network of its own or of the catalogue.
func open(t testing.TB, n network.Network, spec testbed.Spec) testbed.Observer {
	t.Helper()
	require.Namespaces(t)
	driver := lab.NewDriver([]network.Network{n})
	trying.Lock()
	err := driver.Supports(t.Context(), testbed.Spec{Network: n.Name, Family: spec.Family, PodsOutlive: spec.PodsOutlive, Conditions: spec.Conditions})
	trying.Unlock()
	var unsupported *testbed.UnsupportedError
	if errors.As(err, &unsupported) {
		require.Need(t, unsupported.Need, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	spec.Nodes, spec.PodsPerNode, spec.Network = 2, 2, n.Name
	tb, err := driver.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	})
	return tb.Instruments().Observer
}

// named is a network of the catalogue.
func named(t testing.TB, name string) network.Network {
	t.Helper()
	n, err := network.Find(network.Catalogue(), name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// testEnds are a client and a server in two pods.
type testEnds struct {
	o              testbed.Observer
	client, server *testbedtest.Peer
	next           uint16 // port of the server
}

func newEnds(t testing.TB, o testbed.Observer, from, to int) *testEnds {
	t.Helper()
	pods := o.Pods()
	first, _ := pods[to].Ports()
	return &testEnds{o: o, client: testbedtest.StartPeer(t, pods[from]), server: testbedtest.StartPeer(t, pods[to]), next: first}
}

// close ends both, and with them frees their ports.
func (e *testEnds) close(t testing.TB) {
	t.Helper()
	if err := errors.Join(e.client.Close(), e.server.Close()); err != nil {
		t.Error(err)
	}
}

// trip is a load: messages that go from the client to the server and come back turned round. The first goes round at once,
// so that neighbours know each other.
func (e *testEnds) trip(t testing.TB, protocol string, size, count int) func(context.Context) (path.Load, error) {
	t.Helper()
	port := e.next
	e.next++
	if err := e.server.Serve(protocol, port); err != nil {
		t.Fatal(err)
	}
	l := path.Load{
		Protocol: network.TCP, Server: e.o.Endpoint(e.client.Pod, e.server.Pod, port),
		Requests: unit.Bytes(size * count), Responses: unit.Bytes(size * count),
	}
	if protocol == "udp" {
		l.Protocol, l.Message = network.UDP, unit.Bytes(size)
	}
	exchange := func(count int) error {
		_, err := e.client.Exchange(protocol, l.Server, size, count)
		return err
	}
	if err := exchange(1); err != nil {
		t.Fatal(err)
	}
	return func(context.Context) (path.Load, error) { return l, exchange(count) }
}

// protocolOf is the protocol of the name that a peer knows it by.
func protocolOf(name string) network.Protocol {
	if name == "udp" {
		return network.UDP
	}
	return network.TCP
}

// proof proves the way of a load.
func (e *testEnds) proof(t testing.TB, protocol string, size, count int) result.Path {
	t.Helper()
	p, err := path.NewPlannedProver(e.o).Prove(t.Context(), e.client.Pod, e.server.Pod, protocolOf(protocol), e.trip(t, protocol, size, count))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// told fails the test unless one finding holds all the words.
func told(t *testing.T, p result.Path, words ...string) {
	t.Helper()
	if p.OK {
		t.Errorf("taken for right: %+v", p)
	}
	for _, f := range p.Findings {
		all := true
		for _, w := range words {
			all = all && strings.Contains(f, w)
		}
		if all {
			return
		}
	}
	t.Errorf("no finding has %q:\n%s", words, strings.Join(p.Findings, "\n"))
}
