package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed/kube"
)

// programsImage is what 'go run ./extras/cluster programs' gives to the nodes.
const programsImage = "localhost/netdelta/programs:1"

// equipped needs so many nodes that have the image of programs, and returns the flags of runs with it.
func equipped(t *testing.T, nodes int) (*kube.Cluster, []string) {
	t.Helper()
	c, flags := inNamespace(t)
	list, err := c.API.Nodes.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	have, take := 0, 0
	for _, n := range list.Items {
		if !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoSchedule }) {
			take++
		}
		if slices.ContainsFunc(n.Status.Images, func(i corev1.ContainerImage) bool { return slices.Contains(i.Names, programsImage) }) {
			have++
		}
	}
	require.Need(t, "nodes with the image of programs (go run ./extras/cluster programs)", have > 0)
	if nodes > 2 {
		require.Need(t, "a cluster with four workers (make cluster-up WORKERS=4)", take >= nodes)
	}
	if os.Getenv(readyImage) != "" {
		return c, flags // it has them
	}
	return c, streaming(flags, programsImage)
}

// TestDaemonsOnCluster: workloads whose servers and clients are programs of others are measured in pods that meet Pod Security, each
// of them with its daemons named; what the image lacks is unsupported by name.
func TestDaemonsOnCluster(t *testing.T) {
	t.Parallel()
	c, flags := equipped(t, 2)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "small.yaml"), `study: small
testbed: {kind: kubernetes}
baseline: pod
networks: [pod, clusterip]
placement: [cross-node]
workloads:
  - http: {engine: [netdelta, wrk]}
  - block: {store: nbd}
  - tcp-stream: {engine: iperf3}
design: {builds: 1, rounds: 2, time_budget: 10m}
`)
	e := finish(t, longCommand(t, dir, append([]string{"run", "small.yaml", "--builds", "1", "--rounds", "2", "--out", "run"}, flags...)...))
	e.want(t, statusDone)
	wantServices(t, filepath.Join(dir, "run"), "nginx", "nbd-server")
	if left := podsOf(t, c); len(left) > 0 {
		t.Errorf("%d pods are left", len(left))
	}
	_, plain := inNamespace(t)
	finish(t, longCommand(t, dir, append([]string{"run", "small.yaml", "--workloads", "http", "--out", "bare"}, streaming(plain, imageOfCluster)...)...)).
		says(t, "no nginx (nginx-light)", "deploy/programs/Dockerfile")
}

// wantServices checks that every cell was measured, and by which daemons.
func wantServices(t *testing.T, folder string, names ...string) {
	t.Helper()
	run, err := result.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, cell := range run.Cells {
		if cell.Unsupported != "" || cell.Skipped != "" {
			t.Errorf("%s: %s%s", cell.ID, cell.Unsupported, cell.Skipped)
		}
	}
	seen := map[string]bool{}
	for _, tr := range trials(t, folder) {
		if tr.Failed != "" {
			t.Errorf("%s: %s", tr.ID(), tr.Failed)
		}
		wantServerTime(t, tr)
		for _, s := range tr.Services {
			seen[s.Name] = true
		}
	}
	for _, n := range names {
		if !seen[n] {
			t.Errorf("nothing was served by %s, but by %v", n, seen)
		}
	}
}

// measured is how many trials a run that is under way has.
func measured(folder string) int {
	contents, err := result.LoadTrials(folder)
	if err != nil {
		return 0 // it has not begun
	}
	return len(contents.Trials)
}

// TestCephOnCluster: a store of two pods is measured by one client, and by two on a node each, and of each trial it is proved which way its
// bytes went.
func TestCephOnCluster(t *testing.T) {
	t.Parallel()
	_, flags := equipped(t, 4)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ceph.yaml"), `study: ceph
testbed: {kind: kubernetes}
baseline: pod
networks: [pod]
placement: [cross-node]
workloads: [block: {store: ceph, osds: 2, client_pods: [1, 2]}]
design: {blocks: 1, time_budget: 5m}
`)
	finish(t, longCommand(t, dir, append([]string{"run", "ceph.yaml", "--node-agent", "--out", "run"}, flags...)...)).want(t, statusDone)
	wantServices(t, filepath.Join(dir, "run"), "ceph-mon.a", "ceph-osd.0", "ceph-osd.1")
	run, err := result.Load(filepath.Join(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	// The record has the nodes of the daemons and of the second client, too, with their kernels.
	if nodes := run.Environment.Cluster.Nodes; len(nodes) != 4 || slices.ContainsFunc(nodes, func(n result.ClusterNode) bool { return n.Kernel == "" || n.CPU.Count == 0 }) {
		t.Errorf("the nodes are %+v", nodes)
	}
	for _, tr := range trials(t, filepath.Join(dir, "run")) {
		if tr.Path == nil || !tr.Path.OK || len(tr.Path.Hops) == 0 {
			t.Errorf("%s is not proved: %+v", tr.ID(), tr.Path)
		}
	}
}

// TestDatabaseOnCluster: a database of three nodes is measured on networks that its client reaches it by; when one of its pods is
// evicted, what it had part in fails by name, and the run goes on with another cluster.
func TestDatabaseOnCluster(t *testing.T) {
	t.Parallel()
	c, flags := equipped(t, 4)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "db.yaml"), `study: db
testbed: {kind: kubernetes}
baseline: pod
networks: [pod, clusterip]
placement: [cross-node]
workloads: [oltp]
design: {blocks: 2, time_budget: 20m}
`)
	p := longCommand(t, dir, append([]string{"run", "db.yaml", "--out", "run"}, flags...)...)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Minute); measured(filepath.Join(dir, "run")) < 3; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no block is done")
		}
	}
	pods := awaitPods(t, c, time.Minute, func(all []corev1.Pod) bool { return len(all) == 4 })
	peer := pods[slices.IndexFunc(pods, func(p corev1.Pod) bool { return strings.HasSuffix(p.Name, "-peers-1") })]
	evict(t, c, peer.Name)
	_ = p.Wait() // its status says that trials have failed
	failed, good, after := 0, 0, 0
	for _, tr := range trials(t, filepath.Join(dir, "run")) {
		switch {
		case tr.Failed == "" && tr.Build > 0:
			after++
		case tr.Failed == "":
			good++
		case strings.Contains(tr.Failed, peer.Name):
			failed++
		default:
			t.Errorf("%s: %s", tr.ID(), tr.Failed)
		}
	}
	if good != 3 || after == 0 {
		t.Errorf("%d trials are good, and %d after the pod was lost; %d failed", good, after, failed)
	}
	if left := podsOf(t, c); len(left) > 0 {
		t.Errorf("%d pods are left", len(left))
	}
}
