// Package fleet measures a network under many clients at once: hundreds of agents begin together on a common instant, each sends
// what it measured as one histogram, and the histograms are merged as they come, so that what is kept depends neither on the
// number of agents nor on how often they fire. A client that fails costs its own part and nothing else, and is named.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/experiment/endpoint"
	"netdelta/experiment/record"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
)

// fleet is a network's clients and servers in one build.
type fleet struct {
	config  Config
	builds  record.Builds
	tally   *tally
	ground  testbed.Fleet
	agents  record.Agents
	servers []*server
	clients []*client
	cell    result.Cell

	mu sync.Mutex // of the tally, and of clients that are lost
}

// server is a pod that answers, on one port for each part of its clients.
type server struct {
	agent *agent.Agent
	first uint16
	ports int
}

// work is what a client got done.
type work struct{ seconds, transactions, bits float64 }

// client is one of many. It keeps no more of its bursts than three sums.
type client struct {
	agent.SyncClient
	pod  testbed.Pod
	lost bool

	did, last work // in all bursts that count, and in the one under way
}

// share is how many clients one port of a server answers: each has a thread of its own there.
const share = 200

// dialTry is how long one try to connect takes at most. A connection whose first packet left before the service was there goes on to be
// sent past it, however often it is sent again: the node remembers what it made of the first.
const dialTry = 3 * time.Second

// errNothing says that a client fired and nothing came back.
var errNothing = errors.New("nothing got through in the burst")

// open makes the ground of a network and arms all clients. It fails only when no client is left, or with ctx; the fleet then records
// why, and still has to be closed.
func open(ctx context.Context, c Config, builds record.Builds, cell result.Cell, build int, lead time.Duration) (*fleet, error) {
	f := &fleet{
		config: c, builds: builds, cell: cell, tally: newTally(builds.Record.Run.Started, build, c.Clients, lead), agents: record.Agents{Program: c.Program, AtOnce: c.AtOnce},
	}
	began := f.tally.trial.Started
	ground, err := c.Open(ctx, cell.Network, c.Clients, c.Servers)
	if err == nil {
		f.ground, f.tally.fleet.Pods = ground, time.Since(began)
		missing := ground.Missing()
		for _, pod := range slices.Sorted(maps.Keys(missing)) {
			f.tally.fail(result.FleetFailure{Pod: pod, Why: missing[pod]})
		}
		err = f.arm(ctx)
	}
	if err != nil {
		err = fmt.Errorf("network %s: %w", cell.Network, err)
		if ctx.Err() == nil {
			f.tally.trial.Failed = err.Error()
		}
		return f, err
	}
	f.tally.fleet.Connected = time.Since(began)
	f.tally.lead = max(lead, agent.LeadFor(len(f.clients)))
	builds.Logf("build %d of %d, %s: %d of %d clients armed after %v, pods after %v", build+1, c.Builds, cell.Network,
		f.ready(), c.Clients, f.tally.fleet.Connected.Round(time.Millisecond), f.tally.fleet.Pods.Round(time.Millisecond))
	return f, nil
}

// arm starts the servers, then the clients.
func (f *fleet) arm(ctx context.Context) error {
	if err := f.startServers(ctx); err != nil {
		return err
	}
	for _, pod := range f.ground.Clients() {
		f.clients = append(f.clients, &client{pod: pod})
	}
	f.each(ctx, func(i int, c *client) error { return f.armClient(ctx, i, c) })
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.ready() == 0 {
		return fmt.Errorf("none of %d clients could be armed; the first: %w", len(f.clients), f.tally.firstWhy())
	}
	return nil
}

// firstWhy is why the first that failed did.
func (s *tally) firstWhy() error {
	if len(s.fleet.Failures) == 0 {
		return errors.New("there were no pods for them")
	}
	return errors.New(s.fleet.Failures[0].Why)
}

// startServers starts those that can be started: the clients are dealt out to them.
func (f *fleet) startServers(ctx context.Context) error {
	pods := f.ground.Servers()
	started := make([]*server, len(pods))
	errs := make([]error, len(pods))
	f.agents.Each(len(pods), func(i int) {
		started[i], errs[i] = f.startServer(ctx, pods[i], f.config.Clients/len(pods)/share+1)
	})
	for i, err := range errs {
		if err == nil {
			f.servers = append(f.servers, started[i])
		} else if ctx.Err() == nil {
			f.tally.fail(result.FleetFailure{Pod: pods[i].Name(), Node: pods[i].Node(), Why: "server: " + err.Error()})
		}
	}
	if len(f.servers) == 0 {
		return errors.Join(errors.New("there is no server"), errors.Join(errs...), ctx.Err())
	}
	return nil
}

// startServer starts a server on so many ports.
func (f *fleet) startServer(ctx context.Context, pod testbed.Pod, ports int) (*server, error) {
	a, err := f.agents.Start(ctx, pod)
	if err != nil {
		return nil, err
	}
	first, last := pod.Ports()
	if int(last)-int(first)+1 < ports {
		return nil, fmt.Errorf("pod %s has ports %d to %d, too few for %d clients: ask for more servers", pod.Name(), first, last, ports*share)
	}
	for k := range ports {
		listen := netip.AddrPortFrom(endpoint.AnyAddress(f.config.Params.Family), first+uint16(k))
		if _, err := a.Serve(ctx, f.config.Workload.Name, f.config.Params, listen, -1); err != nil {
			return nil, err
		}
	}
	return &server{agent: a, first: first, ports: ports}, nil
}

// armClient starts a client, reads its clock and connects it. The clients are dealt out to the servers in turn.
func (f *fleet) armClient(ctx context.Context, i int, c *client) error {
	a, err := f.agents.Start(ctx, c.pod)
	if err != nil {
		return err
	}
	c.Agent = a
	if err := c.ReadClock(ctx); err != nil {
		return err
	}
	to := f.servers[i%len(f.servers)]
	port := to.first + uint16(i/len(f.servers)/share%to.ports)
	remote := f.ground.Endpoint(c.pod, to.agent.Pod(), port)
	local := netip.AddrPortFrom(endpoint.AnyAddress(f.config.Params.Family), 0)
	c.Session, err = record.Dial(ctx, a, func() (int, error) {
		return a.DialWithin(ctx, f.config.Workload.Name, f.config.Params, local, remote, -1, dialTry)
	})
	return err
}

// each does something with all clients that are left, some at a time, and loses those with which it fails while ctx lasts.
func (f *fleet) each(ctx context.Context, do func(i int, c *client) error) {
	f.agents.Each(len(f.clients), func(i int) {
		c := f.clients[i]
		if c.lost {
			return
		}
		if err := do(i, c); err != nil && ctx.Err() == nil {
			f.lose(c, err)
		}
	})
}

// lose gives a client up. The others go on.
func (f *fleet) lose(c *client, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.lost = true
	f.tally.fail(result.FleetFailure{Pod: c.pod.Name(), Node: c.pod.Node(), Why: why.Error()})
}

// ready is how many clients are left.
func (f *fleet) ready() int {
	n := 0
	for _, c := range f.clients {
		if !c.lost {
			n++
		}
	}
	return n
}

// Close ends all agents and removes the ground.
func (f *fleet) Close() error {
	f.agents.Close()
	if f.ground == nil {
		return nil
	}
	return f.ground.Close()
}

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

// overtime is how much longer than it should a burst may take.
const overtime = 10 * time.Second

// triesMost is how often a burst is fired until all clients were told in time. The last one counts in any case.
const triesMost = 3

// fire has all clients that are left fire together, and takes in what they measured. A burst that did not begin together, since
// clients were told too late, is fired again with more time ahead.
func (f *fleet) fire(ctx context.Context, round int) {
	for try := range triesMost {
		f.each(ctx, func(_ int, c *client) error { return c.ReadClock(ctx) })
		if ctx.Err() != nil {
			return
		}
		spare := f.burst(ctx, round)
		if ctx.Err() != nil {
			return // which clients are missing in an interrupted burst is not known
		}
		if spare >= 0 || try == triesMost-1 {
			f.tally.end(f.clients, f.config.Burst)
			return
		}
		f.tally.lead = agent.LongerLead(f.tally.lead, spare)
		f.builds.Logf("network %s: a client was told of a burst %v too late: it is fired again, and from now on all are told %v ahead",
			f.cell.Network, -spare.Round(time.Millisecond), f.tally.lead.Round(time.Millisecond))
	}
}

// burst has all clients fire together once. It returns how long before the common instant the last of them was told.
func (f *fleet) burst(ctx context.Context, round int) (spare time.Duration) {
	f.tally.begin(round)
	spec := engine.BurstSpec{Duration: f.config.Burst, Warmup: f.config.Warmup, Deadline: f.config.Burst + f.config.Warmup + overtime}
	var left []*client
	var together []*agent.SyncClient
	for _, c := range f.clients {
		if !c.lost {
			left, together = append(left, c), append(together, &c.SyncClient)
		}
	}
	return agent.BurstTogether(ctx, together, spec, f.tally.lead, func(i int, got agent.SyncResult, err error) {
		if err == nil {
			err = f.tally.add(left[i], got)
		}
		if err != nil && ctx.Err() == nil {
			f.lose(left[i], err)
		}
	})
}
