package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

// TestDatabaseOnCluster: a database of three nodes is measured on networks that its client reaches it by. One of its pods is evicted in the
// middle of a visit, and one of those that take their place uses up its memory in the middle of another: each costs a trial, which names the pod, its
// node and the reason, and the run goes on with other pods.
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
	at := filepath.Join(dir, "run")
	run := begin(t, longCommand(t, dir, append([]string{"run", "db.yaml", "--memory", "800Mi", "--out", "run"}, flags...)...))
	client, lost := "", []lostPeer{}
	for i, f := range []fault{
		{"eviction", func(t *testing.T, pod string) string { return evict(t, c, pod) }, []string{"taken away: EvictionByEvictionAPI", "was deleted", "made another of its name"}},
		{"memory", func(t *testing.T, pod string) string { return starve(t, c, pod) }, []string{"container netdelta ended: OOMKilled", "used up its memory"}},
	} {
		before := client
		for client == before { // what is left of the visit may still be measured
			client = underWay(t, c, at)
		}
		pods := podsOf(t, c)
		victim := pods[slices.IndexFunc(pods, func(p corev1.Pod) bool {
			return strings.HasSuffix(p.Name, fmt.Sprintf("-peers-%d", i+1)) && p.DeletionTimestamp == nil
		})]
		lost = append(lost, lostPeer{f, victim.Name, victim.Spec.NodeName, 0})
		f.befall(t, victim.Name)
	}
	await(t, run) // its status says that trials have failed
	after := countLost(t, trials(t, at), lost)
	for _, l := range lost {
		if l.cost == 0 {
			t.Errorf("%s of %s cost no trial", l.name, l.pod)
		}
	}
	if after != 3 {
		t.Errorf("%d of 3 trials are good after pods were lost", after)
	}
	if left := podsOf(t, c); len(left) > 0 {
		t.Errorf("%d pods are left", len(left))
	}
}

// lostPeer is a pod of a database that a fault befell.
type lostPeer struct {
	fault
	pod, node string
	cost      int // trials that failed for it
}

// countLost checks that trials failed for the pods that were lost alone, and counts those that are good in builds after the first.
func countLost(t *testing.T, all []result.Trial, lost []lostPeer) (after int) {
	t.Helper()
	for _, tr := range all {
		if tr.Failed == "" {
			after += min(tr.Build, 1)
			continue
		}
		i := slices.IndexFunc(lost, func(l lostPeer) bool { return strings.Contains(tr.Failed, l.pod) })
		if i < 0 || !strings.Contains(tr.Failed, "on node "+lost[i].node) || !slices.ContainsFunc(lost[i].says, func(s string) bool { return strings.Contains(tr.Failed, s) }) {
			t.Errorf("%s: %s", tr.ID(), tr.Failed)
			continue
		}
		lost[i].cost++
		t.Logf("%s: %s", tr.ID(), tr.Failed)
	}
	return after
}
