package schedule

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"netdelta/internal/require"
	"netdelta/testbed/kube"
)

// cluster is the one that tests are given, with a namespace for this test that holds pods to Pod Security "restricted".
func cluster(t *testing.T) *kube.Cluster {
	t.Helper()
	c, err := kube.Connect(kube.Config{Kubeconfig: require.Cluster(t)})
	if err != nil {
		t.Fatal(err)
	}
	made, err := c.API.Namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "image-schedule-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Namespace = made.Name
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := c.API.Namespaces.Delete(ctx, made.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return c
}

// The API server takes each object of a manifest as it is, with no field that it does not know.
func TestManifestOnCluster(t *testing.T) {
	c := cluster(t)
	client, err := dynamic.NewForConfig(c.REST)
	if err != nil {
		t.Fatal(err)
	}
	strict := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
	for _, o := range []Options{usual(), rich(), deployed()} {
		o.Namespace = c.Namespace
		for _, object := range objects(t, written(t, o)) {
			resource, namespaced, err := c.API.Find(t.Context(), object.GroupVersionKind())
			if err != nil {
				t.Fatal(err)
			}
			if object.GetKind() == "Namespace" {
				object.SetName(object.GetName() + "-new") // that of the test is there already
			}
			var at dynamic.ResourceInterface = client.Resource(resource)
			if namespaced {
				at = client.Resource(resource).Namespace(c.Namespace)
			}
			if _, err := at.Create(t.Context(), object, strict); err != nil {
				t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
			}
		}
	}
}

// The pod that measures meets Pod Security "restricted".
func TestPodOnCluster(t *testing.T) {
	c := cluster(t)
	for _, o := range []Options{usual(), rich()} {
		o.Namespace, o.Name = c.Namespace, "default" // an account that every namespace has
		// The account may take a moment to be there.
		if err := require.Await(20*time.Second, "a pod is admitted", func() error {
			template := cronJob(t, o).Spec.JobTemplate.Spec.Template
			made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "netdelta-", Labels: template.Labels}, Spec: template.Spec}
			_, err := c.API.Pods(c.Namespace).Create(t.Context(), made, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}); err != nil {
			t.Error(err)
		}
	}
}
