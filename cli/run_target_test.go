package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"netdelta/result"
	"netdelta/testbed/kube"
)

// webServer is a server that somebody else runs: busybox's, with a file, and an answer that is none.
const webServer = `mkdir -p /tmp/w/cgi-bin && cd /tmp/w && head -c 5000 /dev/zero >file
printf '#!/bin/sh\necho "Status: 500 Broken"; echo; echo no' >cgi-bin/broken && chmod +x cgi-bin/broken
exec busybox httpd -f -p 8080 -h /tmp/w`

// serveWeb runs it in a pod behind a Service "web" of the namespace, and says on which node it is.
func serveWeb(t *testing.T, c *kube.Cluster) string {
	t.Helper()
	return standing(t, c, 80, 8080, corev1.PodSpec{Containers: []corev1.Container{{
		Name: "web", Image: imageOfCluster, Command: []string{"sh", "-c", webServer},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/file", Port: intstr.FromInt32(8080)}}},
	}}})
}

// standing makes an external server: a pod behind a Service, both named after its container. It waits until the pod is ready and
// returns its node.
func standing(t *testing.T, c *kube.Cluster, port, to int32, spec corev1.PodSpec) string {
	t.Helper()
	grace, name := int64(1), spec.Containers[0].Name
	spec.TerminationGracePeriodSeconds, spec.NodeSelector = &grace, map[string]string{corev1.LabelHostname: "w2"}
	spec.Containers[0].ImagePullPolicy = corev1.PullNever
	probe := spec.Containers[0].ReadinessProbe
	probe.PeriodSeconds, probe.TimeoutSeconds = 1, 60 // a busy machine is no reason to take the server out of its Service
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Spec: spec}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Selector: pod.Labels, Ports: []corev1.ServicePort{{Port: port, TargetPort: intstr.FromInt32(to)}}},
	}
	if _, err := c.API.Pods(c.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.API.Services(c.Namespace).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		now, err := c.API.Pods(c.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, condition := range now.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				return now.Spec.NodeName
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server is not ready: %+v", now.Status)
		}
	}
}

// TestTargetOnCluster measures an external web server, and says what is wrong with one that can't be measured.
func TestTargetOnCluster(t *testing.T) {
	t.Parallel()
	c, flags := inNamespace(t)
	node := serveWeb(t, c)
	at := "http://web." + c.Namespace + ".svc"
	call := func(out, target string, more ...string) []string {
		return append(append([]string{"run", "--quiet", "--builds", "1", "--rounds", "5", "--out", out, "--target", target}, flags...), more...)
	}
	t.Run("measured", func(t *testing.T) {
		dir := t.TempDir()
		finish(t, longCommand(t, dir, call("run", at+"/file", "--factor", "reconnect=false,true")...)).want(t, statusDone).shows(t, "to "+at+"/file", "on one node", "across nodes")
		measuredTarget(t, filepath.Join(dir, "run"), node)
	})
	t.Run("moved", func(t *testing.T) { movedTarget(t, c, at, call) })
	for name, wrong := range map[string]struct{ target, says string }{
		"no such service": {"http://wep." + c.Namespace + ".svc/file", `there is no service "wep"`},
		"broken":          {at + "/cgi-bin/broken", "it answers 500"},
		"not there":       {"http://" + serverAddress(t, c) + ":9/", "nothing listens on this port"},
	} {
		t.Run(name, func(t *testing.T) {
			finish(t, longCommand(t, t.TempDir(), call("run", wrong.target, "--placement", "cross-node")...)).want(t, statusFailed).says(t, wrong.says)
		})
	}
	if left := podsOf(t, c); len(left) > 0 {
		t.Errorf("%d pods are left", len(left))
	}
}

// movedTarget has another pod serve a target while it is measured: that build fails by name, and those after it are measured.
func movedTarget(t *testing.T, c *kube.Cluster, at string, call func(out, target string, more ...string) []string) {
	t.Helper()
	dir := t.TempDir()
	run := begin(t, longCommand(t, dir, call("run", at+"/file", "--networks", "pod", "--baseline", "pod", "--placement", "cross-node", "--builds", "3", "--rounds", "150", "--time-budget", "10m")...))
	underWay(t, c, filepath.Join(dir, "run"))
	pod, err := c.API.Pods(c.Namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	soon := int64(0)
	if err := c.API.Pods(c.Namespace).Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: &soon}); err != nil {
		t.Fatal(err)
	}
	fresh := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: pod.Labels}, Spec: pod.Spec}
	fresh.Spec.NodeName = ""
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if _, err = c.API.Pods(c.Namespace).Create(t.Context(), fresh, metav1.CreateOptions{}); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	await(t, run)
	failed, last := 0, false
	for _, tr := range trials(t, filepath.Join(dir, "run")) {
		if last = tr.Failed == ""; !last {
			failed++
		}
		if !last && !strings.Contains(tr.Failed, "web") {
			t.Errorf("%s failed: %s", tr.ID(), tr.Failed)
		}
	}
	if failed == 0 || !last {
		t.Errorf("%d trials failed; the last was whole: %t", failed, last)
	}
}

// serverAddress is the address of the server's pod.
func serverAddress(t *testing.T, c *kube.Cluster) string {
	t.Helper()
	pod, err := c.API.Pods(c.Namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod.Status.PodIP
}

// measuredTarget checks what a run says of a server on a node.
func measuredTarget(t *testing.T, dir, node string) {
	t.Helper()
	run, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(run.Notes, "\n"); !strings.Contains(notes, "with 5000 bytes") || !strings.Contains(notes, "stands on node "+node) || !strings.Contains(notes, "looked up once") {
		t.Errorf("the notes are %q", run.Notes)
	}
	seen := map[string]int64{}
	for _, tr := range trials(t, dir) {
		if tr.Failed != "" || tr.Errors > 0 {
			t.Errorf("%s: %d errors, %s", tr.ID(), tr.Errors, tr.Failed)
		}
		seen[tr.Cell] += tr.Transactions
	}
	for _, cell := range run.Cells {
		if cell.Unsupported != "" || seen[cell.ID] == 0 {
			t.Errorf("%s: %d requests (%s)", cell.ID, seen[cell.ID], cell.Unsupported)
		}
	}
	if len(run.Cells) != 12 { // two networks and an A/A control, two placements, two ways to connect
		t.Errorf("there are %d cells", len(run.Cells))
	}
}
