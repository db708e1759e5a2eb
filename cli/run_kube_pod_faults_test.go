package cli_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"netdelta/testbed"
	"netdelta/testbed/kube"
	"netdelta/testbed/kube/kubetest"
)

// fault is something that befalls a build under way.
type fault struct {
	name string
	// befall is told of a pod of the build, and returns its name if it is the victim.
	befall func(t *testing.T, pod string) (victim string)
	// says are the words of which each trial that it cost has one.
	says []string
}

// Pods that are evicted or run out of memory, streams that are cut and a node on which everything dies cost trials of the build that was under
// way, by the name that Kubernetes has for it; the run goes on with fresh pods, also once the API server and a node were away.
func TestFaultsOnCluster(t *testing.T) {
	folder := ownCluster(t)
	c, flags := inNamespace(t)
	dir := clusterFolder(t)
	run := begin(t, longCommand(t, dir, append([]string{"run", "long.yaml", "--builds", "500", "--rounds", "200", "--memory", "96Mi", "--out", "run"}, flags...)...))
	at := filepath.Join(dir, "run")
	awaitWhole(t, at, 3)
	for _, f := range []fault{
		{"eviction", func(t *testing.T, pod string) string { return evict(t, c, pod) }, []string{"taken away: EvictionByEvictionAPI"}},
		{"memory", func(t *testing.T, pod string) string { return starve(t, c, pod) }, []string{"OOMKilled", "used up its memory"}},
		{"streams", func(t *testing.T, _ string) string {
			if err := folder.Service("restart", "w1", "containerd"); err != nil {
				t.Fatal(err)
			}
			return ""
		}, []string{"its stream was cut"}},
		{"node", func(t *testing.T, _ string) string { killNode(t, "w2"); return "" }, []string{"its pod", "its container", "its stream was cut"}},
	} {
		pod := underWay(t, c, at)
		before := len(trialsSoFar(t, at))
		victim := f.befall(t, pod)
		reached := awaitWhole(t, at, len(wholeTrials(t, at))+podsOfBuild/2)
		costs := 0
		for _, tr := range trialsSoFar(t, at)[before:] {
			if tr.Failed == "" {
				continue
			}
			costs++
			if !strings.Contains(tr.Failed, victim) || !slices.ContainsFunc(f.says, func(s string) bool { return strings.Contains(tr.Failed, s) }) {
				t.Errorf("%s of %s: %s failed: %s", f.name, victim, tr.ID(), tr.Failed)
			}
		}
		if costs == 0 {
			t.Errorf("%s: no trial failed: this test does nothing", f.name)
		}
		t.Logf("%s: it cost %d trials, and 3 others were whole after %v", f.name, costs, reached)
	}
	away(t, c, folder, at)
	if err := run.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	await(t, run).want(t, statusInterrupted)
	sound(t, at)
	nothingLeft(t, c)
}

// underWay waits until bursts of a build are being measured: the client with a network of its own has sent far more in it than the first
// bursts of a connection take. It returns that client's pod, which may have served builds before.
func underWay(t *testing.T, c *kube.Cluster, dir string) (client string) {
	t.Helper()
	const many = 3000
	builds, sent := -1, 0
	for began := time.Now(); ; time.Sleep(300 * time.Millisecond) { // each look is a process in a pod
		pod, done := presentClient(t, c), len(trialsSoFar(t, dir))
		switch now := segments(t, c, pod); {
		case pod == "" || pod != client || done != builds || now < sent:
			client, builds, sent = pod, done, now
		case now > sent+many:
			return client
		}
		if time.Since(began) > clusterPatience {
			t.Fatalf("after %v pod %q has sent fewer than %d segments in one build", clusterPatience, client, many)
		}
	}
}

// presentClient is the client with a network of its own that was made last, "" while there is none: testbeds are numbered throughout the run.
func presentClient(t *testing.T, c *kube.Cluster) (client string) {
	t.Helper()
	last := -1
	for _, p := range podsOf(t, c) {
		bed, err := strconv.Atoi(p.Labels[kube.LabelTestbed])
		if err == nil && bed > last && p.Labels[kube.LabelRole] == string(kube.RoleClient) && !p.Spec.HostNetwork &&
			p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			client, last = p.Name, bed
		}
	}
	return client
}

// segments returns how many TCP segments a pod has sent so far; 0 while it can't be asked.
func segments(t *testing.T, c *kube.Cluster, pod string) int {
	t.Helper()
	if pod == "" {
		return 0
	}
	p, err := execIn(t, c, pod, "grep Tcp: /proc/net/snmp")
	if err != nil {
		return 0
	}
	text, err := io.ReadAll(p)
	fields := strings.Fields(string(text)) // the names, and as many numbers
	at := slices.Index(fields, "OutSegs")
	if err = errors.Join(err, p.Close()); err != nil || at < 0 {
		t.Fatalf("ask %s how much it has sent: %v: %s", pod, err, text)
	}
	sent, err := strconv.Atoi(fields[len(fields)/2+at])
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

// execIn runs a command of the shell in a pod of a run.
func execIn(t *testing.T, c *kube.Cluster, pod, command string) (testbed.Process, error) {
	t.Helper()
	program := "/opt/netdelta/netdelta"
	if os.Getenv(readyImage) != "" {
		program = "/netdelta"
	}
	return kube.Exec(t.Context(), c, kube.ContainerRef{Namespace: c.Namespace, Pod: pod, Container: "netdelta", Program: program},
		testbed.Command{Path: "/bin/sh", Args: []string{"-c", command}})
}

// evict has a pod evicted, and returns its name.
func evict(t *testing.T, c *kube.Cluster, name string) string {
	t.Helper()
	if err := kubetest.Evict(t.Context(), c.API, c.Namespace, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// starve has the kernel kill a pod's programs for want of memory: a folder that is kept in memory is filled, and who fills it is the
// smallest of them. It returns the pod's name.
func starve(t *testing.T, c *kube.Cluster, name string) string {
	t.Helper()
	p, err := execIn(t, c, name, "exec cat /dev/zero >/run/netdelta/full")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("filling the memory of %s ended: %v", name, p.Wait())
	return name
}

// killNode kills all programs of a node but its first, which restarts the cluster's programs.
func killNode(t *testing.T, node string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "run", "netdelta/extras/cluster", "node", node, "sh", "-c", "kill -9 -1").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// nothingLeft says that a run has left nothing in the namespace.
func nothingLeft(t *testing.T, c *kube.Cluster) {
	t.Helper()
	o := metav1.ListOptions{LabelSelector: kube.SelectAll}
	pods, err := c.API.Pods(c.Namespace).List(t.Context(), o)
	if err != nil || len(pods.Items) > 0 {
		t.Errorf("%d pods are left, %v", len(pods.Items), err)
	}
	services, err := c.API.Services(c.Namespace).List(t.Context(), o)
	if err != nil || len(services.Items) > 0 {
		t.Errorf("%d services are left, %v", len(services.Items), err)
	}
	leases, err := c.API.Leases(c.Namespace).List(t.Context(), o)
	if err != nil || len(leases.Items) > 0 {
		t.Errorf("%d leases are left, %v", len(leases.Items), err)
	}
}

// Two runs share a namespace: both are measured, and the end of one takes nothing of the other's.
func TestSideBySideOnCluster(t *testing.T) {
	t.Parallel()
	c, flags := inNamespace(t)
	var runs []*exec.Cmd
	var folders []string
	for range 2 {
		dir := clusterFolder(t)
		folders = append(folders, filepath.Join(dir, "run"))
		runs = append(runs, begin(t, longCommand(t, dir, append([]string{"run", "long.yaml", "--builds", "500", "--out", "run"}, flags...)...)))
	}
	for _, at := range folders {
		awaitWhole(t, at, 3)
	}
	for i, run := range runs {
		if i > 0 { // it has gone on
			awaitWhole(t, folders[i], len(wholeTrials(t, folders[i]))+3)
		}
		if err := run.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		await(t, run).want(t, statusInterrupted)
		if all, whole := trials(t, folders[i]), wholeTrials(t, folders[i]); len(whole) < len(all) {
			t.Errorf("%d of %d trials of run %d failed", len(all)-len(whole), len(all), i)
		}
		sound(t, folders[i])
	}
	nothingLeft(t, c)
}

// A pod that somebody holds by a finalizer is named with it, with what to do, by the run that made it and by cleanup; neither hangs.
func TestFinalizerOnCluster(t *testing.T) {
	t.Parallel()
	c, flags := inNamespace(t)
	dir := clusterFolder(t)
	run := begin(t, longCommand(t, dir, append([]string{"run", "long.yaml", "--builds", "500", "--out", "run"}, flags...)...))
	awaitTrials(t, filepath.Join(dir, "run"), 3)
	pods := awaitPods(t, c, clusterPatience, func(pods []corev1.Pod) bool { return slices.ContainsFunc(pods, measuredPod) })
	held := pods[slices.IndexFunc(pods, measuredPod)].Name
	finalize := func(list string) {
		t.Helper()
		patch := []byte(`{"metadata":{"finalizers":` + list + `}}`)
		if _, err := c.API.Pods(c.Namespace).Patch(t.Context(), held, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	finalize(`["netdelta.test/held"]`)
	if err := run.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	await(t, run).want(t, statusInterrupted).says(t, held, "netdelta.test/held", "--type=merge")
	sound(t, filepath.Join(dir, "run"))
	call(t, dir, statusFailed, append([]string{"cleanup"}, withoutImage(flags)...)...).says(t, held, "netdelta.test/held", "--type=merge")
	finalize(`null`)
	awaitPods(t, c, patience, func(pods []corev1.Pod) bool { return len(pods) == 0 })
	call(t, dir, statusDone, append([]string{"cleanup"}, withoutImage(flags)...)...)
	nothingLeft(t, c)
}
