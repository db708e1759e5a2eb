package kube

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"

	"netdelta/testbed"
)

// pod is one of a testbed's. It is made in the cluster when the first program is started in it.
type pod struct {
	bed   *Testbed
	index int
	node  string
	host  bool   // in its node's own namespace
	claim *claim // nil for none

	making sync.Mutex // held while it is made

	mu      sync.Mutex
	live    *LivePod
	fronts  map[string]*front     // Services in front of it, by network
	reached map[string]netip.Addr // its address, by network, where the network gives it one of its own

	// These are the testbed's, under its joining lock.
	ready  bool         // it is up, and has what the present network puts in front of it
	proven map[way]bool // the ways by which clients reach it
}

var _ testbed.Pod = (*pod)(nil)

// name is what follows the run in the pod's name.
func (p *pod) name() string { return fmt.Sprintf("t%d-p%d", p.bed.index, p.index) }

// Name implements testbed.Pod. The name of a peer is known once it is there.
func (p *pod) Name() string {
	if live := p.alive(); live != nil {
		return live.Name()
	}
	return p.bed.driver.Run().Name(p.name())
}

// Node implements testbed.Pod.
func (p *pod) Node() string { return p.node }

// Address implements testbed.Pod. It is not valid before something was started in the pod.
func (p *pod) Address() netip.Addr {
	live := p.alive()
	if live == nil {
		return netip.Addr{}
	}
	return live.AddressOf(p.bed.family())
}

// Ports implements testbed.Pod: pods in their nodes' namespaces have ranges of their own.
func (p *pod) Ports() (first, last uint16) {
	if p.host {
		return p.bed.driver.launcher.hostPorts(p.bed.slot)
	}
	return firstPort, firstPort + uint16(p.bed.driver.launcher.options.Ports) - 1
}

// trialPort is the one on which it is tried whether the pod can be reached.
func (p *pod) trialPort() uint16 {
	_, last := p.Ports()
	return last + 1
}

// alive is the pod in the cluster, nil before it was made.
func (p *pod) alive() *LivePod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.live
}

// Start implements testbed.Pod. The first start makes the pod, and tries whether it can be reached.
func (p *pod) Start(ctx context.Context, cmd testbed.Command) (testbed.Process, error) {
	done, err := p.bed.enter()
	if err != nil {
		return nil, fmt.Errorf("start %s in pod %s: %w", cmd.Path, p.Name(), err)
	}
	defer done()
	live, err := p.ensure(ctx)
	if err != nil {
		return nil, err
	}
	s, err := live.start(ctx, cmd)
	if err != nil {
		return nil, err
	}
	p.bed.keep(s)
	return s, nil
}

// ensure makes the pod unless it is there.
func (p *pod) ensure(ctx context.Context) (*LivePod, error) {
	p.making.Lock()
	defer p.making.Unlock()
	if live := p.alive(); live != nil {
		return live, nil
	}
	if err := p.bed.police(ctx); err != nil {
		return nil, err
	}
	if err := p.claim.ensure(ctx); err != nil {
		return nil, err
	}
	launch := func() (*LivePod, error) { return p.bed.driver.launcher.Launch(ctx, p.wish()) }
	if p.bed.peers.has(p) {
		launch = func() (*LivePod, error) { return p.bed.peers.adopt(ctx, p) }
	}
	live, err := launch()
	if err != nil {
		return nil, err
	}
	p.claim.tell(ctx)
	p.mu.Lock()
	p.live = live
	p.mu.Unlock()
	if err = p.bed.join(ctx, p); err != nil {
		return nil, errors.Join(fmt.Errorf("pod %s: %w", live.Name(), err), p.remove())
	}
	return live, nil
}

// remove takes the pod and what is in front of it out of the cluster. It is idempotent.
func (p *pod) remove() error {
	p.mu.Lock()
	live, fronts := p.live, p.fronts
	p.live, p.fronts = nil, nil
	p.mu.Unlock()
	var errs []error
	cluster := p.bed.driver.cluster
	for _, f := range fronts {
		errs = append(errs, p.bed.driver.unlessLingers(remove(cluster.API.Services(cluster.Namespace), "service", f.name)))
	}
	if live != nil {
		errs = append(errs, p.bed.driver.unlessLingers(live.Delete()))
	}
	return errors.Join(errs...)
}

// selector are the labels by which Services find the pod.
func (p *pod) selector() map[string]string {
	if p.bed.peers.has(p) {
		return map[string]string{appsv1.StatefulSetPodNameLabel: p.Name()}
	}
	return p.bed.labels(strconv.Itoa(p.index))
}

// wish is what the pod has to be like.
func (p *pod) wish() Wish {
	w := Wish{Name: p.name(), Role: RoleServer, Labels: p.selector(), Annotations: map[string]string{}, HostNetwork: p.host, Node: p.node, Claim: p.claim.name()}
	if p.bed.sends(p.index) {
		w.Role = RoleClient
	}
	w.First, w.Last = p.Ports()
	if w.HostNetwork {
		w.Annotations[annotationPorts] = portsText(w.First, p.trialPort())
	}
	if rest, is := strings.CutPrefix(p.bed.spec.Network, MultusPrefix); is && !w.HostNetwork {
		w.Annotations[annotationNetworks] = rest
		if p.bed.device != "" {
			w.Resources = map[string]int64{p.bed.device: 1}
		}
	}
	return w
}
