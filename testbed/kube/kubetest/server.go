package kubetest

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"netdelta/internal/require"
	"netdelta/testbed/kube/client"
)

// Server is an API server of which only the objects exist: nothing acts on them. It ignores the groups of objects.
type Server struct {
	// Refuse, where it is set, says why a request is refused, nil if it is not. The namespace is "" for all of them.
	Refuse func(verb, resource, namespace string) error

	mu      sync.Mutex
	objects map[place]object
}

// place is where an object is, or a list.
type place struct{ resource, namespace, name string }

// object is one as its JSON has it.
type object map[string]any

// NewServer is a server that has objects.
func NewServer(objects ...runtime.Object) *Server {
	s := &Server{objects: map[place]object{}}
	for _, o := range objects {
		kind := cmp.Or(o.GetObjectKind().GroupVersionKind().Kind, reflect.TypeOf(o).Elem().Name())
		resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
		text, err := json.Marshal(o)
		made := object{}
		if err = errors.Join(err, json.Unmarshal(text, &made)); err != nil {
			panic(err)
		}
		s.objects[place{resource.Resource, made.Get("metadata.namespace"), made.Get("metadata.name")}] = made
	}
	return s
}

// API is a cluster of objects alone.
func API(t testing.TB, objects ...runtime.Object) *client.API {
	t.Helper()
	return NewServer(objects...).API(t)
}

// API speaks to the server, by no socket.
func (s *Server) API(t testing.TB) *client.API {
	t.Helper()
	config := &rest.Config{Host: "http://192.0.2.1", QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	api, err := client.New(config, &http.Client{Transport: direct{s}})
	require.NoError(t, err)
	return api
}

// direct has requests answered in this process.
type direct struct{ http.Handler }

// RoundTrip is an http.RoundTripper's.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// ServeHTTP answers requests about objects.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := s.answer(r)
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	if err != nil {
		failed := apierrors.NewInternalError(err)
		errors.As(err, &failed)
		w.WriteHeader(int(failed.ErrStatus.Code))
		failed.ErrStatus.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		answer = failed.ErrStatus
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(err)
	}
}

// answer does what a request asks.
func (s *Server) answer(r *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	verb, at := asked(r)
	if s.Refuse != nil {
		if err := s.Refuse(verb, at.resource, at.namespace); err != nil {
			return nil, err
		}
	}
	kind, given := schema.GroupResource{Resource: at.resource}, object{}
	switch verb {
	case "":
		return nil, apierrors.NewMethodNotSupported(kind, r.Method+" "+r.URL.Path)
	case "list":
		return s.list(r, at)
	case "create", "update":
		if err := json.NewDecoder(r.Body).Decode(&given); err != nil {
			return nil, err
		}
	}
	at.name = cmp.Or(at.name, given.Get("metadata.name"))
	found, there := s.objects[at]
	switch {
	case verb == "create" && there:
		return nil, apierrors.NewAlreadyExists(kind, at.name)
	case verb != "create" && !there:
		return nil, apierrors.NewNotFound(kind, at.name)
	case verb == "get":
		return found, nil
	case verb == "delete":
		if held, _, _ := unstructured.NestedSlice(found, "metadata", "finalizers"); len(held) == 0 {
			delete(s.objects, at)
		}
		return found, nil
	}
	if at.namespace != "" {
		given["metadata"].(map[string]any)["namespace"] = at.namespace
	}
	s.objects[at] = given
	return given, nil
}

// asked is what a request asks for; the verb is "" where that is not known here, as for parts of objects.
func asked(r *http.Request) (verb string, at place) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if parts[0] == "apis" { // /apis/GROUP/VERSION/..., where /api/VERSION/... has no group
		parts = parts[1:]
	}
	if parts = parts[2:]; parts[0] == "namespaces" && len(parts) > 2 {
		at.namespace, parts = parts[1], parts[2:]
	}
	at.resource = parts[0]
	if len(parts) > 1 {
		at.name = parts[1]
	}
	return map[string]string{"POST1": "create", "GET1": "list", "PUT2": "update", "DELETE2": "delete", "GET2": "get"}[r.Method+strconv.Itoa(len(parts))], at
}

// list has the objects at a place that are asked for, in the order of their names.
func (s *Server) list(r *http.Request, at place) (any, error) {
	byLabels, err := labels.Parse(r.FormValue("labelSelector"))
	byFields, fieldsErr := fields.ParseSelector(r.FormValue("fieldSelector"))
	if err := errors.Join(err, fieldsErr); err != nil {
		return nil, err
	}
	found := []object{}
	for p, o := range s.objects {
		named, _, _ := unstructured.NestedStringMap(o, "metadata", "labels")
		if p.resource == at.resource && (at.namespace == "" || p.namespace == at.namespace) && byLabels.Matches(labels.Set(named)) && byFields.Matches(o) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b object) int { return cmp.Compare(a.Get("metadata.name"), b.Get("metadata.name")) })
	return map[string]any{"items": found}, nil
}

// Get is the text at a path, for fields.Selector.
func (o object) Get(path string) string {
	text, _, _ := unstructured.NestedString(o, strings.Split(path, ".")...)
	return text
}

// Has says that any path may be asked for.
func (o object) Has(string) bool { return true }
