package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netdelta/internal/daemon"
	"netdelta/internal/owner"
	"netdelta/internal/procfile"
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
design: {burst: 20ms, builds: 4, time_budget: 20s}
`

// A service that hangs costs its cell of a build, by name; the other cells of the build go on, and the run ends in its time.
func stoppedService(c *chaos) {
	t := c.T
	const budget = 20 * time.Second // a hung service is waited for for three fifths of it
	_, err := daemon.Look("nginx")
	require.Need(t, "the program nginx", err == nil)
	write(t, filepath.Join(c.dir, "served.yaml"), servedStudy)
	folder := filepath.Join(c.dir, "run")
	cmd := start(t, c.dir, c.run("served.yaml", "--out", "run")...)
	awaitTrials(t, folder, 3)
	began := time.Now()
	stopped := stopOne(t, "nginx", cmd.Process.Pid)
	await(t, cmd).want(t, statusFailed).says(t, "trials failed; they are named above").shows(t, "its service hangs: pod pod2 on node node1: nginx does not answer")
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

// stopOne stops a daemon of a build that is yet to be measured, as soon as it serves: those there are now may belong to builds that are
// over, and one without connections begins or is asked for its version. A daemon that has ended meanwhile can't be stopped.
func stopOne(t *testing.T, name string, run int) bool {
	t.Helper()
	before := daemonsOf(t, name, run)
	return eventually(func() bool {
		return slices.ContainsFunc(daemonsOf(t, name, run), func(pid int) bool {
			return !slices.Contains(before, pid) && serves(pid) && syscall.Kill(pid, sigstop) == nil && halted(pid)
		})
	})
}

// daemonsOf are the processes of a name that a run has started.
func daemonsOf(t *testing.T, name string, run int) []int {
	t.Helper()
	all, err := owner.Processes()
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, p := range all {
		if p.Name == name && p.Owner.PID == run {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// halted waits until a stopped process has halted; false when it ended instead.
func halted(pid int) bool {
	var state string
	eventually(func() bool {
		_, fields, err := procfile.Stat("/proc", pid)
		if state = ""; err == nil {
			state = fields[0]
		}
		return slices.Contains([]string{"T", "Z", "X", ""}, state)
	})
	return state == "T"
}

// serves tells whether a process holds a TCP connection over IPv4.
func serves(pid int) bool {
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	if err != nil {
		return false
	}
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return false
	}
	for _, link := range links {
		to, _ := os.Readlink(link) // "" of one that is closed by now
		inode := strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")
		for line := range strings.Lines(string(table)) {
			if f := strings.Fields(line); len(f) > 9 && f[3] == "01" && f[9] == inode {
				return true
			}
		}
	}
	return false
}
