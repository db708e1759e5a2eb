package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/testbed/kube/inside"
)

const (
	// reasonWithin is how long it is waited for the cluster to notice what happened to a pod, and reasonPause how often it is asked.
	reasonWithin = 4 * time.Second
	reasonPause  = 300 * time.Millisecond
)

// What is said of a pod to which nothing is known to have happened.
const (
	stillRuns     = "its pod still runs"
	reasonUnknown = "what became of its pod is not known"
)

// unharmed says whether a reason is about a pod that may be there still.
func unharmed(reason string) bool {
	return reason == stillRuns || strings.HasPrefix(reason, reasonUnknown)
}

// failureReason finds out what became of a pod in which a program ended unexpectedly. It takes a while when nothing did.
func (c *Cluster) failureReason(ctx context.Context, at ContainerRef, status int) string {
	ctx, cancel := context.WithTimeout(ctx, reasonWithin)
	defer cancel()
	last := ""
	for range Polling(ctx, reasonPause) {
		pod, err := c.API.Pods(at.Namespace).Get(ctx, at.Pod, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return "its pod was deleted"
		case err != nil && ctx.Err() == nil && last != stillRuns: // what was seen is more than that it is seen no more
			last = fmt.Sprintf(reasonUnknown+": %v", err)
		case err == nil:
			if at.UID != "" && pod.UID != at.UID {
				return "its pod was deleted, and its StatefulSet has made another of its name"
			}
			if what := podFailure(pod); what != "" {
				return what
			}
			if what := c.nodeOf(ctx, pod); what != "" {
				return what
			}
			last = stillRuns
			if status == killedStatus && c.starved(ctx, at) {
				return "it was killed since its pod had used up its memory; give the pods more with --memory"
			}
		}
	}
	return cmp.Or(last, reasonUnknown+": the API server did not answer")
}

// podFailure says how a pod failed by its own status, "" where all is well.
func podFailure(pod *corev1.Pod) string {
	container, end := ended(pod)
	switch s := pod.Status; {
	case s.Reason != "":
		return sentence("its pod was stopped: "+s.Reason, s.Message)
	case disrupted(pod) != nil:
		d := disrupted(pod)
		return sentence("its pod was taken away: "+d.Reason, d.Message)
	case end != nil:
		return sentence(fmt.Sprintf("its container %s ended: %s", container, cmp.Or(end.Reason, "exit status "+strconv.Itoa(int(end.ExitCode)))), end.Message)
	case pod.DeletionTimestamp != nil:
		return "its pod is being deleted"
	case s.Phase == corev1.PodFailed || s.Phase == corev1.PodSucceeded:
		return "its pod ended"
	}
	return ""
}

// ended is which of a pod's containers ended first in their order, and how; nil while all run for the first time.
func ended(pod *corev1.Pod) (container string, how *corev1.ContainerStateTerminated) {
	for _, c := range pod.Status.ContainerStatuses {
		if t := cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated); t != nil {
			return c.Name, t
		}
	}
	return "", nil
}

// disrupted is why a pod is taken away, nil where it is not.
func disrupted(pod *corev1.Pod) *corev1.PodCondition {
	for i, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// nodeOf is what is wrong with a pod's node, "" where nothing is or this user may not look.
func (c *Cluster) nodeOf(ctx context.Context, pod *corev1.Pod) string {
	node, err := c.API.Nodes.Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("its node %s is no longer there", pod.Spec.NodeName)
	case err != nil:
		return ""
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return sentence(fmt.Sprintf("its node %s is not ready: %s", node.Name, condition.Reason), condition.Message)
		}
	}
	return ""
}

// starved says whether the kernel has killed processes of a pod for want of memory.
func (c *Cluster) starved(ctx context.Context, at ContainerRef) bool {
	out, err := runOnce(ctx, c, at, task(at, inside.Killed))
	n, numberErr := strconv.Atoi(strings.TrimSpace(string(out)))
	return err == nil && numberErr == nil && n > 0
}

// sentence adds the cluster's own words, where it has any, in one line.
func sentence(what, message string) string {
	if message = strings.Join(strings.Fields(message), " "); message == "" {
		return what
	}
	return what + ": " + message
}

// RightsError says that the cluster does not let this user do what a run needs.
type RightsError struct {
	// Said are the cluster's own words: who may not do what to which objects in which namespace.
	Said string
}

// Error implements error.
func (e *RightsError) Error() string {
	return fmt.Sprintf("rights are missing: %s; `netdelta doctor --testbed kubernetes --rbac` prints what grants them", e.Said)
}

// GuardedError says that the namespace's Pod Security does not admit a pod.
type GuardedError struct {
	// Said are the cluster's own words: which level, and what of the pod violates it.
	Said string
}

// Error implements error.
func (e *GuardedError) Error() string { return "the namespace does not admit the pod: " + e.Said }

// mustSpecify is in the words of a quota that counts what a pod does not say it takes.
const mustSpecify = "must specify "

// FlagsForQuota is what has pods say how much they take, where a quota wants that: the flags, by the quota's words. It is "" for other words.
func FlagsForQuota(said string) string {
	_, wanted, is := strings.Cut(said, mustSpecify)
	switch {
	case !is:
		return ""
	case strings.Contains(wanted, "limits.cpu"):
		return "give --qos guaranteed, with --cpu 500m --memory 256Mi or as much as the quota has room for"
	case strings.Contains(wanted, "limits.memory"):
		return "give --memory 64Mi, or as much as the quota has room for"
	}
	return "give --qos burstable, which asks for a little of each"
}

// withFix turns a refusal of the API server into an error that says what to do.
func withFix(err error) error {
	var status apierrors.APIStatus
	if apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces" {
		return fmt.Errorf("%w; make it: kubectl create namespace %s", err, status.Status().Details.Name)
	}
	if err == nil || !apierrors.IsForbidden(err) {
		return err
	}
	said := err.Error()
	switch {
	case strings.Contains(said, "violates PodSecurity"):
		return &GuardedError{Said: said}
	case strings.Contains(said, mustSpecify):
		return fmt.Errorf("the namespace's quota wants it said how much each pod takes: %w; %s", err, FlagsForQuota(said))
	case strings.Contains(said, "exceeded quota"):
		return fmt.Errorf("the namespace's quota has no room: %w; measure fewer networks at once, or have the quota raised", err)
	case strings.Contains(said, "being terminated"):
		return fmt.Errorf("%w; give another namespace with --namespace, or see with kubectl describe namespace what keeps that one", err)
	case strings.Contains(said, "cannot "):
		return &RightsError{Said: said}
	}
	return err
}
