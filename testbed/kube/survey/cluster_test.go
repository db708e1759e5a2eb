package survey

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"

	"netdelta/internal/leak"
	"netdelta/testbed/kube"
	kubeclient "netdelta/testbed/kube/client"
	"netdelta/testbed/kube/kubetest"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// objects reads YAML documents.
func objects(t *testing.T, name string) (all []runtime.Object) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		o := new(unstructured.Unstructured)
		switch err := decoder.Decode(o); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, o)
	}
}

// server answers as an API server does, for what a survey asks: objects, and who may not do what.
type server struct {
	objects []runtime.Object
	denied  []string // parts of "verb resource in namespace"
	groups  []string
	refuse  func(corev1.Pod) string // why a pod is not admitted; "" if it is
	ahead   time.Duration           // of its clock
	status  int                     // of every answer; 0 is as it should be
	kept    *kubetest.Server
	web     *httptest.Server
}

// start is a cluster that is spoken to as any other.
func (s *server) start(t *testing.T) *kube.Cluster {
	t.Helper()
	s.kept = kubetest.NewServer(s.objects...)
	s.kept.Refuse = func(verb, resource, namespace string) error {
		if s.denies(verb, resource, namespace) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("cannot "+verb+" resource "+resource))
		}
		return nil
	}
	s.web = httptest.NewServer(s)
	t.Cleanup(s.web.Close)
	config := &rest.Config{Host: s.web.URL, QPS: 1000, Burst: 1000, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	api, err := kubeclient.New(config, client)
	if err != nil {
		t.Fatal(err)
	}
	return &kube.Cluster{API: api, REST: config, Name: "test", Namespace: "measurements"}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", time.Now().Add(s.ahead).UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Type", "application/json")
	if s.status != 0 {
		w.WriteHeader(s.status)
		return
	}
	switch r.URL.Path {
	case "/version":
		answer(w, map[string]string{"major": "1", "minor": "34", "gitVersion": "v1.34.4"})
		return
	case "/api":
		answer(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
		return
	case "/apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, g := range s.groups {
			v := metav1.GroupVersionForDiscovery{GroupVersion: g + "/v1", Version: "v1"}
			list.Groups = append(list.Groups, metav1.APIGroup{Name: g, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
		}
		answer(w, list)
		return
	}
	if r.Method == http.MethodPost {
		s.create(w, r, path.Base(r.URL.Path))
		return
	}
	s.kept.ServeHTTP(w, r)
}

// create answers questions about rights, and takes or refuses pods.
func (s *server) create(w http.ResponseWriter, r *http.Request, resource string) {
	switch resource {
	case "selfsubjectreviews":
		user := authenticationv1.UserInfo{Username: "alice", Groups: []string{"system:authenticated"}}
		answer(w, authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: user}})
	case "selfsubjectaccessreviews":
		asked := body[authorizationv1.SelfSubjectAccessReview](r)
		about := asked.Spec.ResourceAttributes
		name := about.Resource
		if about.Subresource != "" {
			name += "/" + about.Subresource
		}
		asked.Status.Allowed = !s.denies(about.Verb, name, about.Namespace)
		answer(w, asked)
	case "pods":
		if r.URL.Query().Get("dryRun") != "All" {
			panic("a survey makes no pods")
		}
		asked, why := body[corev1.Pod](r), ""
		switch {
		case s.denies("create", "pods", "measurements"):
			why = "cannot create resource \"pods\""
		case s.refuse != nil:
			why = s.refuse(asked)
		}
		if why != "" {
			w.WriteHeader(http.StatusForbidden)
			answer(w, metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: why,
			})
			return
		}
		answer(w, asked)
	default:
		panic(resource)
	}
}

// body is the object that a request gives.
func body[T any](r *http.Request) (object T) {
	if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
		panic(err)
	}
	return object
}

func (s *server) denies(verb, resource, namespace string) bool {
	asked := verb + " " + resource + " in " + namespace
	for _, d := range s.denied {
		if strings.HasPrefix(asked, d) {
			return true
		}
	}
	return false
}

func answer(w io.Writer, what any) {
	if err := json.NewEncoder(w).Encode(what); err != nil {
		panic(err)
	}
}
