package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

func serve(t *testing.T, answers map[string]string) *API {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.Method+" "+r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		if kind := r.Header.Get("Content-Type"); r.Method == http.MethodPost && kind != runtime.ContentTypeProtobuf {
			t.Errorf("what is made is sent as %q, which is long", kind)
		}
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`
		}
		_, _ = fmt.Fprint(w, answer)
	}))
	t.Cleanup(web.Close)
	config := &rest.Config{Host: web.URL}
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.CloseIdleConnections)
	a, err := New(config, h)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestObjects(t *testing.T) {
	a := serve(t, map[string]string{
		"GET /api/v1/namespaces/n/pods/p":          `{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}}`,
		"GET /api/v1/nodes":                        `{"kind": "NodeList", "apiVersion": "v1", "items": [{"metadata": {"name": "w1"}}]}`,
		"PATCH /api/v1/namespaces/n/pods/p/status": `{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "patched"}}`,
		"POST /api/v1/nodes":                       `{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "made"}}`,
		"GET /version":                             `{"gitVersion": "v1.34.4"}`,
	})
	if p, err := a.Pods("n").Get(t.Context(), "p", metav1.GetOptions{}); err != nil || p.Name != "p" {
		t.Errorf("got %v, %v", p, err)
	}
	if n, err := a.Nodes.Create(t.Context(), &corev1.Node{}, metav1.CreateOptions{}); err != nil || n.Name != "made" {
		t.Errorf("got %v, %v", n, err)
	}
	if p, err := a.Pods("n").Patch(t.Context(), "p", types.MergePatchType, []byte("{}"), metav1.PatchOptions{}, "status"); err != nil || p.Name != "patched" {
		t.Errorf("got %v, %v", p, err)
	}
	if _, err := a.Pods("n").Get(t.Context(), "other", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	if l, err := a.Nodes.List(t.Context(), metav1.ListOptions{}); err != nil || len(l.Items) != 1 || l.Items[0].Name != "w1" {
		t.Errorf("got %v, %v", l, err)
	}
	if v, err := a.Version(t.Context()); err != nil || v.GitVersion != "v1.34.4" {
		t.Errorf("got %v, %v", v, err)
	}
}

func TestFind(t *testing.T) {
	a := serve(t, map[string]string{
		"GET /api/v1":                  `{"resources": [{"name": "pods/exec", "kind": "PodExecOptions"}, {"name": "pods/status", "kind": "Pod"}, {"name": "pods", "kind": "Pod", "namespaced": true}]}`,
		"GET /apis/apps/v1":            `{"resources": [{"name": "deployments/scale", "group": "autoscaling", "version": "v1", "kind": "Scale"}]}`,
		"GET /apis/own.example.org/v1": `{"resources": [{"name": "things", "kind": "Thing"}]}`,
		"GET /apis":                    `{"groups": [{"name": "apps"}, {"name": "own.example.org"}]}`,
	})
	for kind, want := range map[schema.GroupVersionKind]struct {
		resource   string
		namespaced bool
	}{
		{Version: "v1", Kind: "Pod"}:                                   {"pods", true},
		{Group: "own.example.org", Version: "v1", Kind: "Thing"}:       {"things", false},
		{Group: "own.example.org", Version: "v1", Kind: "Other"}:       {},
		{Group: "missing.example.org", Version: "v1", Kind: "Missing"}: {},
		{Group: "apps", Version: "v1", Kind: "Scale"}:                  {},
	} {
		r, namespaced, err := a.Find(t.Context(), kind)
		if r.Resource != want.resource || namespaced != want.namespaced || errors.Is(err, ErrNoKind) != (want.resource == "") {
			t.Errorf("%v: got %v, %v, %v", kind, r, namespaced, err)
		}
	}
	if g, err := a.Groups(t.Context()); err != nil || len(g) != 3 || !g["own.example.org"] {
		t.Errorf("got %v, %v", g, err)
	}
}
