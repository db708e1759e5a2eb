package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube/inside"
	"netdelta/testbed/kube/nodeagent"
)

// ErrClosed is the error of what is asked of a testbed that was closed.
var ErrClosed = errors.New("the testbed is closed")

// Testbed is a testbed whose pods run in a cluster. It is safe for concurrent use.
type Testbed struct {
	driver   *Driver
	index    int
	device   string  // that each pod needs, "" for none
	found    located // where its endpoint was when it was opened
	slot     int     // its range of ports on the nodes, -1 for none
	pods     []*pod
	peers    *peers // nil for none
	observer *nodeagent.Observer

	policing sync.Mutex // held while policies are made or removed
	policed  bool       // there are some
	joining  sync.Mutex // held while it is tried whether the client reaches others

	mu      sync.RWMutex // held for reading while something is under way
	spec    testbed.Spec
	closed  bool
	streams []*stream
	keeping sync.Mutex // of streams
}

var _ testbed.Testbed = (*Testbed)(nil)

// enter keeps the testbed open until the function that it returns is called.
func (t *Testbed) enter() (done func(), err error) {
	t.mu.RLock()
	if t.closed {
		t.mu.RUnlock()
		return nil, ErrClosed
	}
	return t.mu.RUnlock, nil
}

// keep remembers a program that is to end with the testbed.
func (t *Testbed) keep(s *stream) {
	t.keeping.Lock()
	defer t.keeping.Unlock()
	t.streams = slices.DeleteFunc(t.streams, func(s *stream) bool {
		select {
		case <-s.done:
			return true
		default:
			return false
		}
	})
	t.streams = append(t.streams, s)
}

// Spec implements testbed.Testbed. Its network is the present one.
func (t *Testbed) Spec() testbed.Spec {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.spec
}

// labels select the testbed's pods, or the one of this number, or its peers.
func (t *Testbed) labels(pod string) map[string]string {
	all := map[string]string{LabelRun: string(t.driver.Run()), LabelTestbed: strconv.Itoa(t.index)}
	if pod != "" {
		all[LabelPod] = pod
	}
	return all
}

// family is the version of IP that all addresses are of.
func (t *Testbed) family() result.Family {
	return cmp.Or(t.spec.Family, result.IPv4)
}

// Pods implements testbed.Testbed.
func (t *Testbed) Pods() []testbed.Pod {
	pods := make([]testbed.Pod, len(t.pods))
	for i, p := range t.pods {
		pods[i] = p
	}
	return pods
}

// sends says whether a pod, by its index, is a client's: all are with an external endpoint or volumes; else the first is, and with peers the first
// of each node after theirs that has a client.
func (t *Testbed) sends(index int) bool {
	node, rest := index/t.spec.PodsPerNode, index%t.spec.PodsPerNode
	p := t.spec.Peers
	return index == 0 || t.spec.Target != "" || t.spec.Volume.Class != "" || p.Count > 0 && rest == 0 && node > p.Count && node < p.Nodes()
}

// own is a pod as one of the testbed's, nil for one of another.
func (t *Testbed) own(p testbed.Pod) *pod {
	own, ok := p.(*pod)
	if !ok || own.bed != t {
		return nil
	}
	return own
}

// Endpoint implements testbed.Testbed. It is the zero address for a pod of another testbed, and for one in which nothing was
// started yet.
func (t *Testbed) Endpoint(from, to testbed.Pod, port uint16) netip.AddrPort {
	server := t.own(to)
	if t.own(from) == nil || server == nil || server.alive() == nil {
		return netip.AddrPort{}
	}
	return server.endpoint(t.Spec().Network, port)
}

// endpoint is where a port of the pod is reached in a network.
func (p *pod) endpoint(networkName string, port uint16) netip.AddrPort {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := netip.AddrPort{}
	switch f := p.fronts[networkName]; networkName {
	case Host:
		at = netip.AddrPortFrom(p.live.HostAddress(p.bed.family()), port)
	case ClusterIP:
		if f != nil {
			at = netip.AddrPortFrom(f.address, port)
		}
	case NodePort:
		if f != nil {
			at = netip.AddrPortFrom(p.live.HostAddress(p.bed.family()), f.ports[port])
		}
	case Pod:
		at = netip.AddrPortFrom(p.live.AddressOf(p.bed.family()), port)
	default:
		at = netip.AddrPortFrom(p.reached[networkName], port)
	}
	if !at.IsValid() || at.Port() == 0 {
		return netip.AddrPort{}
	}
	return at
}

// look asks all pods that are up for their devices and settings.
func (t *Testbed) look(ctx context.Context) (map[*pod]inside.Seen, error) {
	done, err := t.enter()
	if err != nil {
		return nil, err
	}
	defer done()
	var mu sync.Mutex
	all := map[*pod]inside.Seen{}
	var group errgroup.Group
	for _, p := range t.pods {
		live := p.alive()
		if live == nil {
			continue
		}
		group.Go(func() error {
			seen, err := ask[inside.Seen](ctx, t.driver.cluster, live.place, inside.Devices)
			if err != nil {
				return fmt.Errorf("look at the devices of pod %s: %w", live.Name(), err)
			}
			mu.Lock()
			defer mu.Unlock()
			all[p] = seen
			return nil
		})
	}
	return all, group.Wait()
}

// Links implements testbed.Testbed: the devices of the pods in which something was started, as they are seen from inside.
func (t *Testbed) Links(ctx context.Context) ([]result.Link, error) {
	all, err := t.look(ctx)
	if err != nil {
		return nil, err
	}
	var links []result.Link
	for _, p := range t.pods {
		where := "pod " + p.Name()
		if p.host {
			where = "node " + p.Node()
		}
		for _, d := range all[p].Devices {
			links = append(links, result.Link{Network: t.Spec().Network, Where: where, Name: d.Name, Kind: "device", MTU: d.MTU})
		}
	}
	return links, nil
}

// Sysctls implements testbed.Testbed: those that can be read in the first pod that is up.
func (t *Testbed) Sysctls(ctx context.Context) (map[string]string, error) {
	all, err := t.look(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range t.pods {
		if seen, is := all[p]; is {
			return seen.Sysctls, nil
		}
	}
	return map[string]string{}, nil
}

// Notes are sentences on the run so far.
func (t *Testbed) Notes() []string {
	t.driver.mu.Lock()
	defer t.driver.mu.Unlock()
	return slices.Clone(t.driver.said)
}

// Swap implements testbed.Testbed: the pods stay, and are reached in another way.
func (t *Testbed) Swap(ctx context.Context, networkName string) error {
	fail := func(err error) error { return fmt.Errorf("swap to network %s: %w", networkName, err) }
	spec := t.Spec()
	spec.Network = networkName
	if !spec.PodsOutlive {
		return fail(errors.New("the pods were not made to outlive their network"))
	}
	if err := possible(spec); err != nil {
		return fail(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return fail(ErrClosed)
	}
	before := t.spec.Network
	if (before == Host) != (networkName == Host) {
		return fail(&testbed.UnsupportedError{
			Feature: "a swap between network " + before + " and network " + networkName,
			Need:    "pods that move between their node's namespace and one of their own", Fix: "open another testbed for network " + Host,
		})
	}
	t.spec.Network = networkName
	t.joining.Lock()
	for _, p := range t.pods {
		p.ready = false
	}
	t.joining.Unlock()
	for _, p := range t.pods {
		if p.alive() == nil {
			continue
		}
		if err := t.join(ctx, p); err != nil {
			t.spec.Network = before
			return fail(err)
		}
	}
	return nil
}

// Close implements testbed.Testbed.
func (t *Testbed) Close() error {
	t.dismiss()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	var group errgroup.Group
	for _, s := range t.streams {
		group.Go(func() error { s.cut(); return nil })
	}
	errs := make([]error, len(t.pods)+2)
	errs[len(t.pods)] = t.peers.remove() // before its pods, which it would make anew
	for i, p := range t.pods {
		group.Go(func() error {
			errs[i] = errors.Join(p.remove(), t.driver.unlessLingers(p.claim.remove()))
			return nil
		})
	}
	_ = group.Wait() // the errors are gathered
	errs[len(t.pods)+1] = t.unpolice()
	if t.slot >= 0 {
		t.driver.giveBack(t.slot)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close a testbed on cluster %s: %w", t.driver.cluster.Name, err)
	}
	return nil
}
