package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/internal/gather"
	"netdelta/internal/tail"
	"netdelta/testbed"
	"netdelta/testbed/kube/inside"
)

// PolicyTarget is a server that one NetworkPolicy closes to a client on another node, and a watch at the client of whether it is closed. Others
// are in force at the same time. It is for one goroutine.
type PolicyTarget struct {
	bed      *Testbed
	answerer *stream
	watch    *watch
	others   []string // names of policies
	fresh    atomic.Int64
}

// watch is a way that is probed from a pod.
type watch struct {
	stream *stream
	turns  chan testbed.Turn
	clocks chan testbed.Turn
	lost   chan struct{} // closed when the stream has ended
}

// answerAt is where the server of a target answers.
const answerAt = uint16(firstPort)

// OpenPolicyTarget makes the pods of a target, and count-1 policies, so that there are count with the one that will close it: they select
// the client and a pod on the server's node. Every is the time between two probes.
func (d *Driver) OpenPolicyTarget(ctx context.Context, count int, every time.Duration) (testbed.PolicyTarget, error) {
	tb, err := d.Open(ctx, testbed.Spec{Nodes: 2, PodsPerNode: 2, Network: Pod})
	if err != nil {
		return nil, err
	}
	g := &PolicyTarget{bed: tb.(*Testbed)}
	if err := g.open(ctx, count, every); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func (g *PolicyTarget) open(ctx context.Context, count int, every time.Duration) error {
	var group errgroup.Group
	for _, p := range []*pod{g.client(), g.server(), g.bed.pods[3]} {
		group.Go(func() error { _, err := p.ensure(ctx); return err })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	run := g.bed.driver.Run()
	var others []*networkingv1.NetworkPolicy
	for i := range count - 1 {
		name := run.Name(fmt.Sprintf("t%d-n%05d", g.bed.index, i))
		others = append(others, admitting(run, name, g.selecting(g.client(), g.bed.pods[3]), noPods(), firstPort, firstPort))
		g.others = append(g.others, name)
	}
	if err := g.bed.driver.cluster.makePolicies(ctx, others); err != nil {
		return err
	}
	s := g.server().alive()
	var err error
	if g.answerer, err = listen(ctx, g.bed.driver.cluster, s.place, answerAt); err != nil {
		return err
	}
	g.watch, err = g.probe(ctx, inside.Probing{At: netip.AddrPortFrom(s.Address(), answerAt), Protocol: "udp", Every: every})
	return err
}

func (g *PolicyTarget) client() *pod { return g.bed.pods[0] }
func (g *PolicyTarget) server() *pod { return g.bed.pods[2] }

// selecting selects some of the target's pods.
func (g *PolicyTarget) selecting(pods ...*pod) metav1.LabelSelector {
	numbers := gather.Each(pods, func(p *pod) string { return strconv.Itoa(p.index) })
	return metav1.LabelSelector{
		MatchLabels:      g.bed.labels(""),
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: LabelPod, Operator: metav1.LabelSelectorOpIn, Values: numbers}},
	}
}

// name of the policy that closes the target.
func (g *PolicyTarget) name() string {
	return g.bed.driver.Run().Name(fmt.Sprintf("t%d-closing", g.bed.index))
}

// noPods is a peer that matches no pod.
func noPods() []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{LabelPeer: "none"}}}}
}

// Shut makes the policy that closes the target. It returns when the API server has accepted it.
func (g *PolicyTarget) Shut(ctx context.Context) error { return g.closeTo(ctx, noPods()) }

// closeTo makes the policy that closes the target to all but some.
func (g *PolicyTarget) closeTo(ctx context.Context, but []networkingv1.NetworkPolicyPeer) error {
	p := admitting(g.bed.driver.Run(), g.name(), g.selecting(g.server()), but, answerAt, answerAt)
	_, err := g.bed.driver.cluster.API.NetworkPolicies(g.bed.driver.cluster.Namespace).Create(ctx, p, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("make networkpolicy %s: %w", p.Name, withFix(err))
	}
	return nil
}

// Lift deletes that policy. It returns when the API server has accepted that.
func (g *PolicyTarget) Lift(ctx context.Context) error {
	policies := g.bed.driver.cluster.API.NetworkPolicies(g.bed.driver.cluster.Namespace)
	if err := policies.Delete(ctx, g.name(), metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete networkpolicy %s: %w", g.name(), withFix(err))
	}
	return nil
}

// Turns are the openings and closings that the target's watch has seen; the first says how it was found.
func (g *PolicyTarget) Turns() <-chan testbed.Turn { return g.watch.turns }

// Lost is closed when the target can't be watched any longer.
func (g *PolicyTarget) Lost() <-chan struct{} { return g.watch.lost }

// Clock asks the client's clock.
func (g *PolicyTarget) Clock(ctx context.Context) (testbed.Turn, error) {
	if _, err := g.watch.stream.Write([]byte("\n")); err != nil {
		return testbed.Turn{}, fmt.Errorf("ask the clock of %s: %w", g.client().Name(), err)
	}
	select {
	case t := <-g.watch.clocks:
		return t, nil
	case <-g.watch.lost:
		return testbed.Turn{}, fmt.Errorf("ask the clock of %s: its stream has ended", g.client().Name())
	case <-ctx.Done():
		return testbed.Turn{}, context.Cause(ctx)
	}
}

// probe has the client watch a way.
func (g *PolicyTarget) probe(ctx context.Context, v inside.Probing) (*watch, error) {
	c := g.client().alive()
	s, err := open(ctx, g.bed.driver.cluster, c.place, task(c.place, inside.Watch, v))
	if err != nil {
		return nil, err
	}
	w := &watch{stream: s, turns: make(chan testbed.Turn, 1024), clocks: make(chan testbed.Turn, 1), lost: make(chan struct{})}
	go func() {
		defer close(w.lost)
		for {
			var t testbed.Turn
			if line, err := tail.Line(s.stdout, lineMost); err != nil || json.Unmarshal(line, &t) != nil {
				return
			}
			if t.Answered != 0 {
				w.clocks <- t
			} else {
				w.turns <- t
			}
		}
	}()
	return w, nil
}

// Close removes the pods and policies of the target.
func (g *PolicyTarget) Close() error {
	if g.watch != nil {
		g.watch.stream.cut()
	}
	if g.answerer != nil {
		g.answerer.cut()
	}
	names := append([]string{g.name()}, g.others...)
	return errors.Join(g.bed.driver.cluster.deletePolicies(names), g.bed.Close())
}

// Values of LabelPeer: the pods that the policy of Restrict admits, and others.
const (
	peerAdmitted = "admitted"
	peerBarred   = "barred"
)

// errFreshImage is the error of a fresh pod that netdelta would have to be brought to: it would miss its own first moments.
var errFreshImage = errors.New("a fresh pod tries from its first moment on, which takes an image that holds netdelta: give --image REF (netdelta image --push makes one)")

// Restrict makes a policy that closes the target to all pods but those with a label for it. Lift deletes it.
func (g *PolicyTarget) Restrict(ctx context.Context) error {
	return g.closeTo(ctx, []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{LabelRun: string(g.bed.driver.Run()), LabelPeer: peerAdmitted},
	}}})
}

// TryFresh makes a fresh pod on the client's node, admitted or not, which sends packets to the server from its first moment on. It
// returns when it is settled whether they pass, or within has passed, and the pod is gone.
func (g *PolicyTarget) TryFresh(ctx context.Context, admitted bool, every, within time.Duration) (v testbed.FreshResult, err error) {
	l := g.bed.driver.launcher
	if l.options.Image == "" {
		return v, errFreshImage
	}
	try := inside.FreshTry{At: netip.AddrPortFrom(g.server().alive().Address(), answerAt), Every: every, Admitted: admitted, Within: within}
	who := peerBarred
	if admitted {
		who = peerAdmitted
	}
	name := fmt.Sprintf("t%d-%s%d", g.bed.index, who, g.fresh.Add(1))
	manifest := l.Manifest(Wish{Name: name, Role: RolePolicy, Node: g.client().node, Labels: map[string]string{LabelPeer: who}})
	manifest.Spec.Containers[0].Command = task(ContainerRef{Program: programInImage}, inside.Call, try)
	pods := l.cluster.API.Pods(manifest.Namespace)
	if _, err := create(ctx, pods, "the fresh pod", manifest); err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, l.cluster.deletePod(manifest.Namespace, manifest.Name)) }()
	spoken := func(pod *corev1.Pod) bool {
		_, end := ended(pod)
		return end != nil && end.ExitCode == 0 && end.Message != ""
	}
	pod, err := l.awaitThat(ctx, manifest.Namespace, manifest.Name, "ended", l.options.Within+within, spoken)
	if err == nil {
		_, end := ended(pod)
		err = json.Unmarshal([]byte(end.Message), &v)
	}
	if err != nil {
		return v, fmt.Errorf("hear of the fresh pod %s: %w", manifest.Name, err)
	}
	return v, nil
}
