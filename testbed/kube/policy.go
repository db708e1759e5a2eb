package kube

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube/inside"
)

const (
	// LabelPeer numbers the idle pods that policies let in, counted from 0 in each run.
	LabelPeer = "netdelta.dev/peer"
	// policiesAtOnce is how many policies are made or deleted at a time.
	policiesAtOnce = 8
	// enforcedWithin is how long an engine may take to bring policies into effect, and seenWithin one that did so before in this run: on a
	// busy machine.
	enforcedWithin = 20 * time.Second
	seenWithin     = 2 * time.Minute
)

// policies are the NetworkPolicy objects of a testbed, in the order of their names: they select its servers, and the last one lets
// the testbed's own pods in, by the ports that servers listen on and the port of trials. The policies before it admit only idle pods.
func (t *Testbed) policies() []*networkingv1.NetworkPolicy {
	c := t.spec.Conditions.Plain()
	if c.Policy != result.PolicyKubernetes || len(t.pods) < 2 {
		return nil
	}
	server := t.pods[1]
	first, _ := server.Ports()
	own := t.labels("")
	idle := metav1.LabelSelector{MatchLabels: map[string]string{LabelRun: string(t.driver.Run()), LabelRole: string(RolePolicy)}}
	// None is let in by those before the last: no pod has this number.
	numbers := []string{"none"}
	for i := range c.PolicyPods {
		numbers = append(numbers, strconv.Itoa(i))
	}
	idle.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: LabelPeer, Operator: metav1.LabelSelectorOpIn, Values: numbers}}
	all := make([]*networkingv1.NetworkPolicy, c.PolicyRules)
	for i := range all {
		from := []networkingv1.NetworkPolicyPeer{{PodSelector: &idle}}
		if i == len(all)-1 {
			from = append(from, networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: own}})
		}
		name := t.driver.Run().Name(fmt.Sprintf("t%d-n%05d", t.index, i))
		all[i] = admitting(t.driver.Run(), name, metav1.LabelSelector{
			MatchLabels:      own,
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: LabelRole, Operator: metav1.LabelSelectorOpIn, Values: []string{string(RoleServer)}}},
		}, from, first, server.trialPort())
	}
	return all
}

// admitting is a NetworkPolicy that lets some in to the pods that it selects, by TCP and UDP and a range of ports.
func admitting(run RunID, name string, pods metav1.LabelSelector, from []networkingv1.NetworkPolicyPeer, first, last uint16) *networkingv1.NetworkPolicy {
	rule := networkingv1.NetworkPolicyIngressRule{From: from}
	for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
		rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{
			Protocol: &protocol, Port: new(intstr.FromInt32(int32(first))), EndPort: new(int32(last)),
		})
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: run.Labels(RolePolicy)},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: pods, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, Ingress: []networkingv1.NetworkPolicyIngressRule{rule},
		},
	}
}

// police makes the testbed's policies, once.
func (t *Testbed) police(ctx context.Context) error {
	t.policing.Lock()
	defer t.policing.Unlock()
	all := t.policies()
	if t.policed || len(all) == 0 {
		return nil
	}
	began := time.Now()
	if err := t.driver.idle(ctx, t.spec.Conditions.Plain().PolicyPods); err != nil {
		return err
	}
	// Those that were made are removed with the testbed, whatever becomes of the others.
	t.policed = true
	if err := t.driver.cluster.makePolicies(ctx, all); err != nil {
		return err
	}
	t.driver.launcher.options.Log("%d policies made in %s", len(all), time.Since(began).Round(time.Millisecond))
	return nil
}

// makePolicies makes policies.
func (c *Cluster) makePolicies(ctx context.Context, all []*networkingv1.NetworkPolicy) error {
	policies := c.API.NetworkPolicies(c.Namespace)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(policiesAtOnce)
	for _, p := range all {
		group.Go(func() error {
			_, err := create(ctx, policies, "networkpolicy", p)
			return err
		})
	}
	return group.Wait()
}

// unpolice removes the testbed's policies. It is idempotent.
func (t *Testbed) unpolice() error {
	t.policing.Lock()
	defer t.policing.Unlock()
	if !t.policed {
		return nil
	}
	names := gather.Each(t.policies(), func(p *networkingv1.NetworkPolicy) string { return p.Name })
	err := t.driver.cluster.deletePolicies(names)
	t.policed = err != nil
	return err
}

// deletePolicies removes policies.
func (c *Cluster) deletePolicies(names []string) error {
	var group errgroup.Group
	group.SetLimit(policiesAtOnce)
	for _, name := range names {
		group.Go(func() error { return remove(c.API.NetworkPolicies(c.Namespace), "networkpolicy", name) })
	}
	return group.Wait()
}

// unenforced is the answer where NetworkPolicy objects have no effect after so long.
func unenforced(within time.Duration) error {
	return &testbed.UnsupportedError{
		Feature: "policy=" + result.PolicyKubernetes,
		Need:    fmt.Sprintf("a policy engine, which this cluster does not have or which has not come into effect within %s: what no policy admits came through", within),
		Fix:     "take a CNI that enforces NetworkPolicy (Calico, Cilium, kube-router, kube-network-policies); for the cluster of make cluster-up: go run ./extras/cluster switch --policy kube-network-policies",
	}
}

// policeable says what excludes policies by the kind of the network or the client.
func policeable(spec testbed.Spec) error {
	c := spec.Conditions.Plain()
	if c.Policy != result.PolicyKubernetes {
		return nil
	}
	if c.From == result.FromNode {
		return &testbed.UnsupportedError{
			Feature: "policy=" + result.PolicyKubernetes + " with from=node", Need: "a client whose address policies know: what a node sends to its own pods passes them",
			Fix: "measure it with from=pod",
		}
	}
	if strings.HasPrefix(spec.Network, MultusPrefix) {
		return &testbed.UnsupportedError{
			Feature: "policy=" + result.PolicyKubernetes + " over network " + spec.Network, Need: "a network that NetworkPolicy objects are about: they are about the first one of pods",
			Fix: "measure it over " + Pod,
		}
	}
	return nil
}

// enforces says so unless the cluster enforces policies. It is tried once.
func (d *Driver) enforces(ctx context.Context) error {
	d.trying.Lock()
	defer d.trying.Unlock()
	if d.tried {
		return d.policies
	}
	err := d.tryPolicies(ctx)
	if err == nil || errors.Is(err, testbed.ErrUnsupported) {
		d.tried, d.policies = true, err
	}
	return err
}

// tryPolicies finds out whether the cluster enforces policies, with two pods and one policy.
func (d *Driver) tryPolicies(ctx context.Context) (err error) {
	tb, err := d.Open(ctx, testbed.Spec{
		Nodes: 1, PodsPerNode: 2, Network: Pod, Conditions: result.Conditions{Policy: result.PolicyKubernetes, PolicyRules: 1},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tb.Close()) }()
	var group errgroup.Group
	for _, p := range tb.(*Testbed).pods {
		group.Go(func() error { _, err := p.ensure(ctx); return err })
	}
	return group.Wait()
}

// enforced proves that the policies are in effect at a server that the client reaches: it does not reach a port that none of them
// names. What a policy does to pods in their node's namespace is open, so there is nothing to prove there.
func (t *Testbed) enforced(ctx context.Context, client, server *pod) error {
	if t.spec.Conditions.Plain().Policy != result.PolicyKubernetes || server.host {
		return nil
	}
	c, s := client.alive(), server.alive()
	port := server.trialPort() + 1
	answerer, err := listen(ctx, t.driver.cluster, s.place, port)
	if err != nil {
		return err
	}
	defer func() { _ = answerer.Close() }() // it has served
	trial := inside.Trial{At: []netip.AddrPort{netip.AddrPortFrom(s.AddressOf(t.family()), port)}}
	within := enforcedWithin
	if t.driver.enforcing.Load() {
		within = seenWithin
	}
	for waited := range Polling(ctx, apiPause) {
		out, err := ask[inside.Outcome](ctx, t.driver.cluster, c.place, inside.Try, trial)
		switch {
		case err != nil:
			return fmt.Errorf("try from %s whether policies are in effect: %w", client.Name(), err)
		case out.Error != "":
			t.driver.enforcing.Store(true)
			t.driver.launcher.options.Log("policies are in effect at %s, %s after it was asked", server.Name(), waited.Round(time.Millisecond))
			return nil
		case waited > within:
			return unenforced(within)
		}
	}
	return context.Cause(ctx)
}

// idle has at least n pods up that do nothing but be let in by policies. Streams keep them up. They stay until the driver is closed.
func (d *Driver) idle(ctx context.Context, n int) error {
	d.idling.Lock()
	defer d.idling.Unlock()
	from := len(d.idlePods)
	pods := d.cluster.API.Pods(d.cluster.Namespace)
	for i := from; i < n; i++ {
		manifest := d.launcher.Manifest(Wish{Name: fmt.Sprintf("peer%d", i), Role: RolePolicy, Labels: map[string]string{LabelPeer: strconv.Itoa(i)}})
		if _, err := create(ctx, pods, "the idle pod", manifest); err != nil {
			return err
		}
	}
	for i := from; i < n; i++ {
		name := d.Run().Name(fmt.Sprintf("peer%d", i))
		if _, err := d.launcher.await(ctx, d.cluster.Namespace, name); err != nil {
			return fmt.Errorf("wait for the idle pod %s: %w; fewer of them are enough with policy.pods", name, err)
		}
		at := ContainerRef{Namespace: d.cluster.Namespace, Pod: name, Container: containerName, Program: programInImage}
		hold := task(at, inside.Hold)
		if d.launcher.options.Image == "" {
			hold = []string{"cat"}
		}
		s, err := open(ctx, d.cluster, at, hold)
		if err != nil {
			return fmt.Errorf("keep the idle pod %s up: %w", name, err)
		}
		d.idlePods = append(d.idlePods, s)
	}
	return nil
}

// endIdle lets go of the idle pods; they are removed with all that the run has made.
func (d *Driver) endIdle() {
	d.idling.Lock()
	defer d.idling.Unlock()
	for _, s := range d.idlePods {
		s.cut()
	}
	d.idlePods = nil
}
