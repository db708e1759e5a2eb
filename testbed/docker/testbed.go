package docker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"golang.org/x/sync/errgroup"

	"netdelta/internal/gather"
	"netdelta/internal/netns"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube/nodeagent"
	"netdelta/testbed/lab"
	"netdelta/testbed/nsmonitor"
)

// node is what the machine is called.
const node = "docker-host"

// Testbed is pods of one network of an engine. It is safe for concurrent use.
type Testbed struct {
	driver *Driver
	spec   testbed.Spec
	procs  *lab.Processes
	pods   []*pod
	host   *pod // in the host's namespace, in the driver's container

	mu       sync.Mutex
	observer *nodeagent.Observer
	closed   bool
}

var _ testbed.PathObserver = (*Testbed)(nil)

// pod is a container, or a place in the host's namespace.
type pod struct {
	bed     *Testbed
	name    string
	host    bool
	holding holding
	in      *container
	address netip.Addr
}

var _ testbed.Pod = (*pod)(nil)

// hold takes the containers of all pods.
func (t *Testbed) hold(ctx context.Context) error {
	t.host = &pod{bed: t, name: node, host: true, in: t.driver.host, address: loopback(t.spec.Family)}
	published, err := t.publishedAt(ctx)
	if err != nil {
		return err
	}
	var group errgroup.Group
	for i := range t.spec.PodsPerNode {
		p := &pod{bed: t, name: fmt.Sprintf("pod%d", i), host: t.spec.Network == Host || published != "" && i == 0}
		if p.holding = (holding{joins: engineName(t.spec.Network), published: published}); p.host {
			p.holding = holding{joins: engineName(Host)}
		}
		t.pods = append(t.pods, p)
		group.Go(func() error { return p.hold(ctx) })
	}
	if err := group.Wait(); err != nil || t.spec.Network != Proxied {
		return err
	}
	return t.proxied()
}

// proxied tells whether a proxy of the engine serves the published ports. Podman has none, but keeps sockets on them.
func (t *Testbed) proxied() error {
	without := t.driver.podman
	err := t.host.in.space.Do(func() error {
		without = without || free(netip.AddrPortFrom(loopback(t.spec.Family), t.pods[len(t.pods)-1].in.first))
		return nil
	})
	if without && err == nil {
		err = &testbed.UnsupportedError{
			Feature: "network " + t.spec.Network, Need: "an engine whose proxy serves published ports (Docker with userland-proxy)", Fix: "measure " + Published,
		}
	}
	return err
}

// publishedAt is the address at which the engine is to publish the ports of servers, "" where it is not to.
func (t *Testbed) publishedAt(ctx context.Context) (string, error) {
	switch t.spec.Network {
	case Published, Proxied:
		plain := holding{joins: engineName(Bridge)}
		c, err := t.driver.take(ctx, plain)
		if err != nil {
			return "", err
		}
		defer t.driver.giveBack(plain, c)
		at := c.gateways[t.spec.Family]
		switch {
		case !at.IsValid():
			return "", t.noAddress()
		case t.spec.Network == Published:
			t.host.address = at
			return at.String(), nil
		}
		t.host.address = at // by which the proxy calls
		return loopback(t.spec.Family).String(), nil
	}
	return "", nil
}

func (t *Testbed) noAddress() error {
	return &testbed.UnsupportedError{
		Feature: fmt.Sprintf("network %s with %s", t.spec.Network, t.spec.Family), Need: "addresses of that family on it",
		Fix: "measure the other family, or create a network that has it (docker network create --ipv6)",
	}
}

// loopback is the address that never leaves a namespace.
func loopback(f result.Family) netip.Addr {
	if f == result.IPv6 {
		return netip.IPv6Loopback()
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// hold takes the pod's container.
func (p *pod) hold(ctx context.Context) (err error) {
	if p.in, err = p.bed.driver.take(ctx, p.holding); err != nil {
		return err
	}
	if p.address = p.in.addresses[p.bed.spec.Family]; p.host {
		p.address = p.bed.host.address
	}
	if !p.address.IsValid() {
		return p.bed.noAddress()
	}
	return nil
}

// Name implements testbed.Pod.
func (p *pod) Name() string { return p.name }

// Node implements testbed.Pod.
func (p *pod) Node() string { return node }

// Address implements testbed.Pod.
func (p *pod) Address() netip.Addr { return p.address }

// Ports implements testbed.Pod: no other pod of the engine has these, since some share the host's namespace.
func (p *pod) Ports() (first, last uint16) {
	return p.in.first, p.in.first + ports - 1
}

// Start implements testbed.Pod.
func (p *pod) Start(ctx context.Context, cmd testbed.Command) (testbed.Process, error) {
	if p.bed.over() {
		return nil, fmt.Errorf("start %s in %s: %w", cmd.Path, p.name, errClosed)
	}
	return p.bed.procs.Start(ctx, p.in.space, cmd, p.name)
}

// errClosed is the error of what is asked of a testbed that was closed.
var errClosed = errors.New("the testbed is closed")

// over says whether the testbed was closed.
func (t *Testbed) over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// Spec implements testbed.Testbed.
func (t *Testbed) Spec() testbed.Spec { return t.spec }

// Pods implements testbed.Testbed.
func (t *Testbed) Pods() []testbed.Pod {
	return gather.Each(t.pods, func(p *pod) testbed.Pod { return p })
}

// own is a pod of the testbed, nil for another's.
func (t *Testbed) own(p testbed.Pod) *pod {
	if mine, ok := p.(*pod); ok && mine.bed == t {
		return mine
	}
	return nil
}

// Endpoint implements testbed.Testbed. For a pod of another testbed it is the zero address.
func (t *Testbed) Endpoint(from, to testbed.Pod, port uint16) netip.AddrPort {
	server := t.own(to)
	if t.own(from) == nil || server == nil {
		return netip.AddrPort{}
	}
	if at, err := netip.ParseAddr(server.holding.published); err == nil { // the empty word is none
		return netip.AddrPortFrom(at, port)
	}
	return netip.AddrPortFrom(server.address, port)
}

// Links implements testbed.Testbed.
func (t *Testbed) Links(context.Context) ([]result.Link, error) {
	if t.over() {
		return nil, errClosed
	}
	var links []result.Link
	seen := map[netns.ID]bool{}
	for _, p := range append([]*pod{t.host}, t.pods...) {
		if seen[p.in.space.ID()] {
			continue
		}
		seen[p.in.space.ID()] = true
		where := "pod " + p.name
		if p.host {
			where = "node " + p.name
		}
		err := p.in.space.Do(func() error {
			all, err := nsmonitor.Interfaces()
			for _, i := range all {
				one := result.Link{Network: t.spec.Network, Where: where, Name: i.Name, Kind: i.Kind, MTU: i.MTU}
				if i.Kind == "bridge" {
					one.Netfilter = testbed.BridgeNetfilter(t.spec.Family)
				}
				links = append(links, one)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("look at the devices of %s: %w", where, err)
		}
	}
	return links, nil
}

// Sysctls implements testbed.Testbed: as found in the host's namespace.
func (t *Testbed) Sysctls(context.Context) (map[string]string, error) {
	var all map[string]string
	err := t.host.in.space.Do(func() (err error) {
		all, err = testbed.ReadSettings(testbed.Settings())
		return err
	})
	return all, err
}

// Swap implements testbed.Testbed.
func (t *Testbed) Swap(context.Context, string) error {
	return errors.New("containers stay on the network that they were made on")
}

// Instruments implements testbed.Testbed.
func (t *Testbed) Instruments() testbed.Instruments {
	return testbed.Instruments{PathObserver: t, Within: t.within}
}

// within calls f in the namespace of a pod or of the host.
func (t *Testbed) within(name string, f func(fd int) error) error {
	for _, p := range append([]*pod{t.host}, t.pods...) {
		if p.name == name {
			return p.in.space.WithFD(f)
		}
	}
	return fmt.Errorf("there is no pod %s", name)
}

// watcher is the testbed's path observer, made at its first use.
func (t *Testbed) watcher() *nodeagent.Observer {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.observer == nil {
		t.observer = nodeagent.NewObserver(t, nodeagent.Config{
			Program: t.driver.options.Agent,
			Reach:   t.reach,
			Address: func(p testbed.Pod) netip.Addr { return p.Address() },
			HostNetwork: func(p testbed.Pod) bool {
				own := t.own(p)
				return own != nil && own.host
			},
			NodeAddress: func(testbed.Pod) netip.Addr { return t.host.address },
			Node: func(ctx context.Context, _ string) (*nodeagent.Agent, error) {
				return t.driver.onHost(ctx, hostPod{t.host, t.driver.procs})
			},
		})
	}
	return t.observer
}

// hostPod starts programs in the host's namespace that outlive a testbed.
type hostPod struct {
	*pod
	procs *lab.Processes
}

// Start implements testbed.Pod.
func (p hostPod) Start(ctx context.Context, cmd testbed.Command) (testbed.Process, error) {
	return p.procs.Start(ctx, p.in.space, cmd, p.name)
}

// reach is how clients reach servers.
func (t *Testbed) reach() testbed.Reach {
	switch t.spec.Network {
	case Host:
		return testbed.ReachHost
	case Published, Proxied:
		return testbed.ReachNodePort
	}
	return testbed.ReachPod
}

// Watch implements testbed.PathObserver.
func (t *Testbed) Watch(ctx context.Context, from, to testbed.Pod) (testbed.Watch, error) {
	return t.watcher().Watch(ctx, from, to)
}

// Count implements testbed.PathObserver.
func (t *Testbed) Count(ctx context.Context, from, to testbed.Pod) (map[network.Device]testbed.Counters, error) {
	return t.watcher().Count(ctx, from, to)
}

// Close implements testbed.Testbed: the containers stay for the next testbed, with nothing in them.
func (t *Testbed) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	var err error
	if t.observer != nil {
		err = t.observer.Close()
	}
	err = errors.Join(err, t.procs.Close())
	for _, p := range t.pods {
		if p.in != nil {
			t.driver.giveBack(p.holding, p.in)
		}
	}
	return err
}
