// Package client has the clients of client-go for the kinds of objects that netdelta uses. The clientset of client-go has them for all
// kinds in all versions, and links 20 MB for it.
package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// API speaks to an API server. Its fields are named as the methods of client-go's clientsets; those that are functions take a namespace.
type API struct {
	Pods                     func(namespace string) Resource[*corev1.Pod, *corev1.PodList]
	Nodes                    Resource[*corev1.Node, *corev1.NodeList]
	Namespaces               Resource[*corev1.Namespace, *corev1.NamespaceList]
	Services                 func(namespace string) Resource[*corev1.Service, *corev1.ServiceList]
	Events                   func(namespace string) Resource[*corev1.Event, *corev1.EventList]
	ConfigMaps               func(namespace string) Resource[*corev1.ConfigMap, *corev1.ConfigMapList]
	Secrets                  func(namespace string) Resource[*corev1.Secret, *corev1.SecretList]
	ServiceAccounts          func(namespace string) Resource[*corev1.ServiceAccount, *corev1.ServiceAccountList]
	LimitRanges              func(namespace string) Resource[*corev1.LimitRange, *corev1.LimitRangeList]
	ResourceQuotas           func(namespace string) Resource[*corev1.ResourceQuota, *corev1.ResourceQuotaList]
	PersistentVolumes        Resource[*corev1.PersistentVolume, *corev1.PersistentVolumeList]
	PersistentVolumeClaims   func(namespace string) Resource[*corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaimList]
	StatefulSets             func(namespace string) Resource[*appsv1.StatefulSet, *appsv1.StatefulSetList]
	DaemonSets               func(namespace string) Resource[*appsv1.DaemonSet, *appsv1.DaemonSetList]
	Jobs                     func(namespace string) Resource[*batchv1.Job, *batchv1.JobList]
	NetworkPolicies          func(namespace string) Resource[*networkingv1.NetworkPolicy, *networkingv1.NetworkPolicyList]
	StorageClasses           Resource[*storagev1.StorageClass, *storagev1.StorageClassList]
	EndpointSlices           func(namespace string) Resource[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList]
	Leases                   func(namespace string) Resource[*coordinationv1.Lease, *coordinationv1.LeaseList]
	SelfSubjectAccessReviews Creator[*authorizationv1.SelfSubjectAccessReview]
	SelfSubjectReviews       Creator[*authenticationv1.SelfSubjectReview]
	// REST asks for any path, and Parameters writes options of requests.
	REST       rest.Interface
	Parameters runtime.ParameterCodec
}

// Creator makes objects of one kind.
type Creator[T any] interface {
	Create(ctx context.Context, object T, o metav1.CreateOptions) (T, error)
}

// Resource reads and changes the objects of one kind, as client-go's typed clients do.
type Resource[T, L any] interface {
	Creator[T]
	Update(ctx context.Context, object T, o metav1.UpdateOptions) (T, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, o metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	List(ctx context.Context, o metav1.ListOptions) (L, error)
}

// New prepares to speak to the server of a configuration; h is nil where the configuration says how to.
func New(c *rest.Config, h *http.Client) (*API, error) {
	config := *c
	config.UserAgent = cmp.Or(config.UserAgent, rest.DefaultKubernetesUserAgent())
	if config.RateLimiter == nil && config.QPS > 0 {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst) // of all groups
	}
	var err error
	if h == nil {
		if h, err = rest.HTTPClientFor(&config); err != nil {
			return nil, err
		}
	}
	known := runtime.NewScheme()
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, networkingv1.AddToScheme, storagev1.AddToScheme, discoveryv1.AddToScheme,
		coordinationv1.AddToScheme, authorizationv1.AddToScheme, authenticationv1.AddToScheme,
	} {
		err = errors.Join(err, add(known))
	}
	config.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(known, serializer.NewCodecFactory(known)).WithoutConversion()
	codec := runtime.NewParameterCodec(known)
	group := func(of schema.GroupVersion) group {
		config.GroupVersion, config.APIPath = &of, "/apis"
		if of.Group == "" {
			config.APIPath = "/api"
		}
		client, failed := rest.RESTClientForConfigAndClient(&config, h)
		err = errors.Join(err, failed)
		return group{client, codec}
	}
	core, apps := group(corev1.SchemeGroupVersion), group(appsv1.SchemeGroupVersion)
	return &API{
		Pods:                     in[corev1.Pod, corev1.PodList](core, "pods"),
		Nodes:                    in[corev1.Node, corev1.NodeList](core, "nodes")(""),
		Namespaces:               in[corev1.Namespace, corev1.NamespaceList](core, "namespaces")(""),
		Services:                 in[corev1.Service, corev1.ServiceList](core, "services"),
		Events:                   in[corev1.Event, corev1.EventList](core, "events"),
		ConfigMaps:               in[corev1.ConfigMap, corev1.ConfigMapList](core, "configmaps"),
		Secrets:                  in[corev1.Secret, corev1.SecretList](core, "secrets"),
		ServiceAccounts:          in[corev1.ServiceAccount, corev1.ServiceAccountList](core, "serviceaccounts"),
		LimitRanges:              in[corev1.LimitRange, corev1.LimitRangeList](core, "limitranges"),
		ResourceQuotas:           in[corev1.ResourceQuota, corev1.ResourceQuotaList](core, "resourcequotas"),
		PersistentVolumes:        in[corev1.PersistentVolume, corev1.PersistentVolumeList](core, "persistentvolumes")(""),
		PersistentVolumeClaims:   in[corev1.PersistentVolumeClaim, corev1.PersistentVolumeClaimList](core, "persistentvolumeclaims"),
		StatefulSets:             in[appsv1.StatefulSet, appsv1.StatefulSetList](apps, "statefulsets"),
		DaemonSets:               in[appsv1.DaemonSet, appsv1.DaemonSetList](apps, "daemonsets"),
		Jobs:                     in[batchv1.Job, batchv1.JobList](group(batchv1.SchemeGroupVersion), "jobs"),
		NetworkPolicies:          in[networkingv1.NetworkPolicy, networkingv1.NetworkPolicyList](group(networkingv1.SchemeGroupVersion), "networkpolicies"),
		StorageClasses:           in[storagev1.StorageClass, storagev1.StorageClassList](group(storagev1.SchemeGroupVersion), "storageclasses")(""),
		EndpointSlices:           in[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList](group(discoveryv1.SchemeGroupVersion), "endpointslices"),
		Leases:                   in[coordinationv1.Lease, coordinationv1.LeaseList](group(coordinationv1.SchemeGroupVersion), "leases"),
		SelfSubjectAccessReviews: kind[authorizationv1.SelfSubjectAccessReview, *authorizationv1.SelfSubjectAccessReview]{group(authorizationv1.SchemeGroupVersion), "selfsubjectaccessreviews", ""},
		SelfSubjectReviews:       kind[authenticationv1.SelfSubjectReview, *authenticationv1.SelfSubjectReview]{group(authenticationv1.SchemeGroupVersion), "selfsubjectreviews", ""},
		REST:                     core.client,
		Parameters:               codec,
	}, err
}

// Version asks the server for its version.
func (a *API) Version(ctx context.Context) (version.Info, error) {
	var about version.Info
	text, err := a.REST.Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return about, err
	}
	if err := json.Unmarshal(text, &about); err != nil {
		return about, fmt.Errorf("it says no version: %w", err)
	}
	return about, nil
}

// Groups asks for the names of the groups of objects that the server has. A user who may not know them is shown none.
func (a *API) Groups(ctx context.Context) (map[string]bool, error) {
	groups := map[string]bool{"": true}
	var list metav1.APIGroupList
	err := a.get(ctx, &list, "/apis")
	for _, g := range list.Groups {
		groups[g.Name] = true
	}
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		err = nil
	}
	return groups, err
}

// ErrNoKind is matched by the error of Find for a kind that the server does not have.
var ErrNoKind = errors.New("the server has no such kind")

// Find asks how the server names the objects of a kind in paths, and whether they are in namespaces.
func (a *API) Find(ctx context.Context, kind schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced bool, err error) {
	path := "/apis/" + kind.GroupVersion().String()
	if kind.Group == "" {
		path = "/api/" + kind.Version
	}
	var list metav1.APIResourceList
	if err := a.get(ctx, &list, path); err != nil && !apierrors.IsNotFound(err) {
		return resource, false, err
	}
	for _, r := range list.APIResources {
		// Resources of a resource, "pods/exec", may be of kinds of other groups.
		if r.Kind == kind.Kind && !strings.Contains(r.Name, "/") {
			return kind.GroupVersion().WithResource(r.Name), r.Namespaced, nil
		}
	}
	return resource, false, ErrNoKind
}

func (a *API) get(ctx context.Context, into any, path string) error {
	text, err := a.REST.Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
