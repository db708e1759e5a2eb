package joined

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/unit"
)

// Testbed is a testbed whose nodes are machines. It is safe for concurrent use.
type Testbed struct {
	*testbed.Planned // there is no switch in its plan
	driver           *Driver
	wire             int // noWire where it has none
	found            bool
	slot             int    // of takePorts, where found
	parts            []part // of each node

	mu     sync.RWMutex // held for writing while the network changes
	closed bool
}

var _ testbed.Observer = (*Testbed)(nil)

// Instruments implements testbed.Testbed.
func (l *Testbed) Instruments() testbed.Instruments { return testbed.Instruments{Observer: l} }

// open calls f unless the testbed is closed, and keeps it open meanwhile.
func (l *Testbed) open(f func() error) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return lab.ErrClosed
	}
	return f()
}

// all asks all nodes at once about their labs. The answers are in the nodes' order.
func all[R any](ctx context.Context, l *Testbed, op string, args any) ([]R, error) {
	answers := make([]R, len(l.parts))
	var group errgroup.Group
	for i, p := range l.parts {
		group.Go(func() (err error) {
			if answers[i], err = askLab[R](ctx, p, op, args); err != nil {
				return fmt.Errorf("node%d: %w", i, err)
			}
			return nil
		})
	}
	return answers, group.Wait()
}

// each is all where the testbed is open.
func each[R any](ctx context.Context, l *Testbed, op string) (answers []R, err error) {
	err = l.open(func() (err error) {
		answers, err = all[R](ctx, l, op, nil)
		return err
	})
	return answers, err
}

// Links implements testbed.Testbed.
func (l *Testbed) Links(ctx context.Context) ([]result.Link, error) {
	answers, err := each[[]result.Link](ctx, l, opLinks)
	return slices.Concat(answers...), err
}

// Sysctls implements testbed.Testbed.
func (l *Testbed) Sysctls(ctx context.Context) (values map[string]string, err error) {
	err = l.open(func() (err error) {
		values, err = askLab[map[string]string](ctx, l.parts[0], opSysctls, nil)
		return err
	})
	return values, err
}

// Counters implements testbed.Observer.
func (l *Testbed) Counters(ctx context.Context) (map[network.Device]testbed.Counters, error) {
	answers, err := each[[]entry[network.Device, testbed.Counters]](ctx, l, opCounters)
	return merged(answers), err
}

// Stacks implements testbed.Observer.
func (l *Testbed) Stacks(ctx context.Context) (map[network.Space]testbed.Stack, error) {
	answers, err := each[[]entry[network.Space, testbed.Stack]](ctx, l, opStacks)
	return merged(answers), err
}

// partOf is the part with the node that a pod is on.
func (l *Testbed) partOf(pod int) part { return l.parts[l.numberOf(l.Topology.Pods[pod].Node)] }

// numberOf is the number of the part with a node.
func (l *Testbed) numberOf(node int) int { return min(node, len(l.parts)-1) }

// Fit implements testbed.Observer.
func (l *Testbed) Fit(ctx context.Context, from, to testbed.Pod, size unit.Bytes) error {
	a, b, ok := l.Numbers(from, to)
	if !ok {
		return errors.New("send a packet from one pod to another: they are not both pods of this testbed")
	}
	return l.open(func() error {
		_, err := askLab[any](ctx, l.partOf(a), opFit, fitArgs{a, b, size})
		return err
	})
}

// LargestPacket finds out how large packets can be that get from one pod to another and back.
func (l *Testbed) LargestPacket(ctx context.Context, from, to testbed.Pod) (found Largest, err error) {
	a, b, ok := l.Numbers(from, to)
	if !ok {
		return found, errors.New("look at the way between two pods: they are not both pods of this testbed")
	}
	err = l.open(func() (err error) {
		found, err = askLab[Largest](ctx, l.partOf(a), opLargest, fitArgs{From: a, To: b})
		return err
	})
	return found, err
}

// Tap implements testbed.Observer.
func (l *Testbed) Tap(ctx context.Context, spaces []network.Space) (testbed.Tap, error) {
	t := &tap{}
	err := l.open(func() error {
		for i, p := range l.parts {
			var own []network.Space
			for _, s := range spaces {
				if l.driver.whole() || s == network.InNode(i) || s.Kind == network.PodSpace && l.Topology.Pods[s.Index].Node == i {
					own = append(own, s)
				}
			}
			if len(own) == 0 {
				continue
			}
			number, err := askLab[int](ctx, p, opTap, own)
			if err != nil {
				return errors.Join(fmt.Errorf("node%d: %w", i, err), t.Close())
			}
			t.parts = append(t.parts, partTap{p.machine, number})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Swap implements testbed.Testbed.
func (l *Testbed) Swap(ctx context.Context, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("swap to network %s: %w", name, lab.ErrClosed)
	}
	if l.found && name == l.Spec().Network {
		return nil // nothing of it was built
	}
	_, p, err := l.driver.plan(l.Spec(), name)
	if err != nil {
		return fmt.Errorf("swap the network: %w", err)
	}
	if _, err := all[any](context.WithoutCancel(ctx), l, opSwap, name); err != nil {
		return err
	}
	l.Present(p)
	return nil
}

// Close implements testbed.Testbed. What was on a machine that is lost has ended with it.
func (l *Testbed) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	var group errgroup.Group
	for i, p := range l.parts {
		group.Go(func() error {
			_, err := askLab[any](context.Background(), p, opClose, nil)
			if err = p.machine.unlessLost(err); err != nil {
				return fmt.Errorf("node%d: %w", i, err)
			}
			return nil
		})
	}
	err := group.Wait()
	if l.wire != noWire {
		l.driver.giveBack(l.wire)
	} else if l.found {
		l.driver.giveBackPorts(l.slot)
	}
	if err != nil {
		return fmt.Errorf("close the testbed: %w", err)
	}
	return nil
}

// start carries out a pod's Start. The program is one of the pod's machine.
func (l *Testbed) start(ctx context.Context, pod int, cmd testbed.Command) (started testbed.Process, err error) {
	err = l.open(func() (err error) {
		started, err = l.partOf(pod).start(ctx, pod, cmd)
		return err
	})
	return started, err
}

// Own is a machine's own network: the card that leads to the other machines, and the card's addresses.
type Own struct {
	Card      string
	Addresses []netip.Prefix
	MTU       unit.Bytes
}

// foundPorts is how many ports a pod has on a node that is used as it is found. Testbeds share the node, and each has ports of its own,
// from firstPort up to where clusters take ports of services from, and above these the kernel ports of clients.
const (
	foundPorts = 100
	firstPort  = 20000
	lastPort   = 29999
)

// takePorts gives the pods of a testbed ports that no other testbed's pods have there, and returns their number for giveBackPorts.
func (d *Driver) takePorts(t *network.Topology) (slot int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.listening[slot] {
		slot++
	}
	each := len(t.Pods) / len(t.Nodes)
	first := firstPort + slot*each*foundPorts
	if first+each*foundPorts > lastPort {
		return 0, fmt.Errorf("all ports from %d to %d are taken by other pods on the same nodes: fewer networks can stand side by side", firstPort, lastPort)
	}
	d.listening[slot] = true
	for j := range t.Pods {
		at := first + j%each*foundPorts
		t.Pods[j].FirstPort, t.Pods[j].LastPort = uint16(at), uint16(at+foundPorts-1)
	}
	return slot, nil
}

func (d *Driver) giveBackPorts(slot int) {
	d.mu.Lock()
	delete(d.listening, slot)
	d.mu.Unlock()
}

// found puts the machines' own cards and addresses into a topology.
func (d *Driver) found(spec testbed.Spec, t *network.Topology) error {
	refused := func(condition, why string) error {
		return &network.NotPossibleError{Network: spec.Network, Condition: condition, Why: why}
	}
	levels := gather.Each(spec.Conditions.Levels(), result.Level.String)
	if t.Rate > 0 && spec.Conditions.LinkRate == 0 { // of all links of the testbed
		levels = append(levels, fmt.Sprintf("link.rate=%s", t.Rate))
	}
	if len(levels) > 0 {
		return refused(strings.Join(levels, ", "), "nothing of the machines' own network is changed")
	}
	if len(t.Nodes) > len(d.nodes) {
		return refused(fmt.Sprintf("%d nodes", len(t.Nodes)), fmt.Sprintf("there are %d machines, and none is two nodes of its own network", len(d.nodes)))
	}
	for i := range t.Nodes {
		at := d.at(spec.Target, i)
		own := d.nodes[at].Own
		if own == nil {
			return refused("these nodes", "the machines' own cards are not used, or were taken")
		}
		if spec.Target != "" && spec.Link.MTU == 0 && i == 0 {
			t.MTU = own.MTU // nothing is built that had one
		}
		if t.MTU != own.MTU {
			return refused(fmt.Sprintf("mtu=%d", t.MTU), fmt.Sprintf("the card %s of node%d has an MTU of %d, and stays as it is: measure all networks with --mtu %d", own.Card, at, own.MTU, own.MTU))
		}
		address := netip.Prefix{}
		for _, a := range own.Addresses {
			if a.Addr().Is6() == (spec.Family == result.IPv6) && !a.Addr().IsLinkLocalUnicast() && !address.IsValid() {
				address = a
			}
		}
		if !address.IsValid() {
			return refused("family="+string(cmp.Or(spec.Family, result.IPv4)), fmt.Sprintf("the card %s of node%d has no such address", own.Card, at))
		}
		t.Nodes[i].Device, t.Nodes[i].Address = own.Card, address
	}
	return nil
}

// hostNetwork is the network whose pods are in the namespace of their node, which is on its wire.
const hostNetwork = "host"

// Locate is testbed.Targets.Locate: an endpoint stands on the machine that is known by its host.
func (d *Driver) Locate(_ context.Context, host string) (testbed.Site, error) {
	if a, err := netip.ParseAddr(host); host == "localhost" || err == nil && a.IsLoopback() {
		return testbed.Site{}, fmt.Errorf("%s is another place on each machine; name the one that it is on by an address that the others reach", host)
	}
	on := d.stands(host)
	if on < 0 {
		why := "none of the machines is known by the name or address " + host
		return testbed.Site{NoSameNode: why, MaybeSameNode: why}, nil
	}
	site := testbed.Site{Nodes: []string{d.nodes[on].Hosts[0]}}
	if len(d.nodes) == 1 {
		site.MaybeSameNode = "there is one machine"
	}
	return site, nil
}

// stands is the number of the machine that an endpoint is on, -1 where that is not known.
func (d *Driver) stands(host string) int {
	return slices.IndexFunc(d.nodes, func(n Node) bool {
		return slices.ContainsFunc(n.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
	})
}

// at is the number of the machine that a node of a testbed is on. The first node is the one that the testbed's target stands on. Where that is
// none it is the last one, so that clients on another node are on the first machine.
func (d *Driver) at(target string, node int) int {
	if target == "" {
		return node
	}
	first := d.stands(target)
	if first < 0 {
		first = len(d.nodes) - 1
	}
	switch {
	case node == 0:
		return first
	case node <= first:
		return node - 1
	}
	return node
}

// reaches refuses a network whose pods can't reach the target of a testbed. Packets of pods get out of it by their machine's own
// network, and by a wire whose address is of the target's own subnet.
func (d *Driver) reaches(spec testbed.Spec, name string) error {
	if spec.Target == "" {
		return nil
	}
	lacks := func(feature, need, fix string) error {
		return &testbed.UnsupportedError{Feature: feature + " with a target", Need: need, Fix: fix}
	}
	switch {
	case spec.PodsOutlive:
		return lacks("network "+name+" in blocks", "pods that keep their address", "measure it without --blocks")
	case spec.Conditions.Plain() != (result.Conditions{}):
		return lacks("a condition of the network", "a server of netdelta's own", "leave the conditions out, or the target")
	case name == network.Metal:
		return nil
	case name != hostNetwork:
		return lacks("network "+name, "a server of netdelta's own behind it", "measure networks metal and host, which say where clients stand")
	case d.shared.Addresses == nil || d.whole(): // a single machine has no wires
		return lacks("network "+name, "addresses for clients that the target answers", "give some of its subnet (--nic macvlan:CARD,ADDRESS/LENGTH), or measure network metal")
	}
	at, err := netip.ParseAddr(spec.Target)
	if own := d.shared.Addresses[0][0]; err != nil || !own.Contains(at) {
		return lacks("network "+name, fmt.Sprintf("a target whose address is in the subnet of the nodes' addresses, %s", own.Masked()), "name it by its address there, or measure network metal")
	}
	return nil
}

// serves refuses workloads whose servers and clients take more machines than there are.
func (d *Driver) serves(spec testbed.Spec) error {
	need := spec.Peers.Nodes()
	if d.whole() || need <= len(d.nodes) {
		return nil
	}
	return &testbed.UnsupportedError{
		Feature: fmt.Sprintf("a workload with %d servers on %d machines", spec.Peers.Count, len(d.nodes)), Need: fmt.Sprintf("%d machines, one for each server and each client", need),
		Fix: "name more of them, or one alone, which has the whole lab",
	}
}
