package survey

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/testbed/kube"
)

// What a run is made of, in pods and services: a pair of pods is the least, and a build of the networks of a cluster side by side,
// each on one node and across two, has a pair for each of host, its A/A control, pod, clusterip and nodeport, and a service for the last two.
const (
	pairPods      = 2
	buildPods     = 20
	buildServices = 4
)

// tryPods has the cluster say whether it would take the pods of a run. None is made.
func (l *looker) tryPods(ctx context.Context) {
	kinds := []string{PodPlain, PodHost}
	if l.options.Pods.NodeAgent {
		kinds = append(kinds, PodNodeAgent)
	}
	for _, kind := range kinds {
		l.survey.Admission = append(l.survey.Admission, l.tryPod(ctx, kind))
	}
}

func (l *looker) tryPod(ctx context.Context, kind string) Admission {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := Admission{Pod: kind}
	pod := l.launcher.Manifest(wish(kind))
	if kind == PodPlain {
		asks := pod.Spec.Containers[0].Resources.Requests
		l.survey.Asks = Asks{MilliCPU: asks.Cpu().MilliValue(), Memory: asks.Memory().Value()}
	}
	_, err := l.cluster.API.Pods(l.cluster.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil:
		a.Admitted = true
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource"):
		a.Untried = "it takes the right to create pods in " + l.cluster.Namespace
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		a.Refusal = err.Error()
	case strings.Contains(err.Error(), "admission webhook") && !strings.Contains(err.Error(), "dry run"):
		a.Refusal = err.Error()
	default:
		a.Untried = err.Error()
	}
	return a
}

// wish is a pod of a run, of each kind.
func wish(kind string) kube.Wish {
	w := kube.Wish{Name: "doctor", Role: kube.RoleServer, HostNetwork: kind != PodPlain}
	if kind == PodNodeAgent {
		w.Role, w.Security = kube.RoleNodeAgent, kube.NodeAgentSecurity()
	}
	return w
}
