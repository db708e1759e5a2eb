package survey

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readNamespace reads what the namespace of the pods demands and allows.
func (l *looker) readNamespace(ctx context.Context) {
	about := &l.survey.Namespace
	l.ask(ctx, "the namespace's Pod Security level", "get namespaces "+about.Name+" in "+about.Name, func(ctx context.Context) error {
		n, err := l.cluster.API.Namespaces.Get(ctx, about.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			about.Missing = true
		}
		if err != nil {
			return err
		}
		about.Level = n.Labels["pod-security.kubernetes.io/enforce"]
		return nil
	})
	if about.Missing {
		return
	}
	l.ask(ctx, "quotas of the namespace", "list resourcequotas in "+about.Name, func(ctx context.Context) error {
		list, err := l.cluster.API.ResourceQuotas(about.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, q := range list.Items {
			about.Quota = append(about.Quota, left(q)...)
		}
		return nil
	})
	l.ask(ctx, "limits of the namespace", "list limitranges in "+about.Name, func(ctx context.Context) error {
		list, err := l.cluster.API.LimitRanges(about.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, r := range list.Items {
			about.Limits = append(about.Limits, bounds(r)...)
		}
		return nil
	})
}

// amount is a quantity as a number: processors in thousandths, all else as it is.
func amount(name string, q resource.Quantity) int64 {
	switch name {
	case "cpu", "requests.cpu", "limits.cpu":
		return q.MilliValue()
	}
	return q.Value()
}

// What volumes take, of all storage classes together and, behind the name of one, of that.
const (
	storageQuota = "requests.storage"
	claimQuota   = "persistentvolumeclaims"
	classQuota   = ".storageclass.storage.k8s.io/"
)

// quotaResources are those that a run uses, in the order in which they are told.
func quotaResources() []string {
	return []string{
		"pods", "count/pods", "cpu", "requests.cpu", "limits.cpu", "memory", "requests.memory", "limits.memory",
		"services", "count/services", "services.nodeports", "count/jobs.batch",
		storageQuota, claimQuota, "count/" + claimQuota,
	}
}

// left takes from a quota what matters for a run. One with a scope is about some pods only, which may be a run's.
func left(q corev1.ResourceQuota) []Quota {
	var all []Quota
	names := quotaResources()
	for _, name := range slices.Sorted(maps.Keys(q.Status.Hard)) {
		if strings.Contains(string(name), classQuota) {
			names = append(names, string(name))
		}
	}
	for _, name := range names {
		hard, bounded := q.Status.Hard[corev1.ResourceName(name)]
		if !bounded {
			continue
		}
		used := q.Status.Used[corev1.ResourceName(name)]
		all = append(all, Quota{Name: q.Name, Resource: name, Hard: amount(name, hard), Used: amount(name, used)})
	}
	return all
}

// bounds takes from a LimitRange what matters for a run.
func bounds(r corev1.LimitRange) []Limit {
	var all []Limit
	for _, item := range r.Spec.Limits {
		if item.Type != corev1.LimitTypeContainer && item.Type != corev1.LimitTypePod {
			continue
		}
		for _, bound := range []struct {
			name   string
			values corev1.ResourceList
		}{
			{"min", item.Min}, {"max", item.Max}, {"default", item.Default}, {"defaultRequest", item.DefaultRequest},
			{"maxLimitRequestRatio", item.MaxLimitRequestRatio},
		} {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				q, ok := bound.values[name]
				if !ok {
					continue
				}
				value := amount(string(name), q)
				if bound.name == "maxLimitRequestRatio" {
					value = q.MilliValue()
				}
				all = append(all, Limit{Name: r.Name, Kind: string(item.Type), Bound: bound.name, Resource: string(name), Value: value})
			}
		}
	}
	return all
}
