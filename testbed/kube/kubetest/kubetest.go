// Package kubetest lets tests speak to client-go's fake of an API server, or to all of a real one.
package kubetest

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"netdelta/testbed/kube/client"
)

// API is netdelta's view of a clientset, which may be a fake.
func API(c kubernetes.Interface) *client.API {
	core := c.CoreV1()
	return &client.API{
		Core: client.Core{
			Pods:       func(ns string) client.Pods { return core.Pods(ns) },
			Nodes:      func() client.Resource[corev1.Node, corev1.NodeList] { return core.Nodes() },
			Namespaces: func() client.Resource[corev1.Namespace, corev1.NamespaceList] { return core.Namespaces() },
			Services:   func(ns string) client.Resource[corev1.Service, corev1.ServiceList] { return core.Services(ns) },
			Events:     func(ns string) client.Resource[corev1.Event, corev1.EventList] { return core.Events(ns) },
			ConfigMaps: func(ns string) client.Resource[corev1.ConfigMap, corev1.ConfigMapList] { return core.ConfigMaps(ns) },
			Secrets:    func(ns string) client.Resource[corev1.Secret, corev1.SecretList] { return core.Secrets(ns) },
			ServiceAccounts: func(ns string) client.Resource[corev1.ServiceAccount, corev1.ServiceAccountList] {
				return core.ServiceAccounts(ns)
			},
			LimitRanges: func(ns string) client.Resource[corev1.LimitRange, corev1.LimitRangeList] { return core.LimitRanges(ns) },
			ResourceQuotas: func(ns string) client.Resource[corev1.ResourceQuota, corev1.ResourceQuotaList] {
				return core.ResourceQuotas(ns)
			},
			PersistentVolumes: func() client.Resource[corev1.PersistentVolume, corev1.PersistentVolumeList] {
				return core.PersistentVolumes()
			},
			PersistentVolumeClaims: func(ns string) client.Resource[corev1.PersistentVolumeClaim, corev1.PersistentVolumeClaimList] {
				return core.PersistentVolumeClaims(ns)
			},
			RESTClient: func() rest.Interface { return core.RESTClient() },
		},
		Apps: client.Apps{
			StatefulSets: func(ns string) client.Resource[appsv1.StatefulSet, appsv1.StatefulSetList] {
				return c.AppsV1().StatefulSets(ns)
			},
			DaemonSets: func(ns string) client.Resource[appsv1.DaemonSet, appsv1.DaemonSetList] {
				return c.AppsV1().DaemonSets(ns)
			},
		},
		Batch: client.Batch{Jobs: func(ns string) client.Resource[batchv1.Job, batchv1.JobList] { return c.BatchV1().Jobs(ns) }},
		Networking: client.Networking{NetworkPolicies: func(ns string) client.Resource[networkingv1.NetworkPolicy, networkingv1.NetworkPolicyList] {
			return c.NetworkingV1().NetworkPolicies(ns)
		}},
		Storage: client.Storage{StorageClasses: func() client.Resource[storagev1.StorageClass, storagev1.StorageClassList] {
			return c.StorageV1().StorageClasses()
		}},
		Endpoints: client.Discovery{EndpointSlices: func(ns string) client.Resource[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList] {
			return c.DiscoveryV1().EndpointSlices(ns)
		}},
		Coordination: client.Coordination{Leases: func(ns string) client.Resource[coordinationv1.Lease, coordinationv1.LeaseList] {
			return c.CoordinationV1().Leases(ns)
		}},
		Authorization: client.Authorization{SelfSubjectAccessReviews: func() client.Creator[authorizationv1.SelfSubjectAccessReview] {
			return c.AuthorizationV1().SelfSubjectAccessReviews()
		}},
		Authentication: client.Authentication{SelfSubjectReviews: func() client.Creator[authenticationv1.SelfSubjectReview] {
			return c.AuthenticationV1().SelfSubjectReviews()
		}},
		REST: c.Discovery().RESTClient(),
	}
}

// All speaks to a cluster of all kinds of objects, also of those that netdelta does not use.
func All(t testing.TB, c *rest.Config) kubernetes.Interface {
	t.Helper()
	all, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
