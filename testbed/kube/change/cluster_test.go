package change_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/internal/require"
	"netdelta/testbed"
	"netdelta/testbed/kube"
	"netdelta/testbed/kube/change"
)

// onCluster is a site on a real cluster, in a namespace of its own that also has the Lease.
func onCluster(t *testing.T) (*site, kube.Config) {
	t.Helper()
	config := kube.Config{Kubeconfig: require.Cluster(t), Namespace: fmt.Sprintf("changes-%d", time.Now().UnixNano())}
	cluster, err := kube.Connect(config)
	if err != nil {
		t.Fatal(err)
	}
	namespaces := cluster.API.Namespaces
	if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: config.Namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := namespaces.Delete(context.Background(), config.Namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	s := &site{cluster: cluster, state: filepath.Join(dir, "state"), folder: filepath.Join(dir, "run"), log: filepath.Join(dir, "log")}
	t.Setenv("LOG", s.log)
	return s, config
}

// manifest brings a kind and an object of it, and an object that was there before.
const manifest = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.%[1]s.example.org}
spec:
  group: %[1]s.example.org
  scope: Cluster
  names: {plural: things, singular: thing, kind: Thing}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
# nothing
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: vxlan}
`

// Objects are applied, over fields that others own too, and deleted; what stood before the change stands after it.
func TestManifestsOnCluster(t *testing.T) {
	s, config := onCluster(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	maps := s.cluster.API.ConfigMaps(config.Namespace)
	before := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"mode": "host-gw", "mtu": "1500"}}
	if _, err := maps.Create(t.Context(), before, metav1.CreateOptions{FieldManager: "somebody"}); err != nil {
		t.Fatal(err)
	}
	crd := fmt.Sprintf(manifest, config.Namespace)
	thing := fmt.Sprintf("apiVersion: %s.example.org/v1\nkind: Thing\nmetadata: {name: one}\nspec: {a: 1}\n", config.Namespace)
	made := write("made.yaml", crd)
	kind, _, _ := strings.Cut(crd, "---")
	c := s.changer(t, "manifests")
	err := c.Apply(t.Context(), testbed.Change{
		Network: "vxlan", Within: time.Minute,
		Apply: []testbed.Action{{Manifest: made}},
		// The new kind is served a moment later.
		Ready:   []testbed.Action{{Manifest: write("thing.yaml", thing)}},
		Restore: []testbed.Action{{Delete: write("kind.yaml", kind)}, {Manifest: write("old.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {mode: host-gw}\n")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	mode := func() map[string]string {
		m, err := maps.Get(t.Context(), "settings", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return m.Data
	}
	if m := mode(); m["mode"] != "vxlan" || m["mtu"] != "1500" {
		t.Errorf("under the change: %v", m)
	}
	if err := os.Remove(made); err != nil { // what undoes it was read before
		t.Fatal(err)
	}
	if err := errors.Join(c.Restore(t.Context()), c.Close()); err != nil {
		t.Fatal(err)
	}
	if m := mode(); m["mode"] != "host-gw" || m["mtu"] != "1500" {
		t.Errorf("after it: %v", m)
	}
	if err := s.cluster.API.REST.Get().AbsPath("/apis/" + config.Namespace + ".example.org/v1").Do(t.Context()).Error(); !apierrors.IsNotFound(err) {
		t.Errorf("the kind is still there: %v", err)
	}
}

// A kind that there is not, and an object that the API server refuses, are named.
func TestRefusedManifestsOnCluster(t *testing.T) {
	s, _ := onCluster(t)
	for want, text := range map[string]string{
		"apply Pool default: find the kind crd.example.org": "apiVersion: crd.example.org/v1\nkind: Pool\nmetadata: {name: default}\n",
		"apply ConfigMap Bad_Name: ":                        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_Name}\n",
	} {
		path := filepath.Join(t.TempDir(), "m.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := s.changer(t, "refused")
		err := c.Apply(t.Context(), testbed.Change{Network: "n", Within: time.Minute, Apply: []testbed.Action{{Manifest: path}}, Restore: sh("true")})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, have %v", want, err)
		}
		if err := errors.Join(c.Restore(t.Context()), c.Close()); err != nil {
			t.Error(err)
		}
	}
}

// Two programs that change one cluster: the second is refused as long as the first is there.
func TestTwoRunsOnCluster(t *testing.T) {
	s, config := onCluster(t)
	lease := func(run string) *change.Changer {
		c, err := change.New(s.cluster, change.Options{Run: run, Config: config, State: filepath.Join(s.state, run), Namespace: config.Namespace})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := lease("first")
	nothing := testbed.Change{Network: "n", Within: time.Minute, Apply: sh("true"), Restore: sh("echo undone >> $LOG")}
	if err := first.Apply(t.Context(), nothing); err != nil {
		t.Fatal(err)
	}
	held := second(t, config, "held")
	if !strings.Contains(held, `run "first"`) || !strings.Contains(held, "just now") {
		t.Errorf("a second run: %s", held)
	}
	if err := errors.Join(first.Restore(t.Context()), first.Close()); err != nil {
		t.Fatal(err)
	}
	if said := second(t, config, "killed"); said != "applied" {
		t.Errorf("after the first: %s", said)
	}
	// It was killed: the cluster is still changed, and the record says how that is undone.
	if s.lines(t) != "undone" {
		t.Errorf("the commands wrote %q", s.lines(t))
	}
	var log bytes.Buffer
	done, err := change.Recover(t.Context(), os.Getenv(secondState), &log)
	if err != nil || len(done) != 1 || done[0].Network != "n" || s.lines(t) != "undone recovered" {
		t.Errorf("of a killed run: %v, %v, %q\n%s", done, err, s.lines(t), log.String())
	}
	if _, err := s.cluster.API.Leases(config.Namespace).Get(t.Context(), change.LeaseName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the lease is still there: %v", err)
	}
}

// secondState is the variable with the state folder of the test's binary when it is another run.
const secondState = "CHANGE_TEST_STATE"

// second runs the test's binary as another program that makes a change and is killed by itself; it returns what it said.
func second(t *testing.T, config kube.Config, name string) string {
	t.Helper()
	if os.Getenv(secondState) == "" {
		t.Setenv(secondState, t.TempDir())
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], name)
	cmd.Env = append(os.Environ(), secondRun+"="+config.Kubeconfig+"="+config.Namespace)
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("%s ended by itself", name)
	}
	return strings.TrimSpace(string(out))
}

// secondRun is the variable that makes the test's binary another run.
const secondRun = "CHANGE_TEST_SECOND"

// beSecond makes a change and dies of a signal that can't be caught.
func beSecond(where string) {
	kubeconfig, namespace, _ := strings.Cut(where, "=")
	config := kube.Config{Kubeconfig: kubeconfig, Namespace: namespace}
	cluster, err := kube.Connect(config)
	var c *change.Changer
	if err == nil {
		c, err = change.New(cluster, change.Options{Run: "second", Config: config, State: os.Getenv(secondState), Namespace: namespace})
	}
	if err == nil {
		err = c.Apply(context.Background(), testbed.Change{Network: "n", Within: time.Minute, Apply: sh("true"), Restore: sh("echo recovered >> $LOG")})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("applied")
	self, _ := os.FindProcess(os.Getpid())
	_ = self.Kill()
	select {}
}
