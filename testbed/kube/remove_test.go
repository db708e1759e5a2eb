package kube

import (
	"errors"
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

// TestHeld: what stays for finalizers alone is given up soon, and it is said which they are and what to do.
func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := RunID("0123abcd")
		pod := podWith(corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: container(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})})
		pod.Labels, pod.Finalizers = run.Labels(RoleServer), []string{"example.org/keep"}
		pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		c := &Cluster{API: kubetest.API(t, pod), Namespace: "measured"}
		for what, remove := range map[string]func() error{
			"pod": func() error { return c.deletePod("measured", "p") },
			"run": func() error {
				removed, err := c.removeObjects(t.Context(), run)
				if len(removed) > 0 {
					t.Errorf("%v are said to be removed", removed)
				}
				return err
			},
		} {
			began := time.Now()
			err := remove()
			if err == nil || !strings.Contains(err.Error(), "example.org/keep") || !strings.Contains(err.Error(), `kubectl -n measured patch pod p --type=merge`) {
				t.Errorf("%s: %v", what, err)
			}
			if took := time.Since(began); took > heldAfter+time.Second || errors.Is(err, errLingers) != (what == "pod") {
				t.Errorf("%s: after %v: %v", what, took, err)
			}
		}
		running := pod.DeepCopy()
		running.Status.ContainerStatuses = container(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
		if words := heldPod(running); words != "" {
			t.Errorf("one that runs is held: %s", words)
		}
	})
}

// TestNamespaceEnds: a namespace that is being removed takes no pods, which is no matter of rights.
func TestNamespaceEnds(t *testing.T) {
	err := withFix(apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p",
		errors.New("unable to create new content in namespace measured because it is being terminated")))
	var rights *RightsError
	if errors.As(err, &rights) || !strings.Contains(err.Error(), "give another namespace with --namespace") {
		t.Errorf("got %v", err)
	}
}
