package client

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// group speaks to the server of one group in one version.
type group struct {
	client rest.Interface
	codec  runtime.ParameterCodec
}

// pointer is *T, which is an object or a list of objects.
type pointer[T any] interface {
	*T
	runtime.Object
}

type object[T any] interface {
	pointer[T]
	metav1.Object
}

// kind reads and changes single objects of a kind, in a namespace or in none: "". The gentype of client-go does the same, but its package
// also holds fakes, which import 50 packages that no program needs.
type kind[T any, P object[T]] struct {
	group
	name, namespace string
}

// listed are objects that can be listed too.
type listed[T, L any, P object[T], Q pointer[L]] struct{ kind[T, P] }

// in is a resource whose objects are in namespaces, or in none.
func in[T, L any, P object[T], Q pointer[L]](g group, name string) func(namespace string) Resource[P, Q] {
	return func(namespace string) Resource[P, Q] { return listed[T, L, P, Q]{kind[T, P]{g, name, namespace}} }
}

// about makes a request one about the kind.
func (k kind[T, P]) about(r *rest.Request) *rest.Request {
	return r.UseProtobufAsDefaultIfPreferred(true).NamespaceIfScoped(k.namespace, k.namespace != "").Resource(k.name)
}

// one sends a request that is answered by an object.
func (k kind[T, P]) one(ctx context.Context, r *rest.Request, options runtime.Object) (P, error) {
	found := P(new(T))
	err := r.VersionedParams(options, k.codec).Do(ctx).Into(found)
	return found, err
}

func (k kind[T, P]) Create(ctx context.Context, object P, o metav1.CreateOptions) (P, error) {
	return k.one(ctx, k.about(k.client.Post()).Body(object), &o)
}

func (k kind[T, P]) Update(ctx context.Context, object P, o metav1.UpdateOptions) (P, error) {
	return k.one(ctx, k.about(k.client.Put()).Name(object.GetName()).Body(object), &o)
}

func (k kind[T, P]) Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, o metav1.PatchOptions, subresources ...string) (P, error) {
	return k.one(ctx, k.about(k.client.Patch(kind)).Name(name).SubResource(subresources...).Body(patch), &o)
}

func (k kind[T, P]) Get(ctx context.Context, name string, o metav1.GetOptions) (P, error) {
	return k.one(ctx, k.about(k.client.Get()).Name(name), &o)
}

func (k kind[T, P]) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return k.about(k.client.Delete()).Name(name).Body(&o).Do(ctx).Error()
}

func (k listed[T, L, P, Q]) List(ctx context.Context, o metav1.ListOptions) (Q, error) {
	list := Q(new(L))
	err := k.about(k.client.Get()).VersionedParams(&o, k.codec).Do(ctx).Into(list)
	return list, err
}
