package survey

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"netdelta/internal/require"
	"netdelta/testbed/kube"
	kubeclient "netdelta/testbed/kube/client"
)

// onCluster is the cluster of the tests, with a namespace of this test's own that enforces a Pod Security level.
func onCluster(t *testing.T, level string) *kube.Cluster {
	t.Helper()
	var b [4]byte
	_, _ = rand.Read(b[:])
	cluster, err := kube.Connect(kube.Config{Kubeconfig: require.Cluster(t), Namespace: "doctor-" + hex.EncodeToString(b[:])})
	if err != nil {
		t.Fatal(err)
	}
	// The connections to the API server end with the test.
	client, err := rest.HTTPClientFor(cluster.REST)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	labels := map[string]string{"pod-security.kubernetes.io/enforce": level}
	namespaces := cluster.API.Namespaces
	if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.Namespace, Labels: labels}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := namespaces.Delete(context.WithoutCancel(t.Context()), cluster.Namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// TestLookOnCluster: a survey of a real cluster has all of its parts.
func TestLookOnCluster(t *testing.T) {
	cluster := onCluster(t, "restricted")
	s, err := Look(t.Context(), cluster, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Gaps) > 0 {
		t.Errorf("gaps: %+v", s.Gaps)
	}
	if len(s.Nodes) < 3 || !strings.HasPrefix(s.Version, "v1.") || s.User.Name == "" || s.Pods < 0 || s.Services.Count < 1 || s.Namespace.Level != "restricted" {
		t.Errorf("survey is %+v", s)
	}
	// All nodes, the API server and this test read the clock of one machine.
	if c := s.Clock; c == nil || c.Low > 0 || c.High < 0 || c.High-c.Low > time.Second {
		t.Errorf("the API server's clock is %+v ahead", c)
	}
	for _, n := range s.Nodes {
		if c := n.Clock; c == nil || c.Low > 0 || c.High < 0 || c.By != "its lease" {
			t.Errorf("the clock of %s is %+v ahead", n.Name, c)
		}
		if n.FreeMilliCPU < 0 || n.FreeMilliCPU > n.MilliCPU || len(n.PodRanges) == 0 || len(n.Addresses) == 0 {
			t.Errorf("node %+v", n)
		}
	}
	if !slices.Contains([]string{"bridge", "flannel"}, s.Network.Plugin) || s.Network.Policies != "none" || s.Network.EBPF != "no" {
		t.Errorf("network is %+v", s.Network)
	}
	for _, r := range s.Rights {
		if !r.Allowed {
			t.Errorf("may not %s: %s", r.Need, r.Unknown)
		}
	}
	admitted := map[string]bool{}
	for _, a := range s.Admission {
		admitted[a.Pod] = a.Admitted
		if a.Untried != "" {
			t.Errorf("%s was not tried: %s", a.Pod, a.Untried)
		}
	}
	if !admitted[PodPlain] || admitted[PodHost] {
		t.Errorf("a namespace that is restricted admits %v", s.Admission)
	}
	if found := Judge(s); Lacks(found) != 1 {
		t.Errorf("what is missing is only the admission of pods in their node's network: %+v", found)
	}
	pods, err := cluster.API.Pods(cluster.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) > 0 {
		t.Errorf("the survey left %d pods; %v", len(pods.Items), err)
	}
}

// TestRightsOnCluster: a user without rights is told each that is missing; one with what --rbac prints has all, and no more than that.
func TestRightsOnCluster(t *testing.T) {
	cluster := onCluster(t, "privileged")
	name := "nobody-" + cluster.Namespace
	config := rest.CopyConfig(cluster.REST)
	config.Impersonate = rest.ImpersonationConfig{UserName: name}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	api, err := kubeclient.New(config, client)
	if err != nil {
		t.Fatal(err)
	}
	nobody := &kube.Cluster{API: api, REST: config, Name: cluster.Name, Namespace: cluster.Namespace}
	look := func() (Survey, []string) {
		s, err := Look(t.Context(), nobody, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var missing []string
		for _, r := range s.Rights {
			if r.Unknown != "" {
				t.Errorf("%s: %s", r.Need, r.Unknown)
			}
			if r.For != ForDoctor && !r.Allowed {
				missing = append(missing, r.String())
			}
		}
		return s, missing
	}
	s, missing := look()
	if s.User.Name != name || len(missing) < 20 || len(s.Gaps) < 8 || s.Admission[0].Untried == "" || len(s.Nodes) != 0 {
		t.Errorf("without rights: %+v", s)
	}
	if findings := Judge(s); findings[0].Topic != "rights" || findings[0].Severity != Missing {
		t.Errorf("the gravest is %+v", findings[0])
	}

	give(t, cluster, manifest(t, s.User, cluster.Namespace, false, false))
	s, missing = look()
	if len(missing) > 0 || len(s.Nodes) < 3 || !s.Admission[0].Admitted || !s.Admission[1].Admitted {
		t.Errorf("with what --rbac prints there is missing: %q; admission %+v", missing, s.Admission)
	}
	for _, r := range s.Rights {
		if r.For == ForDoctor && r.Allowed {
			t.Errorf("it grants more than runs take: %s", r.Need)
		}
	}

	give(t, cluster, manifest(t, s.User, cluster.Namespace, false, true))
	if s, _ = look(); len(s.Gaps) > 0 {
		t.Errorf("with what --rbac=all prints there are gaps: %+v", s.Gaps)
	}
}

// give makes what a manifest has that is not there yet, and takes it away with the test.
func give(t *testing.T, cluster *kube.Cluster, manifest string) {
	t.Helper()
	for _, o := range documents(t, manifest) {
		switch o := o.(type) {
		case *rbacv1.RoleBinding:
			o.RoleRef.Name += "-" + cluster.Namespace
		case *rbacv1.ClusterRoleBinding:
			o.RoleRef.Name += "-" + cluster.Namespace
		}
		// What is of the cluster, and of system namespaces, has the test's name as well: several tests may run at once.
		object, kind := o.(metav1.Object), o.GetObjectKind().GroupVersionKind()
		object.SetName(object.GetName() + "-" + cluster.Namespace)
		text, err := json.Marshal(o)
		require.NoError(t, err)
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		client, group := cluster.API.REST, "/apis/"+kind.GroupVersion().String()
		about := func(r *rest.Request) *rest.Request {
			return r.AbsPath(group).NamespaceIfScoped(object.GetNamespace(), object.GetNamespace() != "").Resource(resource.Resource)
		}
		err = about(client.Post()).SetHeader("Content-Type", "application/json").Body(text).Do(t.Context()).Error()
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, about(client.Delete()).Name(object.GetName()).Do(context.WithoutCancel(t.Context())).Error())
		})
	}
}
