package cli_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"netdelta/internal/daemon"
	"netdelta/internal/owner"
	"netdelta/internal/require"
	"netdelta/result"
)

// servedStudy is served by nginx.
const servedStudy = `study: served
question: What does a network cost a web server?
testbed: {kind: lab, nodes: 2}
baseline: host
networks: [host, bridge]
placement: [cross-node]
workloads:
  - http: {file: 1KiB}
design: {burst: 20ms, builds: 40, time_budget: 20s}
`

// A service that hangs costs its cell of a build, by name; the other cells of the build go on, and the run ends in its time.
func stoppedService(c *chaos) {
	t := c.T
	const budget = 20 * time.Second
	_, err := daemon.Look("nginx")
	require.Need(t, "the program nginx", err == nil)
	write(t, filepath.Join(c.dir, "served.yaml"), servedStudy)
	folder := filepath.Join(c.dir, "run")
	cmd := start(t, c.dir, c.run("served.yaml", "--out", "run")...)
	awaitTrials(t, folder, 3)
	began := time.Now()
	stopped := stopOne(t, "nginx", cmd.Process.Pid)
	await(t, cmd).want(t, statusFailed).says(t, "trials failed; they are named above").shows(t, "its service hangs: nginx does not answer")
	c.ended(began)
	whole := 0
	var failed []string
	for _, tr := range trials(t, folder) {
		if tr.Measured() {
			whole++
			continue
		}
		failed = append(failed, tr.Failed)
	}
	run := decode(t, read(t, filepath.Join(folder, result.ResultFile)))
	if !stopped || len(failed) != 1 || whole < 5 || run.Ended == "failed" || c.took > budget+overtime {
		t.Fatalf("one hung: %v; %d trials are whole, and failed:\n%s\nThe run ended %q after %v", stopped, whole, strings.Join(failed, "\n"), run.Ended, c.took)
	}
	c.said = failed[0]
}

// stopOne stops a daemon that a run has started, as soon as there is one: what is there for a moment is asked for its version.
func stopOne(t *testing.T, name string, run int) bool {
	t.Helper()
	return eventually(func() bool {
		all, err := owner.Processes()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			if p.Name != name || p.Owner.PID != run {
				continue
			}
			if time.Sleep(300 * time.Millisecond); syscall.Kill(p.PID, sigstop) == nil {
				return true
			}
		}
		return false
	})
}
