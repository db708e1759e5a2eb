package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kind is a kind of objects that netdelta makes in a namespace.
type kind struct {
	name   string
	list   func(ctx context.Context, o metav1.ListOptions) ([]metav1.ObjectMeta, error)
	delete func(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// kinds are all of them, in the order in which they are removed: what makes others first, and the lease last, so that what is left
// after an interruption is found again.
func (c *Cluster) kinds() []kind {
	sets := c.API.AppsV1().StatefulSets(c.Namespace)
	jobs, policies := c.API.BatchV1().Jobs(c.Namespace), c.API.NetworkingV1().NetworkPolicies(c.Namespace)
	services, pods := c.API.CoreV1().Services(c.Namespace), c.API.CoreV1().Pods(c.Namespace)
	leases := c.API.CoordinationV1().Leases(c.Namespace)
	return []kind{
		{"statefulset", func(ctx context.Context, o metav1.ListOptions) ([]metav1.ObjectMeta, error) {
			l, err := sets.List(ctx, o)
			if err != nil {
				return nil, err
			}
			return metas(len(l.Items), func(i int) metav1.ObjectMeta { return l.Items[i].ObjectMeta }), nil
		}, sets.Delete},
		{"job", func(ctx context.Context, o metav1.ListOptions) ([]metav1.ObjectMeta, error) {
			l, err := jobs.List(ctx, o)
			if err != nil {
				return nil, err
			}
			return metas(len(l.Items), func(i int) metav1.ObjectMeta { return l.Items[i].ObjectMeta }), nil
		}, jobs.Delete},
		{"networkpolicy", func(ctx context.Context, o metav1.ListOptions) ([]metav1.ObjectMeta, error) {
			l, err := policies.List(ctx, o)
			if err != nil {
				return nil, err
			}
			return metas(len(l.Items), func(i int) metav1.ObjectMeta { return l.Items[i].ObjectMeta }), nil
		}, policies.Delete},
		{"service", func(ctx context.Context, o metav1.ListOptions) ([]metav1.ObjectMeta, error) {
			l, err := services.List(ctx, o)
			if err != nil {
				return nil, err
			}
			return metas(len(l.Items), func(i int) metav1.ObjectMeta { return l.Items[i].ObjectMeta }), nil
		}, services.Delete},
		{"pod", func(ctx context.Context, o metav1.ListOptions) ([]metav1.ObjectMeta, error) {
			l, err := pods.List(ctx, o)
			if err != nil {
				return nil, err
			}
			return metas(len(l.Items), func(i int) metav1.ObjectMeta { return l.Items[i].ObjectMeta }), nil
		}, pods.Delete},
		c.claims(),
		{"lease", func(ctx context.Context, o metav1.ListOptions) ([]metav1.ObjectMeta, error) {
			l, err := leases.List(ctx, o)
			if err != nil {
				return nil, err
			}
			return metas(len(l.Items), func(i int) metav1.ObjectMeta { return l.Items[i].ObjectMeta }), nil
		}, leases.Delete},
	}
}

// metas gathers the descriptions of objects.
func metas(n int, of func(i int) metav1.ObjectMeta) []metav1.ObjectMeta {
	all := make([]metav1.ObjectMeta, n)
	for i := range all {
		all[i] = of(i)
	}
	return all
}

// find lists the objects of a kind. Where this user may not look, there are none: netdelta could not have made them in their name.
func (k kind) find(ctx context.Context, selector string) ([]metav1.ObjectMeta, error) {
	var all []metav1.ObjectMeta
	err := persist(ctx, func() (err error) {
		all, err = k.list(ctx, metav1.ListOptions{LabelSelector: selector})
		return err
	})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return all, err
}

// Sweep removes what runs have left in the cluster's namespace whose program was killed, and says what it removed: "pod NAME". Runs
// that are under way are left alone, which takes some seconds to find out.
func Sweep(ctx context.Context, c *Cluster) (removed []string, err error) {
	var runs []RunID
	for _, k := range c.kinds() {
		all, err := k.find(ctx, SelectAll)
		if err != nil {
			return nil, fmt.Errorf("look for what runs have left in namespace %s: %w", c.Namespace, err)
		}
		for _, o := range all {
			if run, err := ParseRunID(o.Labels[LabelRun]); err == nil && !slices.Contains(runs, run) {
				runs = append(runs, run)
			}
		}
	}
	alive, err := c.underWay(ctx, runs)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, run := range runs {
		if alive[run] {
			continue
		}
		gone, err := c.removeObjects(ctx, run)
		removed, errs = append(removed, gone...), append(errs, err)
	}
	return removed, errors.Join(errs...)
}
