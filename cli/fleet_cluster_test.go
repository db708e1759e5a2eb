package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	insight "netdelta/insight/fleet"
	pairsinsight "netdelta/insight/pairs"
	"netdelta/internal/require"
	"netdelta/testbed/kube"
)

// imageOfCluster is one with a shell that the cluster for tests has.
const imageOfCluster = "localhost/netdelta/base:1"

// readyImage is the variable that names an image that the cluster for tests has, with the programs that workloads run and the very
// program under test. Without it that is streamed.
const readyImage = "NETDELTA_IMAGE"

// inNamespace is the cluster for tests with a namespace of this test, and the flags of a call that is about it.
func inNamespace(t *testing.T) (*kube.Cluster, []string) {
	t.Helper()
	kubeconfig := require.Cluster(t)
	c, err := kube.Connect(kube.Config{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	made, err := c.API.Namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "scale-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Namespace = made.Name
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		left, err := c.API.Pods(made.Name).List(ctx, metav1.ListOptions{LabelSelector: kube.SelectAll})
		if err != nil || len(left.Items) > 0 {
			t.Errorf("%d pods are left: %v", len(left.Items), err)
		}
		if err := c.API.Namespaces.Delete(ctx, made.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	flags := []string{"--testbed", "kubernetes", "--kubeconfig", kubeconfig, "--namespace", made.Name}
	if ready := os.Getenv(readyImage); ready != "" {
		return c, append(flags, "--image", ready)
	}
	return c, append(flags, "--base-image", imageOfCluster)
}

// withoutImage are the flags that inNamespace returns but for the image of pods.
func withoutImage(flags []string) []string { return slices.Clone(flags[:len(flags)-2]) }

// streaming are the flags that inNamespace returns for a run that streams the program into its pods, which takes longer.
func streaming(flags []string, image string) []string {
	return append(withoutImage(flags), "--base-image", image)
}

// onCluster is a call that may take as long as a busy cluster takes to start pods.
func onCluster(t *testing.T, status int, args ...string) ending {
	t.Helper()
	return finish(t, longCommand(t, t.TempDir(), args...)).want(t, status)
}

// Twenty pods of an Indexed Job fire together.
func TestFleetOnCluster(t *testing.T) {
	t.Parallel()
	_, flags := inNamespace(t)
	e := onCluster(t, statusDone, append([]string{
		"fleet", "--clients", "20", "--servers", "2", "--networks", "pod", "--builds", "1", "--duration", "2s", "--json",
	}, flags...)...)
	var r insight.Report
	if err := json.Unmarshal([]byte(e.stdout), &r); err != nil {
		t.Fatal(err)
	}
	for _, n := range r.Networks {
		if n.Failed > 0 || len(n.Bursts) != 4 {
			t.Fatalf("%s: %d failed: %+v; %d bursts", n.Network, n.Failed, n.Failures, len(n.Bursts))
		}
		for _, v := range n.Bursts {
			if v.Clients != 20 || v.Rate <= 0 {
				t.Errorf("%s: a burst of %+v", n.Network, v)
			}
		}
		t.Logf("%s: pods after %v, armed after %v, late %+v, clocks +-%v, p50 %v", n.Network, n.Builds[0].Pods, n.Builds[0].Armed, *n.Late, n.ClockError, n.Latency.P50)
	}
}

// Fleets in the nodes' own namespaces, through a service, and through the nodes' ports.
func TestFleetInNodesOnCluster(t *testing.T) {
	t.Parallel()
	_, flags := inNamespace(t)
	onCluster(t, statusDone, append([]string{
		"fleet", "--clients", "2", "--networks", "host,clusterip,nodeport", "--builds", "1", "--duration", "500ms",
	}, flags...)...).shows(t, "host (A/A control)", "clusterip: pods after", "nodeport: pods after", "2 clients against 1 server")
	onCluster(t, statusNothing, append([]string{"fleet", "--clients", "2", "--networks", "headless", "--builds", "1"}, flags...)...)
}

// heard is what a program says while it runs.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(b)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// One pod that is deleted in the middle costs its own part and is named; the others fire to the end.
func TestFleetLosesAPodOnCluster(t *testing.T) {
	t.Parallel()
	c, flags := inNamespace(t)
	cmd := longCommand(t, t.TempDir(), append([]string{
		"fleet", "--clients", "4", "--networks", "pod", "--builds", "1", "--duration", "20s", "--json",
	}, flags...)...)
	var said heard
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); !strings.Contains(said.String(), "clients armed"); time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > 2*time.Minute {
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
			t.Fatalf("the fleet was not armed: %s", said.String())
		}
	}
	pods, err := c.API.Pods(c.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: kube.LabelRole + "=" + string(kube.RoleClient)})
	if err != nil || len(pods.Items) != 4 {
		t.Errorf("%d pods of clients, %v", len(pods.Items), err)
	}
	victim := pods.Items[0].Name
	now := int64(0)
	if err := c.API.Pods(c.Namespace).Delete(t.Context(), victim, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // its status is looked at below
	if status := cmd.ProcessState.ExitCode(); status != statusFailed {
		t.Errorf("status %d: %s", status, said.String())
	}
	var r insight.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	n := r.Networks[0]
	if n.Failed != 1 || n.Failures[0].Pod != victim || n.Builds[0].Clients != 3 || n.Bursts[len(n.Bursts)-1].Clients != 3 {
		t.Errorf("%d failed: %+v, builds %+v", n.Failed, n.Failures, n.Builds)
	}
	t.Log(n.Failures)
}

func TestPairsOnCluster(t *testing.T) {
	t.Parallel()
	_, flags := inNamespace(t)
	e := onCluster(t, statusDone, append([]string{"pairs", "--networks", "host,pod", "--builds", "2", "--rounds", "5", "--json"}, flags...)...)
	var r pairsinsight.Report
	if err := json.Unmarshal([]byte(e.stdout), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Nodes) < 2 || len(r.Judged) != 2 {
		t.Fatalf("nodes %v, %d networks", r.Nodes, len(r.Judged))
	}
	for i, n := range r.Judged {
		if want := len(r.Nodes) * (len(r.Nodes) - 1); len(n.Pairs) != want || len(r.Networks[i].Failures) > 0 {
			t.Errorf("%s: %d pairs, want %d; failures %+v", n.Network, len(n.Pairs), want, r.Networks[i].Failures)
		}
	}
}
