package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/rpc"
)

// Flag is the flag of the command line that asks for agents on nodes.
const Flag = "--node-agent"

// Config is what an Observer has to be told of its testbed.
type Config struct {
	// Program is the path of netdelta inside of pods.
	Program string
	// Reach is how clients reach servers in the testbed's present network.
	Reach func() testbed.Reach
	// Address is the address of a pod in the testbed's present network.
	Address func(testbed.Pod) netip.Addr
	// HostNetwork tells whether a pod is in its node's own namespace.
	HostNetwork func(testbed.Pod) bool
	// NodeAddress is the address of a pod's node.
	NodeAddress func(testbed.Pod) netip.Addr
	// Node is the agent on a node, which stays its owner's; nil where there is none.
	Node func(ctx context.Context, node string) (*Agent, error)
}

// Observer looks at the ways between the pods of a testbed. It is safe for concurrent use.
type Observer struct {
	tb testbed.Testbed
	c  Config

	mu     sync.Mutex
	inside map[string]*Agent // in pods, by their names
	closed bool
}

// NewObserver is an observer of a testbed. The agents that it starts in its pods end with Close.
func NewObserver(tb testbed.Testbed, c Config) *Observer {
	return &Observer{tb: tb, c: c, inside: map[string]*Agent{}}
}

// Close ends the agents in pods, not those on nodes. It is idempotent.
func (w *Observer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, a := range w.inside {
		_ = a.Close() // how it ends is no news: what it could not say was said then
	}
	clear(w.inside)
	return nil
}

// in is the agent in a pod, started at its first use.
func (w *Observer) in(ctx context.Context, pod testbed.Pod) (*Agent, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errors.New("the testbed is closed")
	}
	if a := w.inside[pod.Name()]; a != nil && a.Alive() {
		return a, nil
	}
	a, err := Start(ctx, pod, w.c.Program)
	if err == nil {
		w.inside[pod.Name()] = a
	}
	return a, err
}

// post is an agent at the place that it looks at.
type post struct {
	agent *Agent
	name  string
	// node says that the place is a node, whose packets may be sampled.
	node  bool
	watch int
	place testbed.ObservedSpace
}

// way is a look at the way between two pods that is under way.
type way struct {
	testbed.Observation
	of    *Observer
	posts map[network.Space]*post
	to    testbed.Pod

	mu    sync.Mutex
	ended bool
}

var _ testbed.Watch = (*way)(nil)

// survey finds out who can look at what between two pods.
func (w *Observer) survey(ctx context.Context, from, to testbed.Pod) (*way, error) {
	x := &way{of: w, posts: map[network.Space]*post{}, to: to}
	spec := w.tb.Spec()
	x.Reach, x.Expect, x.ExpectMTU, x.Via = w.c.Reach(), spec.Expect, spec.ExpectMTU, spec.Via
	x.Client = testbed.PathEnd{Pod: from.Name(), Node: from.Node(), Address: w.c.Address(from), In: testbed.ClientPod(), On: testbed.ClientNode()}
	x.Server = testbed.PathEnd{Pod: to.Name(), Node: to.Node(), Address: w.c.Address(to), In: testbed.ServerPod(), On: testbed.ServerNode()}
	if x.Server.Node == x.Client.Node {
		x.Server.On = x.Client.On
	}
	for _, e := range []struct {
		pod   testbed.Pod
		stand *testbed.PathEnd
		name  string
	}{{from, &x.Client, "pod-client"}, {to, &x.Server, "pod-server"}} {
		if err := w.look(ctx, x, e.pod, e.stand, e.name); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// look finds who looks at one end: an agent on its node, and one in the pod where that has a namespace of its own or where
// the node is not looked at. Pods have names of their own in every build: a place in one is named for what the pod is.
func (w *Observer) look(ctx context.Context, x *way, pod testbed.Pod, s *testbed.PathEnd, name string) error {
	if w.c.HostNetwork(pod) {
		s.In = s.On
	}
	s.NodeAddress = w.c.NodeAddress(pod)
	node, err := w.c.Node(ctx, s.Node)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err != nil {
		s.Unwatched = err.Error() // the proof is weaker, and says so
	} else if node != nil {
		x.posts[s.On] = &post{agent: node, name: s.Node, node: true}
	}
	if x.posts[s.In] != nil {
		return nil
	}
	inside, err := w.in(ctx, pod)
	if err != nil {
		return err
	}
	if s.In == s.On {
		name = s.Node
	}
	x.posts[s.In] = &post{agent: inside, name: name}
	return nil
}

// each asks all posts at once. One that fails does not end what the others were asked, which would be the end of them.
func (x *way) each(ctx context.Context, f func(context.Context, network.Space, *post) error) error {
	var group errgroup.Group
	for where, p := range x.posts {
		group.Go(func() error { return f(ctx, where, p) })
	}
	return group.Wait()
}

// Watch is what testbed.PathObserver says.
func (w *Observer) Watch(ctx context.Context, from, to testbed.Pod) (testbed.Watch, error) {
	var x *way
	err := unlessGone(func() (err error) {
		if x, err = w.survey(ctx, from, to); err != nil {
			return err
		}
		return x.begin(ctx, w.tb.Endpoint(from, to, firstPort(to)).Addr())
	})
	if err != nil {
		return nil, fmt.Errorf("watch the way from %s to %s: %w", from.Name(), to.Name(), err)
	}
	return x, nil
}

func firstPort(p testbed.Pod) uint16 {
	first, _ := p.Ports()
	return first
}

// begin begins to look everywhere.
func (x *way) begin(ctx context.Context, called netip.Addr) error {
	var mu sync.Mutex
	wanted := []netip.Addr{x.Client.Address, x.Server.Address, x.Client.NodeAddress, x.Server.NodeAddress, called}
	err := x.each(ctx, func(ctx context.Context, _ network.Space, p *post) (err error) {
		p.place.Interfaces, err = p.agent.Describe(ctx)
		mu.Lock()
		defer mu.Unlock()
		if p.node {
			wanted = append(wanted, addressesOf(p.place.Interfaces)...)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(wanted, netip.Addr.Compare)
	wanted = slices.DeleteFunc(slices.Compact(wanted), func(a netip.Addr) bool { return !a.IsValid() })
	err = x.each(ctx, func(ctx context.Context, _ network.Space, p *post) error {
		var r request
		if p.node {
			r.Addresses = wanted[:min(len(wanted), addressesMost)]
		}
		a, err := p.agent.ask(ctx, opBegin, r)
		p.watch, p.place.Before, p.place.StackBefore = a.Watch, a.Counters, a.Stack
		return err
	})
	if err != nil {
		return errors.Join(err, x.Close())
	}
	return nil
}

// addressesOf are the addresses at which a node is reached on the network. Devices that only hold addresses, such as IPVS's,
// hold addresses of others.
func addressesOf(interfaces []testbed.Interface) []netip.Addr {
	var all []netip.Addr
	for _, i := range interfaces {
		for _, p := range i.Addresses {
			if a := p.Addr(); i.Kind != "dummy" && !a.IsLoopback() && !a.IsLinkLocalUnicast() {
				all = append(all, a)
			}
		}
	}
	return all
}

// End implements testbed.Watch.
func (x *way) End(ctx context.Context, called netip.AddrPort) (testbed.Observation, error) {
	x.mu.Lock()
	ended := x.ended
	x.ended = true
	x.mu.Unlock()
	if ended {
		return testbed.Observation{}, errors.New("the watch has ended")
	}
	x.Called, x.Backend = called, x.backend(called)
	to := []netip.Addr{x.Client.Address, x.Server.Address, called.Addr(), x.Client.NodeAddress, x.Server.NodeAddress}
	to = slices.DeleteFunc(to, func(a netip.Addr) bool { return !a.IsValid() })
	err := x.each(ctx, func(ctx context.Context, where network.Space, p *post) error {
		r := request{Watch: p.watch, To: to}
		if where == x.Server.In {
			r.Port = x.Backend.Port()
		}
		a, err := p.agent.ask(ctx, opEnd, r)
		l := &p.place
		l.Name, l.Interfaces, l.After, l.StackAfter = p.name, a.Interfaces, a.Counters, a.Stack
		l.Packets, l.Missed, l.Lacks, l.Routes, l.Peers = a.Packets, a.Missed, a.Lacks, a.Routes, a.Peers
		for i := range l.Packets {
			l.Packets[i].Device.In = where
		}
		if !p.node {
			l.Lacks = "an agent on the node (" + Flag + ")"
		}
		return err
	})
	if err != nil {
		return testbed.Observation{}, fmt.Errorf("end the watch of the way from %s to %s: %w", x.Client.Pod, x.Server.Pod, err)
	}
	x.Spaces = map[network.Space]testbed.ObservedSpace{}
	for where, p := range x.posts {
		x.Spaces[where] = p.place
	}
	return x.Observation, nil
}

// backend is the server itself behind an address that was called: the port of the pod that is reached there.
func (x *way) backend(called netip.AddrPort) netip.AddrPort {
	if x.Reach != testbed.ReachService && x.Reach != testbed.ReachNodePort {
		return called
	}
	first, last := x.to.Ports()
	for _, from := range x.of.tb.Pods() {
		if from.Name() != x.Client.Pod {
			continue
		}
		for port := int(first); port <= int(last); port++ {
			if x.of.tb.Endpoint(from, x.to, uint16(port)) == called {
				return netip.AddrPortFrom(x.Server.Address, uint16(port))
			}
		}
	}
	return netip.AddrPortFrom(x.Server.Address, called.Port())
}

// Close implements testbed.Watch.
func (x *way) Close() error {
	x.mu.Lock()
	ended := x.ended
	x.ended = true
	x.mu.Unlock()
	if ended {
		return nil
	}
	return x.each(context.Background(), func(ctx context.Context, _ network.Space, p *post) error {
		if p.watch == 0 {
			return nil
		}
		_, err := p.agent.ask(ctx, opDrop, request{Watch: p.watch})
		return err
	})
}

// Count is what testbed.PathObserver says.
func (w *Observer) Count(ctx context.Context, from, to testbed.Pod) (map[network.Device]testbed.Counters, error) {
	var all map[network.Device]testbed.Counters
	err := unlessGone(func() (err error) {
		all, err = w.count(ctx, from, to)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("count what passes between %s and %s: %w", from.Name(), to.Name(), err)
	}
	return all, nil
}

// count is Count without another try.
func (w *Observer) count(ctx context.Context, from, to testbed.Pod) (map[network.Device]testbed.Counters, error) {
	x, err := w.survey(ctx, from, to)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	all := map[network.Device]testbed.Counters{}
	return all, x.each(ctx, func(ctx context.Context, where network.Space, p *post) error {
		found, _, err := p.agent.Count(ctx)
		mu.Lock()
		defer mu.Unlock()
		for name, c := range found {
			all[network.Device{In: where, Name: name}] = c
		}
		return err
	})
}

// unlessGone tries once more where an agent turns out to be gone: one on a node that was lost leaves the proof weaker, and costs no trial.
func unlessGone(try func() error) error {
	err := try()
	if errors.Is(err, rpc.ErrGone) {
		err = try()
	}
	return err
}
