package client

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Creator makes objects of one kind.
type Creator[T any] interface {
	Create(ctx context.Context, object *T, o metav1.CreateOptions) (*T, error)
}

// Resource reads and changes the objects of one kind.
type Resource[T, L any] interface {
	Creator[T]
	Update(ctx context.Context, object *T, o metav1.UpdateOptions) (*T, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, o metav1.PatchOptions, subresources ...string) (*T, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
	Get(ctx context.Context, name string, o metav1.GetOptions) (*T, error)
	List(ctx context.Context, o metav1.ListOptions) (*L, error)
}

// Pods are pods, and what they log.
type Pods interface {
	Resource[corev1.Pod, corev1.PodList]
	GetLogs(name string, o *corev1.PodLogOptions) *rest.Request
}

// group speaks to the server of one group in one version.
type group struct {
	client rest.Interface
	codec  runtime.ParameterCodec
}

type pointer[T any] interface {
	*T
	runtime.Object
}

type named[T any] interface {
	pointer[T]
	metav1.Object
}

// creator implements Creator for the objects of a namespace, or for those that are in none.
type creator[T any, P named[T]] struct {
	group
	name, namespace string
}

// resource implements Resource.
type resource[T, L any, P named[T], Q pointer[L]] struct{ creator[T, P] }

// in is a resource whose objects are in namespaces.
func in[T, L any, P named[T], Q pointer[L]](g group, name string) func(namespace string) Resource[T, L] {
	return func(namespace string) Resource[T, L] { return resource[T, L, P, Q]{creator[T, P]{g, name, namespace}} }
}

// of is a resource whose objects are in no namespace.
func of[T, L any, P named[T], Q pointer[L]](g group, name string) func() Resource[T, L] {
	return func() Resource[T, L] { return resource[T, L, P, Q]{creator[T, P]{g, name, ""}} }
}

func (c creator[T, P]) to(r *rest.Request, o runtime.Object) *rest.Request {
	r = r.UseProtobufAsDefault().NamespaceIfScoped(c.namespace, c.namespace != "").Resource(c.name)
	if o != nil {
		r = r.VersionedParams(o, c.codec)
	}
	return r
}

func (c creator[T, P]) answer(ctx context.Context, r *rest.Request) (*T, error) {
	object := new(T)
	err := r.Do(ctx).Into(P(object))
	return object, err
}

// Create implements Creator.
func (c creator[T, P]) Create(ctx context.Context, object *T, o metav1.CreateOptions) (*T, error) {
	return c.answer(ctx, c.to(c.client.Post(), &o).Body(P(object)))
}

// Update implements Resource.
func (r resource[T, L, P, Q]) Update(ctx context.Context, object *T, o metav1.UpdateOptions) (*T, error) {
	return r.answer(ctx, r.to(r.client.Put(), &o).Name(P(object).GetName()).Body(P(object)))
}

// Patch implements Resource.
func (r resource[T, L, P, Q]) Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, o metav1.PatchOptions, subresources ...string) (*T, error) {
	return r.answer(ctx, r.to(r.client.Patch(kind), &o).Name(name).SubResource(subresources...).Body(patch))
}

// Delete implements Resource.
func (r resource[T, L, P, Q]) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return r.to(r.client.Delete(), nil).Name(name).Body(&o).Do(ctx).Error()
}

// Get implements Resource.
func (r resource[T, L, P, Q]) Get(ctx context.Context, name string, o metav1.GetOptions) (*T, error) {
	return r.answer(ctx, r.to(r.client.Get(), &o).Name(name))
}

// List implements Resource.
func (r resource[T, L, P, Q]) List(ctx context.Context, o metav1.ListOptions) (*L, error) {
	list := new(L)
	err := r.to(r.client.Get(), &o).Do(ctx).Into(Q(list))
	return list, err
}

type pods struct {
	Resource[corev1.Pod, corev1.PodList]
}

// GetLogs implements Pods.
func (p pods) GetLogs(name string, o *corev1.PodLogOptions) *rest.Request {
	of := p.Resource.(resource[corev1.Pod, corev1.PodList, *corev1.Pod, *corev1.PodList])
	return of.client.Get().Namespace(of.namespace).Name(name).Resource(of.name).SubResource("log").VersionedParams(o, of.codec)
}
