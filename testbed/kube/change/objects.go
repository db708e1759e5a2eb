package change

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"netdelta/testbed/kube"
	"netdelta/testbed/kube/client"
)

// fieldManager is who sets the fields of objects that are applied.
const fieldManager = "netdelta"

// objects applies and deletes objects of any kind.
type objects struct {
	dynamic   dynamic.Interface
	api       *client.API
	namespace string // of objects that name none
}

func newObjects(cluster *kube.Cluster) (*objects, error) {
	anything, err := dynamic.NewForConfig(cluster.REST)
	if err != nil {
		return nil, fmt.Errorf("prepare to change objects of the cluster: %w", err)
	}
	return &objects{dynamic: anything, api: cluster.API, namespace: cluster.Namespace}, nil
}

// parseObjects reads the objects of a manifest: YAML documents, or JSON.
func parseObjects(name string, data []byte) ([]unstructured.Unstructured, error) {
	const ahead = 4096 // bytes that tell JSON from YAML
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), ahead)
	var all []unstructured.Unstructured
	for n := 1; ; n++ {
		var o unstructured.Unstructured
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: its document %d is no object of Kubernetes: %w", name, n, err)
		}
		if len(o.Object) == 0 {
			continue // nothing but comments
		}
		switch {
		case o.GetAPIVersion() == "" || o.GetKind() == "":
			return nil, fmt.Errorf("read %s: its document %d has no apiVersion or no kind", name, n)
		case o.IsList():
			return nil, fmt.Errorf("read %s: its document %d is a list; write its objects as documents of their own, parted by ---", name, n)
		case o.GetName() == "":
			return nil, fmt.Errorf("read %s: its document %d, a %s, has no metadata.name", name, n, o.GetKind())
		}
		all = append(all, o)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("read %s: it has no object", name)
	}
	return all, nil
}

// apply has the API server take over the fields of all objects of a manifest, in the order of the file.
func (o *objects) apply(ctx context.Context, name string, data []byte) error {
	all, err := parseObjects(name, data)
	if err != nil {
		return err
	}
	for _, object := range all {
		client, err := o.clientOf(ctx, &object)
		if err == nil {
			_, err = client.Apply(ctx, object.GetName(), &object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		}
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// delete removes all objects of a manifest, the last first, and returns when they are gone.
func (o *objects) delete(ctx context.Context, name string, data []byte) error {
	all, err := parseObjects(name, data)
	if err != nil {
		return err
	}
	for i := len(all) - 1; i >= 0; i-- {
		client, err := o.clientOf(ctx, &all[i])
		if err == nil {
			err = gone(ctx, client, all[i].GetName())
		}
		if err != nil {
			return fmt.Errorf("delete %s %s: %w", all[i].GetKind(), all[i].GetName(), err)
		}
	}
	return nil
}

// gone deletes an object and waits until it is gone.
func gone(ctx context.Context, client dynamic.ResourceInterface, name string) error {
	background := metav1.DeletePropagationBackground
	err := client.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
	if err == nil {
		for range kube.Polling(ctx, again/2) {
			if _, err = client.Get(ctx, name, metav1.GetOptions{}); err != nil {
				break
			}
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return fmt.Errorf("it is still there: %w", context.Cause(ctx))
	}
	return err
}

// clientOf speaks of the objects of one's kind, for which the server is asked each time: a manifest may bring kinds with it.
func (o *objects) clientOf(ctx context.Context, object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	resource, namespaced, err := o.api.Find(ctx, kind)
	if err != nil {
		return nil, fmt.Errorf("find the kind %s: %w", kind, err)
	}
	client := o.dynamic.Resource(resource)
	switch {
	case !namespaced:
		return client, nil
	case object.GetNamespace() != "":
		return client.Namespace(object.GetNamespace()), nil
	}
	return client.Namespace(o.namespace), nil
}
