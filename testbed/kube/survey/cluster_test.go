package survey

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"netdelta/internal/leak"
	"netdelta/testbed/kube"
	kubeclient "netdelta/testbed/kube/client"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// object is one of the API's, as text and as what is needed to find it.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	text json.RawMessage
}

// objects reads YAML documents.
func objects(t *testing.T, path string) []object {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	var all []object
	for {
		var text json.RawMessage
		switch err := decoder.Decode(&text); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("%s: %v", path, err)
		case len(bytes.TrimSpace(text)) == 0 || string(text) == "null":
			continue
		}
		o := object{text: text}
		if err := json.Unmarshal(text, &o); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, o)
	}
}

// server answers as an API server does, for what a survey asks: objects, and who may not do what.
type server struct {
	objects []object
	denied  []string // parts of "verb resource in namespace"
	groups  []string
	refuse  func(corev1.Pod) string // why a pod is not admitted; "" if it is
	ahead   time.Duration           // of its clock
	status  int                     // of every answer; 0 is as it should be
	web     *httptest.Server
}

// start is a cluster that is spoken to as any other.
func (s *server) start(t *testing.T) *kube.Cluster {
	t.Helper()
	s.web = httptest.NewServer(s)
	t.Cleanup(s.web.Close)
	config := &rest.Config{Host: s.web.URL, QPS: 1000, Burst: 1000}
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

// resources are the kinds of objects by their names in paths.
func resources() map[string]string {
	return map[string]string{
		"nodes": "Node", "pods": "Pod", "services": "Service", "configmaps": "ConfigMap", "namespaces": "Namespace",
		"daemonsets": "DaemonSet", "leases": "Lease", "resourcequotas": "ResourceQuota", "limitranges": "LimitRange",
		"ippools": "IPPool", "felixconfigurations": "FelixConfiguration",
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", time.Now().Add(s.ahead).UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Type", "application/json")
	if s.status != 0 {
		w.WriteHeader(s.status)
		return
	}
	path := strings.Trim(r.URL.Path, "/")
	switch path {
	case "version":
		answer(w, map[string]string{"major": "1", "minor": "34", "gitVersion": "v1.34.4"})
		return
	case "api":
		answer(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
		return
	case "apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, g := range s.groups {
			v := metav1.GroupVersionForDiscovery{GroupVersion: g + "/v1", Version: "v1"}
			list.Groups = append(list.Groups, metav1.APIGroup{Name: g, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
		}
		answer(w, list)
		return
	}
	parts := strings.Split(path, "/")
	version := parts[1]
	if parts[0] == "api" {
		parts = parts[2:]
	} else {
		version += "/" + parts[2]
		parts = parts[3:]
	}
	if r.Method == http.MethodPost {
		s.create(w, r, parts[len(parts)-1])
		return
	}
	s.read(w, version, parts)
}

// read answers a GET of one object or of a list.
func (s *server) read(w http.ResponseWriter, version string, parts []string) {
	namespace := ""
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1], parts[2:]
	}
	verb := "list"
	if len(parts) > 1 {
		verb = "get"
	}
	if s.denies(verb, parts[0], namespace) {
		deny(w, "cannot "+verb+" resource "+parts[0])
		return
	}
	var found []json.RawMessage
	for _, o := range s.objects {
		if o.Kind == resources()[parts[0]] && (namespace == "" || o.Metadata.Namespace == namespace) && (verb == "list" || o.Metadata.Name == parts[1]) {
			found = append(found, o.text)
		}
	}
	switch {
	case verb == "list":
		answer(w, map[string]any{"kind": resources()[parts[0]] + "List", "apiVersion": version, "items": found})
	case len(found) == 0:
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
	default:
		answer(w, found[0])
	}
}

// create answers questions about rights, and takes or refuses pods.
func (s *server) create(w http.ResponseWriter, r *http.Request, resource string) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	asked, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		panic(err)
	}
	switch asked := asked.(type) {
	case *authenticationv1.SelfSubjectReview:
		asked.Status.UserInfo = authenticationv1.UserInfo{Username: "alice", Groups: []string{"system:authenticated"}}
		encode(w, asked)
	case *authorizationv1.SelfSubjectAccessReview:
		about := asked.Spec.ResourceAttributes
		name := about.Resource
		if about.Subresource != "" {
			name += "/" + about.Subresource
		}
		asked.Status.Allowed = !s.denies(about.Verb, name, about.Namespace)
		encode(w, asked)
	case *corev1.Pod:
		if r.URL.Query().Get("dryRun") != "All" {
			panic("a survey makes no pods")
		}
		if s.denies("create", resource, "measurements") {
			deny(w, "cannot create resource \"pods\"")
			return
		}
		if s.refuse != nil {
			if why := s.refuse(*asked); why != "" {
				deny(w, why)
				return
			}
		}
		encode(w, asked)
	default:
		panic(resource)
	}
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

// encode writes an object with its kind, which decoding took off.
func encode(w io.Writer, what runtime.Object) {
	kinds, _, err := scheme.Scheme.ObjectKinds(what)
	if err != nil {
		panic(err)
	}
	what.GetObjectKind().SetGroupVersionKind(kinds[0])
	answer(w, what)
}

func deny(w http.ResponseWriter, why string) {
	fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, why)
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, why string) {
	w.WriteHeader(code)
	answer(w, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: why,
	})
}
