package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed/kube"
	"netdelta/testbed/kube/kubetest"
)

// changingStudy is a study whose networks change the cluster: one whose agents end, one whose change is made by half, and one that leaves what it
// made. Its words are kubectl, the namespace, and the process of a node.
const changingStudy = `study: changing
testbed: {kind: kubernetes}
baseline: pod
networks:
  - pod
  - name: crashing
    apply: [{manifest: flannel.yaml}]
    ready: ["%[1]s -n %[2]s rollout status ds/flannel --timeout=1s"]
    restore: [{delete: flannel.yaml}]
    within: 5s
  - name: half
    apply: [{manifest: half.yaml}, "%[1]s -n %[2]s get configmap none"]
    restore: [{delete: half.yaml}]
  - name: leaky
    apply: ["nsenter --target %[3]d --net iptables -w -t nat -N CILIUM_LEFT", "nsenter --target %[3]d --net ip link add flannel.9 type vxlan id 9 dstport 8499"]
    restore: ["true"]
placement: [cross-node]
workloads: [tcp-rr]
design: {burst: 5ms, blocks: 1, rounds: 5, time_budget: 5m}
`

// changesOf prepares a study of changes on the cluster of make cluster-up, in a namespace of its own.
func changesOf(t *testing.T, study string) (c *kube.Cluster, dir string, flags []string, node int) {
	t.Helper()
	folder := ownCluster(t)
	c, flags = inNamespace(t)
	kubectl := filepath.Join(os.Getenv("NETDELTA_KUBERNETES"), "kubectl")
	_, err := os.Stat(kubectl)
	require.Need(t, "kubectl of the cluster (NETDELTA_KUBERNETES)", err == nil)
	if node, err = folder.NodeProcess("w1"); err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	write(t, filepath.Join(dir, "study.yaml"), fmt.Sprintf(study, kubectl, c.Namespace, node))
	crashing, _ := kubetest.Crashing("flannel")
	write(t, filepath.Join(dir, "flannel.yaml"), crashing)
	write(t, filepath.Join(dir, "half.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: half}\n")
	return c, dir, append(flags, "--trust", "--out", "run"), node
}

// ofChanges runs a call to its end, which remembers changes in the test's own folder.
func ofChanges(t *testing.T, dir string, words ...string) ending {
	t.Helper()
	cmd := longCommand(t, dir, words...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "state"))
	return finish(t, cmd)
}

// An agent of a CNI that ends again and again is named with its last words, and a change that is made by half with the step that failed; both
// are undone, and the other states are measured. What a change leaves on a node is named.
func TestChangesThatFailOnCluster(t *testing.T) {
	c, dir, flags, node := changesOf(t, changingStudy)
	t.Cleanup(func() {
		for _, words := range []string{"iptables -w -t nat -X CILIUM_LEFT", "ip link del flannel.9"} {
			out, err := exec.Command("nsenter", append([]string{"--target", fmt.Sprint(node), "--net"}, strings.Fields(words)...)...).CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v: %s", words, err, out)
			}
		}
	})
	ofChanges(t, dir, append([]string{"run", "study.yaml", "--node-agent"}, flags...)...).
		says(t, "there is now on node w1: chains CILIUM_LEFT of table nat; device flannel.9 with MTU 1500")
	at := filepath.Join(dir, "run")
	_, says := kubetest.Crashing("flannel")
	count := map[string]int{}
	for _, tr := range trials(t, at) {
		network, _, _ := strings.Cut(tr.Cell, "/")
		count[network]++
		words := map[string][]string{
			"crashing": {"rollout status", "pod flannel-", " on w", "flannel ended", says},
			"half":     {"get configmap none", `configmaps "none" not found`},
		}[network]
		if (tr.Failed != "") != (words != nil) || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(tr.Failed, w) }) {
			t.Errorf("%s failed: %q", tr.ID(), tr.Failed)
		}
	}
	if count["pod"] == 0 || count["crashing"] == 0 || count["half"] == 0 || count["leaky"] == 0 {
		t.Errorf("trials by network: %v", count)
	}
	run, err := result.Load(at)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(run.Notes, func(n string) bool {
		return strings.Contains(n, "network leaky") && strings.Contains(n, "flannel.9")
	}) {
		t.Errorf("no note says what was left: %q", run.Notes)
	}
	daemons, err := c.API.DaemonSets(c.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(daemons.Items) > 0 {
		t.Errorf("%d DaemonSets are left, %v", len(daemons.Items), err)
	}
	if m, err := c.API.ConfigMaps(c.Namespace).Get(t.Context(), "half", metav1.GetOptions{}); err == nil {
		t.Errorf("the half of a change is left: %+v", m)
	}
}

// stuckStudy has a network whose change can't be undone as long as there is no file.
const stuckStudy = `study: stuck
testbed: {kind: kubernetes}
baseline: pod
networks: [pod, {name: stuck, apply: [{manifest: half.yaml}], restore: ["test -e there", {delete: half.yaml}]}]
placement: [cross-node]
workloads: [tcp-rr]
design: {burst: 5ms, blocks: 1, rounds: 5, time_budget: 5m}
# %[1]s %[2]s %[3]d
`

// A cluster that can't be restored is named with what is to be done by hand, and cleanup does it once that is possible.
func TestRestoreThatFailsOnCluster(t *testing.T) {
	t.Parallel()
	_, dir, flags, _ := changesOf(t, stuckStudy)
	restore := sync.OnceFunc(func() {
		write(t, filepath.Join(dir, "there"), "")
		ofChanges(t, dir, append([]string{"cleanup"}, withoutImage(flags[:len(flags)-3])...)...).want(t, statusDone)
	})
	t.Cleanup(restore)
	ofChanges(t, dir, append([]string{"run", "study.yaml"}, flags...)...).want(t, statusFailed).
		says(t, "STILL CHANGED as for network stuck", "\n  test -e there\n  kubectl delete --ignore-not-found -f half.yaml")
	if len(trials(t, filepath.Join(dir, "run"))) == 0 {
		t.Error("what was measured is not kept")
	}
	restore()
	if left, err := filepath.Glob(filepath.Join(dir, "state", "netdelta", "changes", "*")); err != nil || len(left) > 0 {
		t.Errorf("records are left: %q, %v", left, err)
	}
}
