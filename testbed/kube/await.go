package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unscheduledWithin is how long a pod may wait for room on its node: pods of a build before may be about to go.
const unscheduledWithin = 30 * time.Second

const (
	// sandboxFailed is the kubelet's word for a pod whose networks can't be made, which it tries again and again.
	sandboxFailed = "FailedCreatePodSandBox"
	// unattachedWithin is how long a pod may wait for its secondary network.
	unattachedWithin = 20 * time.Second
)

// nodeAskedAfter is how long a pod may take before its node is looked at: one that was lost starts nothing.
const nodeAskedAfter = 5 * time.Second

// await waits until a pod's container runs.
func (l *Launcher) await(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return l.awaitThat(ctx, namespace, name, "up", l.options.Within, running)
}

// awaitThat waits until a pod is as it should be, for which what has a word. It asks again and again rather than watch: an API server
// that is restarted meanwhile does no harm.
func (l *Launcher) awaitThat(ctx context.Context, namespace, name, what string, within time.Duration, is func(*corev1.Pod) bool) (*corev1.Pod, error) {
	var last error
	for waited := range Polling(ctx, apiPause) {
		pod, err := l.cluster.API.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil, errors.New("it was deleted by somebody else")
		case apierrors.IsForbidden(err):
			return nil, withFix(err)
		case err != nil:
			last = fmt.Errorf("the API server does not answer: %w", err)
		case is(pod):
			return pod, nil
		default:
			var hopeless bool
			if hopeless, last = l.obstacle(ctx, pod, waited); hopeless {
				return nil, last
			}
		}
		if waited > within {
			return nil, fmt.Errorf("not %s within %s: %w", what, within, last)
		}
	}
	return nil, context.Cause(ctx)
}

// running says whether programs can be started in a pod.
func running(pod *corev1.Pod) bool {
	s := pod.Status
	return s.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && len(s.PodIPs) > 0 &&
		len(s.ContainerStatuses) > 0 && s.ContainerStatuses[0].State.Running != nil
}

// obstacle is what a pod that is not up waits for, and whether it does so in vain.
func (l *Launcher) obstacle(ctx context.Context, pod *corev1.Pod, waited time.Duration) (hopeless bool, why error) {
	if what := podFailure(pod); what != "" {
		return true, errors.New(what)
	}
	if pod.Spec.NodeName != "" && waited > nodeAskedAfter {
		if what := l.cluster.nodeOf(ctx, pod); what != "" {
			return true, errors.New(what)
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		w := c.State.Waiting
		if w == nil {
			continue
		}
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable":
			err := fmt.Errorf("node %s can't have the image %s: %s: %s; push it where the nodes can pull it, or give another with --image or --base-image", pod.Spec.NodeName, c.Image, w.Reason, w.Message)
			return w.Reason != "ErrImagePull", err // which is tried again at once, and has a longer name then
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return true, fmt.Errorf("node %s can't start it: %s: %s", pod.Spec.NodeName, w.Reason, w.Message)
		}
	}
	if hopeless, why := l.cluster.pending(ctx, pod, waited); why != nil {
		return hopeless, why
	}
	for _, c := range pod.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status == corev1.ConditionTrue {
			continue
		}
		err := fmt.Errorf("it is not scheduled: %s; %s", sentence(c.Reason, c.Message), room(pod, c.Message))
		return waited > unscheduledWithin, err
	}
	words, times := l.cluster.lastWarning(ctx, pod.Namespace, "Pod", pod.Name)
	// The cluster's own network may be about to come. One that was asked for by name is there, or can't be attached; but a busy API server
	// may have kept Multus waiting.
	stuck := pod.Annotations[annotationNetworks] != "" && strings.Contains(words, sandboxFailed) && !strings.Contains(words, "deadline exceeded") &&
		times > 1 && waited > unattachedWithin
	return stuck, errors.New(sentence("it is "+strings.ToLower(string(pod.Status.Phase)), words))
}

// room is what helps a pod that the scheduler finds no room for.
func room(pod *corev1.Pod, said string) string {
	for _, c := range pod.Spec.Containers {
		for name := range c.Resources.Limits {
			if strings.Contains(string(name), "/") && strings.Contains(said, "Insufficient "+string(name)) {
				return fmt.Sprintf("each pod of its network takes one %s: name nodes that have more of them with --nodes, or measure fewer workloads and placements at once", name)
			}
		}
	}
	return "free processors or memory there, name other nodes with --nodes, or ask for less with --qos and --memory"
}
