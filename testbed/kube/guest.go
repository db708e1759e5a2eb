package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/testbed/kube/inside"
)

// Values of LabelPeer: whom the policy of a guarded gate lets in, and whom it does not.
const (
	guest    = "guest"
	stranger = "stranger"
)

// errVisitImage is the error of a fresh pod that netdelta would have to be brought to: it would miss its own first moments.
var errVisitImage = errors.New("a fresh pod tries from its first moment on, which takes an image that holds netdelta: give --image REF (netdelta image --push makes one)")

// Guard makes a policy that closes the gate to all but guests: pods with a label of their own. Lift deletes it.
func (g *Gate) Guard(ctx context.Context) error {
	return g.closeTo(ctx, []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{LabelRun: string(g.bed.driver.Run()), LabelPeer: guest},
	}}})
}

// Visit makes a fresh pod on the client's node, a guest or a stranger, which sends packets to the server from its first moment on. It
// returns when it is settled whether they pass, or within has passed, and the pod is gone.
func (g *Gate) Visit(ctx context.Context, isGuest bool, every, within time.Duration) (v inside.Visited, err error) {
	l := g.bed.driver.launcher
	if l.options.Image == "" {
		return v, errVisitImage
	}
	text, err := json.Marshal(inside.Visit{
		At: netip.AddrPortFrom(g.server().alive().Address(), answerAt), Every: every, Admitted: isGuest, Within: within,
	})
	if err != nil {
		return v, err
	}
	who := stranger
	if isGuest {
		who = guest
	}
	name := fmt.Sprintf("t%d-%s%d", g.bed.index, who, g.visits.Add(1))
	manifest := l.Manifest(Wish{Name: name, Role: RolePolicy, Node: g.client().node, Labels: map[string]string{LabelPeer: who}})
	manifest.Spec.Containers[0].Command = []string{programInImage, inside.Verb, inside.Call, string(text)}
	pods := l.cluster.API.CoreV1().Pods(manifest.Namespace)
	if _, err := create(ctx, pods, manifest); err != nil {
		return v, fmt.Errorf("make the fresh pod %s: %w", manifest.Name, mendable(err))
	}
	defer func() { err = errors.Join(err, l.cluster.deletePod(manifest.Namespace, manifest.Name)) }()
	words, err := l.awaitWords(ctx, manifest.Name, l.options.Within+within)
	if err == nil {
		err = json.Unmarshal([]byte(words), &v)
	}
	if err != nil {
		return v, fmt.Errorf("hear of the fresh pod %s: %w", manifest.Name, err)
	}
	return v, nil
}

// awaitWords waits until a pod has ended well, and returns its last words.
func (l *Launcher) awaitWords(ctx context.Context, name string, within time.Duration) (string, error) {
	for began := time.Now(); ; {
		pod, err := l.cluster.API.CoreV1().Pods(l.cluster.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
			return "", mendable(err)
		case err == nil:
			if end := ended(pod); end != nil && end.ExitCode == 0 && end.Message != "" {
				return end.Message, nil
			}
			var hopeless bool
			if hopeless, err = l.obstacle(ctx, pod, time.Since(began)); hopeless {
				return "", err
			}
		}
		if time.Since(began) > within {
			return "", fmt.Errorf("it has not ended within %s: %w", within, err)
		}
		if pause(ctx, apiPause) != nil {
			return "", context.Cause(ctx)
		}
	}
}
