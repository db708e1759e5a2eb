package joined

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/remote"
	"netdelta/unit"
)

// Testbed is a testbed whose nodes are machines. It is safe for concurrent use.
type Testbed struct {
	driver *Driver
	wire   int
	topo   network.Topology
	parts  []*remote.Part // of each node
	pods   []*pod

	mu     sync.RWMutex // held for writing while the network changes
	spec   testbed.Spec
	plan   network.Plan
	closed bool
}

var _ testbed.Observer = (*Testbed)(nil)

// Instruments implements testbed.Testbed.
func (l *Testbed) Instruments() testbed.Instruments { return testbed.Instruments{Observer: l} }

// Spec implements testbed.Testbed. Its network is the present one.
func (l *Testbed) Spec() testbed.Spec {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.spec
}

// Plan implements testbed.Observer. There is no switch in it.
func (l *Testbed) Plan() network.Plan {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.plan
}

// Pods implements testbed.Testbed.
func (l *Testbed) Pods() []testbed.Pod {
	pods := make([]testbed.Pod, len(l.pods))
	for j, p := range l.pods {
		pods[j] = p
	}
	return pods
}

// Endpoint implements testbed.Testbed. For a pod of another testbed it is the zero address.
func (l *Testbed) Endpoint(from, to testbed.Pod, port uint16) netip.AddrPort {
	a, ok1 := l.indexOf(from)
	b, ok2 := l.indexOf(to)
	if !ok1 || !ok2 {
		return netip.AddrPort{}
	}
	return l.Plan().Endpoint(a, b, port)
}

// Path implements testbed.Observer.
func (l *Testbed) Path(from, to testbed.Pod, protocol network.Protocol) []network.Hop {
	a, ok1 := l.indexOf(from)
	b, ok2 := l.indexOf(to)
	if !ok1 || !ok2 {
		return nil
	}
	return l.Plan().Path(a, b, protocol)
}

func (l *Testbed) indexOf(p testbed.Pod) (int, bool) {
	own, ok := p.(*pod)
	if !ok || own.bed != l {
		return 0, false
	}
	return own.index, true
}

// open calls f unless the testbed is closed, and keeps it open meanwhile.
func (l *Testbed) open(f func() error) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return lab.ErrClosed
	}
	return f()
}

// each asks all nodes at once. The answers are in the nodes' order.
func each[T any](l *Testbed, ask func(*remote.Part) (T, error)) ([]T, error) {
	all := make([]T, len(l.parts))
	err := l.open(func() error {
		var group errgroup.Group
		for i, p := range l.parts {
			group.Go(func() (err error) {
				if all[i], err = ask(p); err != nil {
					return fmt.Errorf("node%d: %w", i, err)
				}
				return nil
			})
		}
		return group.Wait()
	})
	return all, err
}

// Links implements testbed.Testbed.
func (l *Testbed) Links(ctx context.Context) ([]result.Link, error) {
	all, err := each(l, func(p *remote.Part) ([]result.Link, error) { return p.Links(ctx) })
	return slices.Concat(all...), err
}

// Sysctls implements testbed.Testbed.
func (l *Testbed) Sysctls(ctx context.Context) (values map[string]string, err error) {
	err = l.open(func() (err error) {
		values, err = l.parts[0].Sysctls(ctx)
		return err
	})
	return values, err
}

// Counters implements testbed.Observer.
func (l *Testbed) Counters(ctx context.Context) (map[network.Device]testbed.Counters, error) {
	all, err := each(l, func(p *remote.Part) (map[network.Device]testbed.Counters, error) { return p.Counters(ctx) })
	return merged(all), err
}

// Stacks implements testbed.Observer.
func (l *Testbed) Stacks(ctx context.Context) (map[network.Space]testbed.Stack, error) {
	all, err := each(l, func(p *remote.Part) (map[network.Space]testbed.Stack, error) { return p.Stacks(ctx) })
	return merged(all), err
}

func merged[K comparable, V any](parts []map[K]V) map[K]V {
	all := map[K]V{}
	for _, p := range parts {
		maps.Copy(all, p)
	}
	return all
}

// Fit implements testbed.Observer.
func (l *Testbed) Fit(ctx context.Context, from, to testbed.Pod, size unit.Bytes) error {
	a, ok1 := l.indexOf(from)
	b, ok2 := l.indexOf(to)
	if !ok1 || !ok2 {
		return errors.New("send a packet from one pod to another: they are not both pods of this testbed")
	}
	return l.open(func() error { return l.parts[l.topo.Pods[a].Node].Fit(ctx, a, b, size) })
}

// Tap implements testbed.Observer.
func (l *Testbed) Tap(ctx context.Context, spaces []network.Space) (testbed.Tap, error) {
	t := &tap{}
	err := l.open(func() error {
		for i, p := range l.parts {
			var own []network.Space
			for _, s := range spaces {
				if s == network.InNode(i) || s.Kind == network.PodSpace && l.topo.Pods[s.Index].Node == i {
					own = append(own, s)
				}
			}
			if len(own) == 0 {
				continue
			}
			one, err := p.Tap(ctx, own)
			if err != nil {
				return errors.Join(fmt.Errorf("node%d: %w", i, err), t.Close())
			}
			t.parts = append(t.parts, one)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// tap is one of each node.
type tap struct{ parts []testbed.Tap }

// Packets implements testbed.Tap.
func (t *tap) Packets() (seen []testbed.Packet, missed int, err error) {
	for _, p := range t.parts {
		packets, lost, failed := p.Packets()
		seen, missed, err = append(seen, packets...), missed+lost, errors.Join(err, failed)
	}
	return seen, missed, err
}

// Close implements testbed.Tap.
func (t *tap) Close() error {
	var err error
	for _, p := range t.parts {
		err = errors.Join(err, p.Close())
	}
	return err
}

// Swap implements testbed.Testbed.
func (l *Testbed) Swap(ctx context.Context, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("swap to network %s: %w", name, lab.ErrClosed)
	}
	_, p, err := l.driver.plan(l.spec, name)
	if err != nil {
		return fmt.Errorf("swap the network: %w", err)
	}
	var group errgroup.Group
	for i, part := range l.parts {
		group.Go(func() error {
			if err := part.Swap(ctx, name); err != nil {
				return fmt.Errorf("node%d: %w", i, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	l.plan, l.spec.Network = p, name
	return nil
}

// Close implements testbed.Testbed.
func (l *Testbed) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	var group errgroup.Group
	for _, p := range l.parts {
		group.Go(p.Close)
	}
	err := group.Wait()
	l.driver.giveBack(l.wire)
	if err != nil {
		return fmt.Errorf("close the testbed: %w", err)
	}
	return nil
}

// pod is an endpoint on one of the machines.
type pod struct {
	bed   *Testbed
	index int
}

var _ testbed.Pod = (*pod)(nil)

// Name implements testbed.Pod.
func (p *pod) Name() string { return p.bed.topo.Pods[p.index].Name }

// Node implements testbed.Pod.
func (p *pod) Node() string { return p.bed.topo.Nodes[p.bed.topo.Pods[p.index].Node].Name }

// Address implements testbed.Pod. Under host networking it is the node's.
func (p *pod) Address() netip.Addr { return p.bed.Plan().Pods[p.index].Address }

// Ports implements testbed.Pod.
func (p *pod) Ports() (first, last uint16) {
	own := p.bed.topo.Pods[p.index]
	return own.FirstPort, own.LastPort
}

// Start implements testbed.Pod. The program is one of the pod's machine.
func (p *pod) Start(ctx context.Context, cmd testbed.Command) (started testbed.Process, err error) {
	err = p.bed.open(func() (err error) {
		started, err = p.bed.parts[p.bed.topo.Pods[p.index].Node].Start(ctx, p.index, cmd)
		return err
	})
	return started, err
}
