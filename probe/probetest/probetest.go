// Package probetest gives the tests of probes something to observe: agents in two pods of a lab, on a node each, and a workload
// armed between them. The test binary has to be its own agent (agent.Become).
package probetest

import (
	"context"
	"net/netip"
	"os"
	"testing"

	"netdelta/agent"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

// Agents opens a lab with a bridge, and starts an agent in the pod of each node. All ends with the test.
func Agents(t *testing.T) (client, server *agent.Agent) {
	t.Helper()
	require.Namespaces(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec := testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "bridge", Link: testbed.Link{MTU: 1500}}
	tb, err := lab.NewDriver(network.Catalogue()).Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	})
	agents := make([]*agent.Agent, 2)
	for i, pod := range tb.Pods() {
		if agents[i], err = agent.Start(t.Context(), pod, agent.Program{Path: exe}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = agents[i].Close() })
	}
	return agents[0], agents[1]
}

// Connection is a workload between two agents, its connections open.
type Connection struct {
	Client, Server *agent.Agent
	Session        int // of the client
	Service        int // of the server
}

// Connect opens a workload between the agents of Agents, its ends pinned to a processor; a negative one leaves them free.
func Connect(t *testing.T, workload string, p result.Params, cpu int) Connection {
	t.Helper()
	client, server := Agents(t)
	a := Connection{Client: client, Server: server}
	port, _ := server.Pod().Ports()
	at := netip.AddrPortFrom(server.Pod().Address(), port)
	var err error
	if a.Service, err = server.Serve(t.Context(), workload, p, at, cpu); err != nil {
		t.Fatal(err)
	}
	local := netip.AddrPortFrom(client.Pod().Address(), 3000)
	if a.Session, err = client.Dial(t.Context(), workload, p, local, at, cpu); err != nil {
		t.Fatal(err)
	}
	return a
}

// Threads are the threads of both ends, by agent.
func (a Connection) Threads(t *testing.T) map[*agent.Agent][]int {
	t.Helper()
	threads := map[*agent.Agent][]int{}
	for end, session := range map[*agent.Agent]int{a.Client: a.Session, a.Server: a.Service} {
		ids, err := end.Threads(t.Context(), session)
		if err != nil {
			t.Fatal(err)
		}
		threads[end] = ids
	}
	return threads
}

// Deafen has a pod drop everything that comes, by the program nft, until lift is called.
func Deafen(ctx context.Context, pod testbed.Pod, nft string) (lift func() error, err error) {
	call := func(command string) error {
		p, err := pod.Start(ctx, testbed.Command{Path: nft, Args: []string{command}})
		if err != nil {
			return err
		}
		return p.Wait()
	}
	err = call("add table inet deaf; add chain inet deaf in { type filter hook input priority 0; policy drop; }")
	return func() error { return call("delete table inet deaf") }, err
}
