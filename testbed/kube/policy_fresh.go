package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/testbed"
	"netdelta/testbed/kube/inside"
)

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
		end := ended(pod)
		return end != nil && end.ExitCode == 0 && end.Message != ""
	}
	pod, err := l.awaitThat(ctx, manifest.Namespace, manifest.Name, "ended", l.options.Within+within, spoken)
	if err == nil {
		err = json.Unmarshal([]byte(ended(pod).Message), &v)
	}
	if err != nil {
		return v, fmt.Errorf("hear of the fresh pod %s: %w", manifest.Name, err)
	}
	return v, nil
}
