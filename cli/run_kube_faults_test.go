package cli_test

import (
	"errors"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/extras/cluster/supervisor"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed/kube"
)

// clusterPatience is far more than a build takes, also on a machine that is busy with other work.
const clusterPatience = 10 * time.Minute

// awaitBuild waits until a run's next build is being measured: all its pods have been up for a while, and none of them was known before.
func awaitBuild(t *testing.T, c *kube.Cluster, run string, known map[string]bool) {
	t.Helper()
	fresh := func(p corev1.Pod) bool {
		return !known[p.Name] && p.Labels[kube.LabelRun] == run && p.DeletionTimestamp == nil
	}
	for _, p := range slices.DeleteFunc(awaitPods(t, c, clusterPatience, func(pods []corev1.Pod) bool {
		ready := 0
		for _, p := range pods {
			if fresh(p) && measuredPod(p) {
				ready++
			}
		}
		return ready == podsOfBuild
	}), func(p corev1.Pod) bool { return !fresh(p) }) {
		known[p.Name] = true
	}
}

// podsOfBuild is how many pods a build of the long study has: a client and a server for the baseline, its A/A control and a network.
const podsOfBuild = 6

// runOf is what the pods of the only run in a namespace are labelled with.
func runOf(t *testing.T, c *kube.Cluster) string {
	t.Helper()
	return awaitPods(t, c, clusterPatience, func(pods []corev1.Pod) bool { return len(pods) > 0 })[0].Labels[kube.LabelRun]
}

// sound says that a run's record can be read, and that no delta rests on a trial that failed.
func sound(t *testing.T, dir string) {
	t.Helper()
	run, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	whole := map[string]int{}
	for _, tr := range trials(t, dir) {
		if tr.Failed == "" {
			whole[tr.Cell]++
		}
	}
	for _, d := range run.Deltas {
		if d.Blocks > whole[d.Cell] {
			t.Errorf("%s rests on %d builds; %d of its trials are whole", d.Cell, d.Blocks, whole[d.Cell])
		}
	}
	if len(run.Deltas) == 0 {
		t.Error("the run has no deltas")
	}
}

// ownCluster needs the cluster of make cluster-up, of which a test can end programs and change networks.
func ownCluster(t *testing.T) supervisor.Folder {
	t.Helper()
	kubeconfig := require.Cluster(t)
	folder, err := supervisor.Own()
	if err != nil {
		t.Fatal(err)
	}
	require.Need(t, "a cluster of this machine's (make cluster-up)", folder.Kubeconfig() == kubeconfig)
	return folder
}

// away restarts the API server and takes a node away for a while: that costs trials of the builds that were under way, and the run waits for
// them and goes on.
func away(t *testing.T, c *kube.Cluster, folder supervisor.Folder, at string) {
	t.Helper()
	id, known, before := runOf(t, c), map[string]bool{}, len(trialsSoFar(t, at))
	do := func(what, node, service string) {
		t.Helper()
		if err := folder.Service(what, node, service); err != nil {
			t.Fatal(err)
		}
	}

	awaitBuild(t, c, id, known)
	do("restart", "cp", "kube-apiserver")
	t.Logf("the API server was restarted; 3 more trials are whole after %v", awaitWhole(t, at, len(wholeTrials(t, at))+3))

	awaitBuild(t, c, id, known)
	do("stop", "w2", "kubelet")
	back := sync.OnceFunc(func() { do("start", "w2", "kubelet") })
	t.Cleanup(back)
	awaitNode(t, c, "w2", corev1.ConditionUnknown)
	whole := len(wholeTrials(t, at))
	back()
	awaitNode(t, c, "w2", corev1.ConditionTrue)
	t.Logf("the node was back; 3 more trials are whole after %v", awaitWhole(t, at, whole+3))

	if !slices.ContainsFunc(trialsSoFar(t, at)[before:], func(tr result.Trial) bool { return tr.Failed != "" }) {
		t.Error("no trial failed while the API server or a node was away: this test does nothing")
	}
}

// awaitNode waits until a node is ready, or not.
func awaitNode(t *testing.T, c *kube.Cluster, name string, ready corev1.ConditionStatus) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		node, err := c.API.Nodes.Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && slices.ContainsFunc(node.Status.Conditions, func(n corev1.NodeCondition) bool {
			return n.Type == corev1.NodeReady && n.Status == ready
		}) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v node %s is not as wanted (ready: %s), %v", patience, name, ready, err)
		}
	}
}

// trialsSoFar returns the trials of a run under way.
func trialsSoFar(t *testing.T, dir string) []result.Trial {
	t.Helper()
	contents, err := result.LoadTrials(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return contents.Trials
}

// wholeTrials returns the trials of a run under way that did not fail.
func wholeTrials(t *testing.T, dir string) []result.Trial {
	t.Helper()
	return slices.DeleteFunc(trialsSoFar(t, dir), func(tr result.Trial) bool { return tr.Failed != "" })
}

// awaitWhole waits until so many trials of a run are whole.
func awaitWhole(t *testing.T, dir string, atLeast int) time.Duration {
	t.Helper()
	began := time.Now()
	for len(wholeTrials(t, dir)) < atLeast {
		if time.Since(began) > clusterPatience {
			t.Fatalf("after %v %d trials are whole, want %d", clusterPatience, len(wholeTrials(t, dir)), atLeast)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(began).Round(100 * time.Millisecond)
}

// A cluster that never answers is no reason to wait: it is said at once which address was asked, and what to do.
func TestNoClusterAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "kubeconfig"), `apiVersion: v1
kind: Config
clusters: [{name: away, cluster: {server: "https://`+at+`"}}]
users: [{name: somebody, user: {token: x}}]
contexts: [{name: away, context: {cluster: away, user: somebody}}]
current-context: away
`)
	for _, verb := range [][]string{
		{"run", "kubernetes", "--base-image", "busybox:1"}, {"cleanup", "--testbed", "kubernetes"}, {"doctor", "--testbed", "kubernetes"},
		{"fleet", "--testbed", "kubernetes", "--base-image", "busybox:1"}, {"pairs", "--testbed", "kubernetes", "--base-image", "busybox:1"},
	} {
		began := time.Now()
		e := call(t, dir, statusFailed, append(verb, "--kubeconfig", "kubeconfig")...)
		if said := e.stderr; !strings.Contains(said, "ask the API server of away at https://"+at) || !strings.Contains(said, "start the cluster, or choose another with --context") || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: %s", verb[0], said)
		}
		if took := time.Since(began); took > patience/4 {
			t.Errorf("%s: it took %v", verb[0], took)
		}
	}
}
