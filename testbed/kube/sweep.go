package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"netdelta/testbed/kube/client"
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
	return []kind{
		kindOf("statefulset", c.API.StatefulSets(c.Namespace)),
		kindOf("job", c.API.Jobs(c.Namespace)),
		kindOf("networkpolicy", c.API.NetworkPolicies(c.Namespace)),
		kindOf("service", c.API.Services(c.Namespace)),
		kindOf("pod", c.API.Pods(c.Namespace)),
		kindOf("persistentvolumeclaim", c.API.PersistentVolumeClaims(c.Namespace)),
		kindOf("lease", c.API.Leases(c.Namespace)),
	}
}

// kindOf lists and deletes the objects of a resource. The cluster's own finalizer of volume claims is left out: it goes with the pod.
func kindOf[T any, L runtime.Object](name string, r client.Resource[T, L]) kind {
	return kind{name, func(ctx context.Context, o metav1.ListOptions) (all []metav1.ObjectMeta, err error) {
		list, err := r.List(ctx, o)
		if err != nil {
			return nil, err
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			object, err := meta.Accessor(item)
			if err == nil {
				all = append(all, metav1.ObjectMeta{
					Name: object.GetName(), Labels: object.GetLabels(), DeletionTimestamp: object.GetDeletionTimestamp(),
					Finalizers: slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(f string) bool { return f == claimProtection }),
				})
			}
			return err
		})
		return all, err
	}, r.Delete}
}

// find lists the objects of a kind. Where this user may not look, there are none: netdelta could not have made them in their name.
func (k kind) find(ctx context.Context, selector string) ([]metav1.ObjectMeta, error) {
	all, err := fetch(ctx, func() ([]metav1.ObjectMeta, error) {
		return k.list(ctx, metav1.ListOptions{LabelSelector: selector})
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
