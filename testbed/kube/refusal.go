package kube

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

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
	case strings.Contains(said, "exceeded quota"), strings.Contains(said, "failed quota"):
		return fmt.Errorf("the namespace's quota has no room: %w; measure fewer networks at once, or have the quota raised", err)
	case strings.Contains(said, "being terminated"):
		return fmt.Errorf("%w; give another namespace with --namespace, or see with kubectl describe namespace what keeps that one", err)
	case strings.Contains(said, "cannot "):
		return &RightsError{Said: said}
	}
	return err
}
