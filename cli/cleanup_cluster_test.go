package cli_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The pods of a killed run end by themselves, and cleanup removes what is left. Most of the time this waits for a lease to end: by the
// name of its file it begins among the first.
func TestKilledOnCluster(t *testing.T) {
	t.Parallel()
	c, flags := inNamespace(t)
	dir := clusterFolder(t)
	run := begin(t, longCommand(t, dir, append([]string{"run", "long.yaml", "--builds", "500", "--out", "run"}, flags...)...))
	awaitTrials(t, filepath.Join(dir, "run"), 3)
	awaitPods(t, c, patience, func(pods []corev1.Pod) bool { return slices.ContainsFunc(pods, measuredPod) })
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, run)
	began := time.Now()
	awaitPods(t, c, patience, func(pods []corev1.Pod) bool {
		return !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	})
	t.Logf("the pods ended within %v", time.Since(began).Round(time.Second))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for ctx.Err() == nil { // as long as its lease is fresh the run may still be under way
		call(t, dir, statusDone, append([]string{"cleanup"}, withoutImage(flags)...)...)
		if len(podsOf(t, c)) == 0 {
			break
		}
		time.Sleep(2 * time.Second)
	}
	if left := podsOf(t, c); len(left) > 0 {
		t.Errorf("cleanup left %d pods", len(left))
	}
	finish(t, longCommand(t, dir, "run", "--resume", "run", "--builds", "2", "--time-budget", "3m")).want(t, statusDone)
}
