package change_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"netdelta/internal/owner"
	"netdelta/internal/require"
	"netdelta/testbed"
	"netdelta/testbed/kube"
	"netdelta/testbed/kube/change"
	"netdelta/testbed/kube/kubetest"
)

// site is where changes are tried: a cluster of which only the objects exist, and folders.
type site struct {
	cluster            *kube.Cluster
	state, folder, log string
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{
		cluster: &kube.Cluster{API: kubetest.API(t), REST: &rest.Config{Host: "https://192.0.2.1"}, Name: "here", Namespace: "default"},
		state:   filepath.Join(dir, "state"), folder: filepath.Join(dir, "run"), log: filepath.Join(dir, "log"),
	}
	t.Setenv("LOG", s.log)
	t.Setenv("STATE", s.state)
	return s
}

func (s *site) changer(t *testing.T, run string) *change.Changer {
	t.Helper()
	c, err := change.New(s.cluster, change.Options{Run: run, Folder: s.folder, State: s.state, Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// lines are what commands have written so far.
func (s *site) lines(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(s.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(data)), " ")
}

// recorded are the records on disk.
func (s *site) recorded(t *testing.T) int {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(s.state, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(s.folder, change.FolderFile)); err == nil {
		all = append(all, s.folder)
	}
	return len(all)
}

func (s *site) lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	l, err := s.cluster.API.Leases("default").Get(t.Context(), change.LeaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func sh(scripts ...string) []testbed.Action {
	var all []testbed.Action
	for _, s := range scripts {
		all = append(all, testbed.Action{Command: []string{"sh", "-c", s}})
	}
	return all
}

func TestChangeAndRestore(t *testing.T) {
	s := newSite(t)
	c := s.changer(t, "first")
	what := testbed.Change{
		Network: "vxlan", Within: 10 * time.Second,
		// The record must be there before the first command is.
		Apply:   sh(`test -n "$(ls $STATE)" && echo recorded >> $LOG`, `echo two >> $LOG`),
		Ready:   sh(`echo asked >> $LOG; test $(grep -c asked $LOG) -ge 2`),
		Restore: sh(`echo undone >> $LOG`),
		Settle:  sh(`echo settled >> $LOG`),
	}
	if err := c.Apply(t.Context(), what); err != nil {
		t.Fatal(err)
	}
	if got := s.lines(t); got != "recorded two asked asked settled" {
		t.Errorf("the commands wrote %q", got)
	}
	l := s.lease(t)
	if s.recorded(t) != 2 || l == nil || l.Annotations["netdelta.dev/changed-for"] != "vxlan" || !strings.Contains(l.Annotations["netdelta.dev/restore"], "undone") {
		t.Errorf("%d records, lease %+v", s.recorded(t), l)
	}
	if err := c.Apply(t.Context(), what); err == nil {
		t.Error("a change is made over another")
	}
	if err := c.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l := s.lease(t); s.recorded(t) != 0 || l == nil || l.Annotations["netdelta.dev/changed-for"] != "" {
		t.Errorf("after restoring: %d records, lease %+v", s.recorded(t), l)
	}
	if err := errors.Join(c.Restore(t.Context()), c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	if got := s.lines(t); got != "recorded two asked asked settled undone settled" || s.lease(t) != nil {
		t.Errorf("at the end: %q, lease %v", got, s.lease(t))
	}
}

// What is wrong with any part of a change is found before anything is done.
func TestBadChangeChangesNothing(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) []testbed.Action {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []testbed.Action{{Manifest: path}}
	}
	for want, restore := range map[string][]testbed.Action{
		`no program "no-such-program"`: {{Command: []string{"no-such-program"}}},
		"no such file":                 {{Manifest: filepath.Join(dir, "missing.yaml")}},
		"document 1 is no object":      file("list.yaml", "- a\n"),
		"has no apiVersion":            file("kind.yaml", "kind: Pod\n"),
		"has no metadata.name":         file("name.yaml", "apiVersion: v1\nkind: Pod\n"),
		"has no object":                file("empty.yaml", "# nothing\n---\n"),
		"document 2":                   file("second.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n: :\n"),
	} {
		s := newSite(t)
		c := s.changer(t, "bad")
		err := c.Apply(t.Context(), testbed.Change{Network: "n", Within: time.Second, Apply: sh("echo x >> $LOG"), Restore: restore})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "network n, restore") {
			t.Errorf("want %s, have %v", want, err)
		}
		if s.lines(t) != "" || s.recorded(t) != 0 || s.lease(t) != nil {
			t.Errorf("%s: something was done", want)
		}
	}
}

func TestChangeThatFailsCanBeUndone(t *testing.T) {
	for name, c := range map[string]struct {
		change testbed.Change
		want   []string
	}{
		"apply":     {testbed.Change{Apply: sh("echo half >> $LOG", "echo out; echo err >&2; exit 3", "echo never >> $LOG")}, []string{"sh -c 'echo out;", "exit status 3", "out; err"}},
		"not ready": {testbed.Change{Apply: sh("true"), Ready: sh("echo no rollout; exit 1")}, []string{"1s", "no rollout"}},
		"hangs":     {testbed.Change{Apply: sh("exec sleep 1000")}, []string{"longer than 1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			made := s.changer(t, "failing")
			c.change.Network, c.change.Within, c.change.Restore = "vxlan", time.Second, sh("echo undone >> $LOG")
			err := made.Apply(t.Context(), c.change)
			for _, want := range append(c.want, "network vxlan") {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("want %q, have %v", want, err)
				}
			}
			if err := errors.Join(made.Restore(t.Context()), made.Close()); err != nil || strings.TrimPrefix(s.lines(t), "half ") != "undone" || s.recorded(t) != 0 {
				t.Errorf("%v: %q, %d records", err, s.lines(t), s.recorded(t))
			}
		})
	}
}

// A run that is interrupted ends its command and what that has started, and restores.
func TestInterruptedCommand(t *testing.T) {
	s := newSite(t)
	c := s.changer(t, "interrupted")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		if err := require.Await(time.Minute, "the command has begun", func() error {
			if s.lines(t) == "" && ctx.Err() == nil {
				return errors.New("it has written nothing")
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}()
	err := c.Apply(ctx, testbed.Change{
		Network: "vxlan", Within: time.Minute, Apply: sh("sleep 1000 & echo $! >> $LOG; wait"), Restore: sh("echo undone >> $LOG"),
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if err := errors.Join(c.Restore(t.Context()), c.Close()); err != nil {
		t.Error(err)
	}
	pid, last, _ := strings.Cut(s.lines(t), " ")
	if last != "undone" {
		t.Errorf("the commands wrote %q", s.lines(t))
	}
	id, err := strconv.Atoi(pid)
	require.NoError(t, err)
	require.Ended(t, 10*time.Second, id)
}

// A cluster that can't be restored is named with what has to be done, and stays recorded; no other run may change it.
func TestRestoreThatFails(t *testing.T) {
	s := newSite(t)
	c := s.changer(t, "stuck")
	if err := c.Apply(t.Context(), testbed.Change{
		Network: "vxlan", Within: time.Minute, Apply: sh("true"), Restore: sh("echo one >> $LOG; exit 1", `echo "it's" >> $LOG`),
	}); err != nil {
		t.Fatal(err)
	}
	err := c.Restore(t.Context())
	var left *testbed.RestoreError
	if !errors.As(err, &left) || left.Network != "vxlan" {
		t.Fatalf("a restore that fails: %v", err)
	}
	if want := "\n  sh -c 'echo one >> $LOG; exit 1'\n  sh -c 'echo \"it'\\''s\" >> $LOG'"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v\ndoes not end with%s", err, want)
	}
	if got := s.lines(t); got != "one one one it's" {
		t.Errorf("the commands wrote %q: the failing one is tried three times, and the next all the same", got)
	}
	if err := c.Close(); err != nil || s.recorded(t) != 2 {
		t.Errorf("%v, %d records", err, s.recorded(t))
	}
	s.age(t)
	other := s.changer(t, "other")
	var held *change.HeldError
	err = other.Apply(t.Context(), testbed.Change{Network: "n", Within: time.Second, Apply: sh("true"), Restore: sh("true")})
	if !errors.As(err, &held) || !held.Gone || held.Run != "stuck" || !strings.Contains(err.Error(), "netdelta cleanup") || !strings.Contains(err.Error(), "echo one") {
		t.Errorf("another run: %v", err)
	}
}

// age makes the Lease one that was not renewed for long, of another program.
func (s *site) age(t *testing.T) {
	t.Helper()
	l := s.lease(t)
	long, other := metav1.NewMicroTime(time.Now().Add(-time.Hour)), "somebody"
	l.Spec.RenewTime, l.Spec.HolderIdentity = &long, &other
	if _, err := s.cluster.API.Leases("default").Update(t.Context(), l, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestTwoRunsAtOnce(t *testing.T) {
	s := newSite(t)
	first := s.changer(t, "first")
	nothing := testbed.Change{Network: "n", Within: time.Minute, Apply: sh("true"), Restore: sh("true")}
	if err := first.Apply(t.Context(), nothing); err != nil {
		t.Fatal(err)
	}
	if err := first.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Another program holds it: the same lease as seen from there.
	l := s.lease(t)
	other := "somebody"
	l.Spec.HolderIdentity = &other
	if _, err := s.cluster.API.Leases("default").Update(t.Context(), l, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	second := s.changer(t, "second")
	var held *change.HeldError
	if err := second.Apply(t.Context(), nothing); !errors.As(err, &held) || !errors.Is(err, testbed.ErrHeld) || held.Gone || !strings.Contains(err.Error(), `run "first"`) {
		t.Errorf("a second run: %v", err)
	}
	if err := first.Apply(t.Context(), nothing); !errors.As(err, &held) {
		t.Errorf("the first run, when its lease is lost: %v", err)
	}
	// One that is gone and has left nothing changed blocks no other run.
	s.age(t)
	if err := second.Apply(t.Context(), nothing); err != nil {
		t.Errorf("after the first run is gone: %v", err)
	}
	if err := errors.Join(second.Restore(t.Context()), second.Close(), first.Close()); err != nil || s.lease(t) != nil {
		t.Errorf("%v, lease %v", err, s.lease(t))
	}
}

// What a killed run has changed is undone from the record alone; what a running one has is left alone.
func TestRecover(t *testing.T) {
	s := newSite(t)
	c := s.changer(t, "killed")
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	s.cluster.REST.Host = server.URL
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts: [{name: here, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: %q}}]\n", server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	if err := c.Apply(t.Context(), testbed.Change{Network: "vxlan", Within: time.Minute, Apply: sh("true"), Restore: sh("echo $KUBECONFIG undone >> $LOG")}); err != nil {
		t.Fatal(err)
	}
	if done, err := change.Recover(t.Context(), s.state, os.Stderr); err != nil || len(done) != 0 || s.lines(t) != "" {
		t.Errorf("of a run that is under way: %v, %v, %q", done, err, s.lines(t))
	}
	s.orphan(t)
	t.Setenv("KUBECONFIG", "/elsewhere")
	if _, err := change.Recover(t.Context(), s.state, os.Stderr); err == nil || !strings.Contains(err.Error(), "KUBECONFIG="+kubeconfig) || !strings.Contains(err.Error(), "undone") {
		t.Errorf("with another kubeconfig: %v", err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	done, err := change.Recover(t.Context(), s.state, os.Stderr)
	if err != nil || len(done) != 1 || done[0].Run != "killed" || s.lines(t) != kubeconfig+" undone" {
		t.Errorf("of a killed run: %v, %v, %q", done, err, s.lines(t))
	}
	if n := s.recorded(t); n != 0 {
		t.Errorf("%d records are left of what is undone", n)
	}
	if done, err := change.Recover(t.Context(), s.state, os.Stderr); err != nil || len(done) != 0 {
		t.Errorf("once more: %v, %v", done, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// orphan makes the one record, and its copy, belong to a program that is gone.
func (s *site) orphan(t *testing.T) {
	t.Helper()
	self, err := owner.Self()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.state, self.String()+".json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var record map[string]any
	if err := json.Unmarshal(data, &record); err != nil {
		t.Fatal(err)
	}
	self.Start++ // its number belongs to another program now
	record["owner"] = self.String()
	if data, err = json.Marshal(record); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(s.state, self.String()+".json"), filepath.Join(s.folder, change.FolderFile)} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// What a change leaves on nodes when it is undone is said once, by the change and the node; what goes a moment later is not.
func TestLeftOnNodes(t *testing.T) {
	s := newSite(t)
	stands := map[string][]string{"w1": {"device eth0", "route a"}, "w2": {"device eth0"}}
	reads := 0
	c, err := change.New(s.cluster, change.Options{
		Run: "leaves", Folder: s.folder, State: s.state, Namespace: "default",
		Standing: func(context.Context) (map[string][]string, error) {
			now := map[string][]string{}
			for node, names := range stands {
				now[node] = append([]string(nil), names...)
			}
			if reads++; reads == 2 { // right after the first change was undone
				now["w2"] = append(now["w2"], "device going")
			}
			return now, nil
		},
		Foreign: func(_ context.Context, standing map[string][]string) []string {
			return []string{fmt.Sprintf("of others on %d nodes", len(standing))}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	visit := func(network string) {
		t.Helper()
		c.Watch(t.Context())
		err := c.Apply(t.Context(), testbed.Change{Network: network, Within: time.Minute, Apply: sh("true"), Restore: sh("true")})
		if err := errors.Join(err, c.Restore(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	visit("clean")
	if left := c.Left(); len(left) != 1 || left[0] != "of others on 2 nodes" {
		t.Errorf("left by a change that leaves nothing: %q", left)
	}
	stands["w1"] = []string{"device eth0", "device flannel.1"}
	visit("leaky")
	visit("clean")
	want := []string{
		"of others on 2 nodes",
		"the cluster is not as it was before network leaky, though that was undone: there is now on node w1: device flannel.1",
		"the cluster is not as it was before network leaky, though that was undone: there is no longer on node w1: route a",
	}
	if left := c.Left(); !slices.Equal(left, want) {
		t.Errorf("left are %q", left)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
