package kube

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"netdelta/testbed/kube/kubetest"
)

// podWith is a pod on node w1 with a status.
func podWith(s corev1.PodStatus) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "measured"}, Spec: corev1.PodSpec{NodeName: "w1"}, Status: s}
}

// container is the status of a pod's only container.
func container(s corev1.ContainerState) []corev1.ContainerStatus {
	return []corev1.ContainerStatus{{Name: containerName, Image: "busybox:1", State: s}}
}

func TestMisfortune(t *testing.T) {
	up := corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: container(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})}
	deleted := podWith(up)
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	condemned := up
	condemned.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager", Message: "Taint manager: deleting due to NoExecute taint"}}
	evicted := corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: container(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}})}
	evicted.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting"}}
	for _, c := range []struct {
		pod  *corev1.Pod
		want string
	}{
		{podWith(up), ""},
		{podWith(corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}), "its pod was stopped: Evicted: The node was low on resource: memory."},
		{podWith(corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: container(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}})}), "its container netdelta ended: OOMKilled"},
		{podWith(corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: container(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 0}})}), "its container netdelta ended: exit status 0"},
		{podWith(corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "mysql", LastTerminationState: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled"},
		}}}}), "its container mysql ended: OOMKilled"},
		{podWith(condemned), "its pod was taken away: DeletionByTaintManager: Taint manager: deleting due to NoExecute taint"},
		{podWith(evicted), "its pod was taken away: EvictionByEvictionAPI: Eviction API: evicting"},
		{deleted, "its pod is being deleted"},
		{podWith(corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "no room\n::error::not a line of its own\n"}), "its pod was stopped: Evicted: no room ::error::not a line of its own"},
	} {
		if got := podFailure(c.pod); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestFailureReason: what became of a pod is told by its own status, by its node's, or by its absence.
func TestFailureReason(t *testing.T) {
	up := podWith(corev1.PodStatus{Phase: corev1.PodRunning})
	lost := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status.",
	}}}}
	at := ContainerRef{Namespace: "measured", Pod: "p"}
	gone := &Cluster{API: kubetest.API(t, lost), Namespace: "measured"}
	if got := gone.failureReason(t.Context(), at, 0); got != "its pod was deleted" {
		t.Errorf("got %q", got)
	}
	away := &Cluster{API: kubetest.API(t, lost, up), Namespace: "measured"}
	if got := away.failureReason(t.Context(), at, 0); !strings.HasPrefix(got, "its node w1 is not ready: NodeStatusUnknown") {
		t.Errorf("got %q", got)
	}
	homeless := &Cluster{API: kubetest.API(t, up), Namespace: "measured"}
	if got := homeless.failureReason(t.Context(), at, 0); got != "its node w1 is no longer there" {
		t.Errorf("got %q", got)
	}
}

// TestFailureReasonSeenOnce: that a pod was seen to run is not taken back when it can be seen no more.
func TestFailureReasonSeenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, looks := kubetest.NewServer(podWith(corev1.PodStatus{Phase: corev1.PodRunning}), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}}), 0
		c := &Cluster{API: api.API(t), Namespace: "measured"}
		api.Refuse = func(_, resource, _ string) error {
			if resource != "pods" {
				return nil
			}
			if looks++; looks <= 2 {
				return nil
			}
			return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "would exceed context deadline"}}
		}
		if got := c.failureReason(t.Context(), ContainerRef{Namespace: "measured", Pod: "p"}, 0); got != stillRuns || looks < 3 {
			t.Errorf("after %d looks: %q", looks, got)
		}
		looks = 3
		if got := c.failureReason(t.Context(), ContainerRef{Namespace: "measured", Pod: "p"}, 0); got != reasonUnknown+": would exceed context deadline" {
			t.Errorf("never seen: %q", got)
		}
	})
}

func TestObstacle(t *testing.T) {
	l := launcherWith(t, Options{})
	node := func(name string, ready corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: ready, Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status.",
		}}}}
	}
	l.cluster.API = kubetest.API(t, node("w1", corev1.ConditionTrue), node("w2", corev1.ConditionUnknown))
	waiting := func(reason, message string) *corev1.Pod {
		return podWith(corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})})
	}
	unscheduled := podWith(corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient cpu.",
	}}})
	lost := waiting("ContainerCreating", "")
	lost.Spec.NodeName = "w2"
	for _, c := range []struct {
		pod      *corev1.Pod
		waited   time.Duration
		says     string
		hopeless bool
	}{
		{unscheduled, time.Second, "Insufficient cpu", false},
		{unscheduled, time.Minute, "--nodes", true},
		{waiting("ContainerCreating", ""), time.Minute, "pending", false},
		{lost, time.Second, "pending", false},
		{lost, time.Minute, "w2 is not ready: NodeStatusUnknown", true},
		{waiting("ErrImagePull", "not found"), time.Second, "not found", false},
		{waiting("ImagePullBackOff", "Back-off pulling image: not found"), time.Second, "--base-image", true},
		{waiting("InvalidImageName", "couldn't parse image name"), time.Second, "busybox:1", true},
		{waiting("CreateContainerConfigError", "container has runAsNonRoot"), time.Second, "can't start it", true},
		{podWith(corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu"}), time.Second, "OutOfcpu", true},
	} {
		hopeless, err := l.obstacle(t.Context(), c.pod, c.waited)
		if err == nil || !strings.Contains(err.Error(), c.says) || hopeless != c.hopeless {
			t.Errorf("%s: got %v, hopeless %v", c.says, err, hopeless)
		}
	}
}

func TestMendable(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	var rights *RightsError
	if err := withFix(apierrors.NewForbidden(pods, "p", errors.New(`User "u" cannot create resource "pods" in API group "" in the namespace "measured"`))); !errors.As(err, &rights) || !strings.Contains(err.Error(), "--rbac") || !strings.Contains(err.Error(), "cannot create") {
		t.Errorf("missing rights: %v", err)
	}
	var guarded *GuardedError
	if err := withFix(apierrors.NewForbidden(pods, "p", errors.New(`violates PodSecurity "restricted:latest": host namespaces (hostNetwork=true)`))); !errors.As(err, &guarded) || !strings.Contains(err.Error(), "hostNetwork=true") {
		t.Errorf("pod security: %v", err)
	}
	for wanted, fix := range map[string]string{
		"limits.memory for: netdelta": "--memory 64Mi", "limits.cpu for: netdelta; limits.memory for: netdelta": "--qos guaranteed", "requests.cpu for: netdelta": "--qos burstable",
	} {
		if err := withFix(apierrors.NewForbidden(pods, "p", errors.New("failed quota: small: must specify "+wanted))); !strings.Contains(err.Error(), fix) || strings.Contains(err.Error(), "fewer networks") {
			t.Errorf("%s: got %v", wanted, err)
		}
	}
	if err := withFix(apierrors.NewForbidden(pods, "p", errors.New("exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2"))); err == nil || !strings.Contains(err.Error(), "have the quota raised") {
		t.Errorf("quota: %v", err)
	}
	other := errors.New("other")
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "measured")
	if err := withFix(missing); !errors.Is(err, missing) || !strings.HasSuffix(err.Error(), "kubectl create namespace measured") {
		t.Errorf("a namespace that is not there: %v", err)
	}
	if err := withFix(other); !errors.Is(err, other) {
		t.Errorf("another error became %v", err)
	}
}

// TestPersist: what is not answered is asked again, an answer is not.
func TestPersist(t *testing.T) {
	n := 0
	err := persist(t.Context(), func() error {
		if n++; n < 3 {
			return apierrors.NewServiceUnavailable("restarting")
		}
		return nil
	})
	if err != nil || n != 3 {
		t.Errorf("after %d tries: %v", n, err)
	}
	n = 0
	no := errors.New("no")
	if err := persist(t.Context(), func() error { n++; return no }); !errors.Is(err, no) || n != 1 {
		t.Errorf("after %d tries: %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := persist(ctx, func() error { return apierrors.NewServiceUnavailable("restarting") }); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
