// Package kubetest lets tests speak to client-go's fake of an API server, or to all of a real one.
package kubetest

import (
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"netdelta/internal/require"
	"netdelta/testbed/kube/client"
)

// API is netdelta's view of a clientset, which may be a fake.
func API(c kubernetes.Interface) *client.API {
	core, apps := c.CoreV1(), c.AppsV1()
	return &client.API{
		Pods:                     in(core.Pods),
		Nodes:                    core.Nodes(),
		Namespaces:               core.Namespaces(),
		Services:                 in(core.Services),
		Events:                   in(core.Events),
		ConfigMaps:               in(core.ConfigMaps),
		Secrets:                  in(core.Secrets),
		ServiceAccounts:          in(core.ServiceAccounts),
		LimitRanges:              in(core.LimitRanges),
		ResourceQuotas:           in(core.ResourceQuotas),
		PersistentVolumes:        core.PersistentVolumes(),
		PersistentVolumeClaims:   in(core.PersistentVolumeClaims),
		StatefulSets:             in(apps.StatefulSets),
		DaemonSets:               in(apps.DaemonSets),
		Jobs:                     in(c.BatchV1().Jobs),
		NetworkPolicies:          in(c.NetworkingV1().NetworkPolicies),
		StorageClasses:           c.StorageV1().StorageClasses(),
		EndpointSlices:           in(c.DiscoveryV1().EndpointSlices),
		Leases:                   in(c.CoordinationV1().Leases),
		SelfSubjectAccessReviews: c.AuthorizationV1().SelfSubjectAccessReviews(),
		SelfSubjectReviews:       c.AuthenticationV1().SelfSubjectReviews(),
		REST:                     c.Discovery().RESTClient(),
	}
}

// in gives the objects of a kind in a namespace as a client.Resource.
func in[R client.Resource[T, L], T, L any](of func(namespace string) R) func(namespace string) client.Resource[T, L] {
	return func(namespace string) client.Resource[T, L] { return of(namespace) }
}

// All speaks to a cluster of all kinds of objects, also of those that netdelta does not use.
func All(t testing.TB, c *rest.Config) kubernetes.Interface {
	t.Helper()
	all, err := kubernetes.NewForConfig(c)
	require.NoError(t, err)
	return all
}
