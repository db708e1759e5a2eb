package fleet

import (
	"context"
	"errors"
	"net/netip"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
)

// sharedPods is how many pods of a testbed have clients at most, and how many servers: a network of more would be another question.
const sharedPods = 20

// In makes fleets of a provider: of as many pods as clients where the provider makes such fleets, else on testbeds of two nodes, on which
// clients share pods where they are more than sharedPods.
func In(provider testbed.Provider, p result.Params) func(context.Context, string, int, int) (testbed.Fleet, error) {
	return func(ctx context.Context, name string, clients, servers int) (testbed.Fleet, error) {
		if open := provider.Capabilities().Fleet; open != nil {
			return open(ctx, testbed.FleetSpec{Network: name, Family: p.Family, Clients: clients, Servers: servers})
		}
		tb, err := provider.Open(ctx, testbed.Spec{
			Nodes: 2, PodsPerNode: min(sharedPods, max(clients, servers)), Network: name, Family: p.Family, Conditions: p.Conditions,
			Link: testbed.Link{MTU: network.DefaultMTU},
		})
		if err != nil {
			return nil, err
		}
		f, err := On(tb, clients, servers)
		if err != nil {
			return nil, errors.Join(err, tb.Close())
		}
		return f, nil
	}
}

// shared is a testbed on which clients share pods.
type shared struct {
	tb               testbed.Testbed
	clients, servers []testbed.Pod
}

// On lays a fleet out over the pods of a testbed: the servers in turn over the pods of the last node, the clients over the pods of all
// other nodes; with one node each has half of its pods. Clients share pods where there are more of them than pods.
func On(tb testbed.Testbed, clients, servers int) (testbed.Fleet, error) {
	var here, there []testbed.Pod
	pods := tb.Pods()
	for i, p := range pods {
		last := p.Node() == pods[len(pods)-1].Node()
		if pods[0].Node() == pods[len(pods)-1].Node() {
			last = i >= len(pods)/2
		}
		if last {
			there = append(there, p)
		} else {
			here = append(here, p)
		}
	}
	if len(here) == 0 || len(there) == 0 {
		return nil, errors.New("the testbed has one pod: a fleet needs one for clients and one for servers")
	}
	g := &shared{tb: tb}
	for i := range clients {
		g.clients = append(g.clients, here[i%len(here)])
	}
	for i := range min(servers, len(there)) {
		g.servers = append(g.servers, there[i])
	}
	return g, nil
}

func (g *shared) Clients() []testbed.Pod     { return g.clients }
func (g *shared) Servers() []testbed.Pod     { return g.servers }
func (g *shared) Missing() map[string]string { return nil }
func (g *shared) Close() error               { return g.tb.Close() }

func (g *shared) Endpoint(from, to testbed.Pod, port uint16) netip.AddrPort {
	return g.tb.Endpoint(from, to, port)
}
