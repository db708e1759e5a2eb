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

	"netdelta/result"
	"netdelta/testbed/kube"
)

// clusterStudy takes half a minute on a cluster, longClusterStudy goes on until it is stopped.
const (
	clusterStudy = `study: small
testbed: {kind: kubernetes}
baseline: host
networks: [host, pod, clusterip, nodeport]
workloads: [tcp-rr, udp-rr]
design: {burst: 5ms, builds: 2, rounds: 10, time_budget: 5m}
`
	longClusterStudy = `study: long
testbed: {kind: kubernetes}
baseline: host
networks: [host, pod]
placement: [cross-node]
workloads: [tcp-rr]
design: {burst: 5ms, builds: 500, rounds: 20, margin: 0%, time_budget: 1h}
`
)

// clusterFolder is a folder with both studies.
func clusterFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "small.yaml"), clusterStudy)
	write(t, filepath.Join(dir, "long.yaml"), longClusterStudy)
	return dir
}

// podsOf are the pods of runs in the cluster's namespace.
func podsOf(t *testing.T, c *kube.Cluster) []corev1.Pod {
	t.Helper()
	list, err := c.API.Pods(c.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: kube.SelectAll})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// awaitPods waits until the pods of runs are as wanted.
func awaitPods(t *testing.T, c *kube.Cluster, within time.Duration, wanted func([]corev1.Pod) bool) []corev1.Pod {
	t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(200 * time.Millisecond) {
		pods := podsOf(t, c)
		if wanted(pods) {
			return pods
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v there are %d pods, not those that are wanted", within, len(pods))
		}
	}
}

// wantServerTime checks that the server of a trial has told its processor time.
func wantServerTime(t *testing.T, tr result.Trial) {
	t.Helper()
	if b := tr.Bursts; len(b.ServerCPU) == 0 || slices.Max(b.ServerCPU) <= 0 {
		t.Errorf("%s: its server's processor time is %v", tr.ID(), b.ServerCPU)
	}
}

// A run on a cluster: every network on one node and across nodes, a record of the cluster and of nothing else, and nothing left.
func TestBasicRunOnCluster(t *testing.T) {
	t.Parallel()
	c, flags := inNamespace(t)
	dir := clusterFolder(t)
	e := finish(t, longCommand(t, dir, append([]string{"run", "small.yaml", "--builds", "2", "--out", "run"}, flags...)...))
	e.want(t, statusDone).shows(t, "clusterip", "nodeport", "Kubernetes v1.")
	run, err := result.Load(filepath.Join(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, tr := range trials(t, filepath.Join(dir, "run")) {
		if tr.Failed != "" {
			t.Errorf("%s: %s", tr.ID(), tr.Failed)
		}
		wantServerTime(t, tr)
		seen[tr.Cell]++
	}
	for _, cell := range run.Cells {
		if cell.Unsupported != "" || seen[cell.ID] != 2 {
			t.Errorf("%s has %d trials, want 2 (%s)", cell.ID, seen[cell.ID], cell.Unsupported)
		}
	}
	about := run.Environment
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if k := about.Cluster; k == nil || len(k.Nodes) != 2 || k.Nodes[0].Kubelet == "" || k.Nodes[1].Kernel == "" || k.Version == "" {
		t.Errorf("cluster %+v", about.Cluster)
	}
	if about.Hostname == host || len(about.Measuring) > 0 {
		t.Errorf("the record is of this machine: %q, measured on %v", about.Hostname, about.Measuring)
	}
	if page := read(t, filepath.Join(dir, "run", "report.html")); !strings.Contains(page, "Node w1") {
		t.Error("the page does not name the nodes")
	}
	if left := podsOf(t, c); len(left) > 0 {
		t.Errorf("%d pods are left", len(left))
	}
}

// A study of the lab runs on the cluster's own networks, and says so. Its program is streamed into pods of any image.
func TestStudyMovedOnCluster(t *testing.T) {
	t.Parallel()
	_, flags := inNamespace(t)
	dir := t.TempDir()
	e := finish(t, longCommand(t, dir, append([]string{
		"run", "latency", "--workloads", "tcp-rr", "--factor", "message=300", "--placement", "cross-node", "--builds", "1", "--rounds", "5", "--time-budget", "5m", "--out", "run",
	}, streaming(flags, imageOfCluster)...)...))
	e.want(t, statusDone).shows(t, "the cluster's own are measured in their place", "not tested")
	run, err := result.Load(filepath.Join(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	var networks []string
	for _, cell := range run.Cells {
		if cell.Role != result.RoleControl && cell.Unsupported == "" { // two processors of one's own are none of a cluster's
			networks = append(networks, cell.Network)
		}
	}
	if !slices.Equal(networks, []string{"host", "pod", "clusterip", "nodeport"}) {
		t.Errorf("networks %v", networks)
	}
}

// A pod that is lost in the middle of a build costs the trials of that build which it took part in, by name; the next build has
// another.
func TestLostPodOnCluster(t *testing.T) {
	t.Parallel()
	c, flags := inNamespace(t)
	dir := clusterFolder(t)
	run := begin(t, longCommand(t, dir, append([]string{"run", "long.yaml", "--builds", "3", "--rounds", "150", "--out", "run"}, flags...)...))
	awaitTrials(t, filepath.Join(dir, "run"), 1)
	victim := underWay(t, c, filepath.Join(dir, "run"))
	if err := c.API.Pods(c.Namespace).Delete(t.Context(), victim, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e := await(t, run)
	e.want(t, statusFailed)
	failed, whole := 0, 0
	for _, tr := range trials(t, filepath.Join(dir, "run")) {
		if tr.Failed == "" {
			whole++
			continue
		}
		failed++
		if !strings.Contains(tr.Failed, victim) {
			t.Errorf("%s failed for another reason: %s", tr.ID(), tr.Failed)
		}
	}
	if failed != 1 || whole != 8 {
		t.Errorf("%d trials failed and %d are whole, want 1 and 8", failed, whole)
	}
}

// measuredPod says whether a pod has been ready for so long that its build is being measured.
func measuredPod(p corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && time.Since(c.LastTransitionTime.Time) > 4*time.Second
	})
}
