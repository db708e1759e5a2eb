package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed/lab"
)

// What users of a product could change to is measured with it; without a name, what users of all products have.
func TestWorthHere(t *testing.T) {
	env := &environment{err: io.Discard, lab: lab.NewDriver(network.Catalogue())}
	naming := func(networks ...string) (o runOptions) {
		o.overrides.Networks = networks
		return o
	}
	mine, err := worthHere(t.Context(), env, naming("flannel", "bridge"))
	if err != nil {
		t.Fatal(err)
	}
	if len(mine) < 2 || mine[0] != "host" || !slices.Contains(mine, "bridge") || !slices.Contains(mine, "flannel") || !slices.Contains(mine, "flannel-host-gw") || slices.Contains(mine, "ebpf-vxlan") {
		t.Errorf("for flannel and bridge: %q", mine)
	}
	all, err := worthHere(t.Context(), env, naming())
	if err != nil || !slices.Contains(all, "host") || slices.Contains(all, "xdp") {
		t.Errorf("for all: %q, %v", all, err)
	}
	if _, err := worthHere(t.Context(), env, naming("flanel")); !isUsage(err) {
		t.Errorf("a network that there is not: %v", err)
	}
}

// A cluster is surveyed once in a call, whatever asks for it.
func TestClusterIsSurveyedOnce(t *testing.T) {
	var asked atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/version" {
			_, _ = io.WriteString(w, `{"major": "1", "minor": "34", "gitVersion": "v1.34.4"}`)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`)
	}))
	defer api.Close()
	o := runOptions{}
	o.cluster.Image = "netdelta"
	o.cluster.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(o.cluster.Kubeconfig, []byte(`apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: "`+api.URL+`"}}]
users: [{name: somebody, user: {token: x}}]
contexts: [{name: here, context: {cluster: here, user: somebody}}]
current-context: here
`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := &environment{err: io.Discard}
	if _, err := worthOnNodes(t.Context(), env, o); err != nil {
		t.Fatal(err)
	}
	first := asked.Load()
	if _, err := findingsOfCluster(t.Context(), env, o); err != nil {
		t.Fatal(err)
	}
	p, done, err := openCluster(t.Context(), env, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	met := asked.Load()
	about, _, err := p.Capabilities().Describe(t.Context(), result.Environment{})
	if err != nil || about.Cluster == nil || about.Cluster.Version != "v1.34.4" {
		t.Errorf("the record has %+v, %v", about.Cluster, err)
	}
	if last := asked.Load(); first == 0 || last != met || met > first+1 {
		t.Errorf("%d questions were put for the networks, %d for findings and to meet the cluster, %d for the record", first, met-first, last-met)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
}
