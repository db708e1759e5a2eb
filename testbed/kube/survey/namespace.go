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

	"netdelta/testbed/kube"
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

// readPolicies finds the policies that keep the pods of a run from each other.
func (l *looker) readPolicies(ctx context.Context) {
	about := &l.survey.Namespace
	if about.Missing {
		return
	}
	l.ask(ctx, "NetworkPolicies of the namespace", "list networkpolicies.networking.k8s.io in "+about.Name, func(ctx context.Context) (err error) {
		about.Denials, err = l.launcher.Denials(ctx)
		return err
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
