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
	corev1 "k8s.io/api/core/v1"

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

// failed names the pod and its node in an error.
func (p *pod) failed(err error) error {
	return fmt.Errorf("pod %s on node %s: %w", p.Name(), p.Node(), err)
}

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
		return nil, errors.Join(err, p.remove())
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

// NodePodSecurity is what a pod on a node needs to make nodes of testbeds there: all rights of the node's root over its kernel, since
// namespaces, devices of every kind, settings and eBPF programs take most of them. Its file system can't be written to, and the node's is
// not in it.
func NodePodSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{RunAsUser: new(int64(0)), RunAsNonRoot: new(false), Privileged: new(true), ReadOnlyRootFilesystem: new(true)}
}

// nodePod is the wish for a pod that makes nodes of testbeds on a node.
func nodePod(name, node string) Wish {
	return Wish{Name: name, Role: RoleNode, HostNetwork: true, Node: node, Security: NodePodSecurity()}
}

// AdmitsNodePods tries whether the namespace admits the pods of LaunchNodePod. None is made.
func (d *Driver) AdmitsNodePods(ctx context.Context) error {
	return d.privileged(dryCreate(ctx, d.cluster.API.Pods(d.cluster.Namespace), "pod", d.launcher.Manifest(nodePod("trial", ""))))
}

// privileged says what to do where a namespace does not admit privileged pods.
func (d *Driver) privileged(err error) error {
	guarded, is := errors.AsType[*GuardedError](err)
	if !is {
		return err
	}
	return &testbed.UnsupportedError{
		Feature: "--what-if", Need: fmt.Sprintf("privileged pods, which namespace %s does not admit (%v)", d.cluster.Namespace, guarded), Fix: privileged,
	}
}

// LaunchNodePod makes a privileged pod in the network namespace of a node, and waits until it is up. It goes with the run.
func (d *Driver) LaunchNodePod(ctx context.Context, node string) (*LivePod, error) {
	if err := d.lease.hold(ctx); err != nil {
		return nil, err
	}
	d.mu.Lock()
	number := d.nodePods
	d.nodePods++
	d.mu.Unlock()
	pod, err := d.launcher.Launch(ctx, nodePod(fmt.Sprintf("node-%d", number), node))
	if err != nil {
		return nil, fmt.Errorf("put a privileged pod on node %s: %w", node, d.privileged(err))
	}
	return pod, nil
}

// Conversation is a program in a pod whose input can be ended while it is still heard.
type Conversation struct{ *stream }

// Converse starts a program of netdelta's own in the pod, with these arguments. The context covers the start.
func (p *LivePod) Converse(ctx context.Context, args ...string) (*Conversation, error) {
	s, err := p.start(ctx, testbed.Command{Path: p.Program(), Args: args})
	if err != nil {
		return nil, err
	}
	return &Conversation{s}, nil
}

// CloseWrite ends the program's input.
func (c *Conversation) CloseWrite() error {
	c.closing.Store(true)
	return c.stdin.Close()
}

// Closing says whether the program's input was ended.
func (c *Conversation) Closing() bool { return c.closing.Load() }

// Ended is closed when the program has ended.
func (c *Conversation) Ended() <-chan struct{} { return c.done }

// Lost is why a program ended that was to go on, by what the cluster says of its pod and its node.
func (c *Conversation) Lost() error { return c.lost() }

// NodeAgentSecurity is what a node agent's container needs on a node: root without any of its rights but two. NET_RAW is for the
// sample of packets, NET_ADMIN for room for more of them than any user may have waiting. The container is not privileged, and
// its file system can't be written to.
func NodeAgentSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsUser: new(int64(0)), RunAsNonRoot: new(false), Privileged: new(false), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN", "NET_RAW"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}
