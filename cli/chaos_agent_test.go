package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"netdelta/internal/machine"
	"netdelta/internal/require"
	"netdelta/result"
)

// alone are the agents that have a pod to themselves. The one whose thread visits all networks of a setting has not: it costs them all.
func alone(t *testing.T, agents []int) []int {
	t.Helper()
	in := map[int]string{}
	count := map[string]int{}
	for _, pid := range agents {
		space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err != nil {
			continue // it has ended
		}
		in[pid] = space
		count[space]++
	}
	return slices.DeleteFunc(agents, func(pid int) bool { return count[in[pid]] != 1 })
}

// A pod that dies or hangs in a trial costs that trial, by name; the others are measured.
func lostPod(c *chaos, signal syscall.Signal) {
	t, dir, name := c.T, c.dir, "run"
	folder := filepath.Join(dir, name)
	cmd := start(t, dir, c.run("small.yaml", "--builds", "5", "--rounds", "8", "--time-budget", "20s", "--out", name)...)
	awaitTrials(t, folder, 4)
	agents := alone(t, agentsOf(t, cmd))
	require.Need(t, "a run that is under way still", len(agents) > 0)
	// The newest is of the build that is measured next, if not of the one that is measured now.
	if err := syscall.Kill(agents[len(agents)-1], signal); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	e := await(t, cmd).want(t, statusFailed).says(t, "trials failed; they are named above and left out of every delta")
	c.ended(began)
	var failed []result.Trial
	whole := map[string]int{}
	builds := 0 // on a busy machine the budget may have left the last ones out
	for _, tr := range trials(t, folder) {
		builds = max(builds, tr.Build+1)
		if tr.Failed != "" {
			failed = append(failed, tr)
		} else {
			whole[tr.Cell]++
		}
	}
	if len(failed) == 0 || len(failed) > 2 || len(whole) != 4 {
		t.Fatalf("%d trials failed; whole ones: %v", len(failed), whole)
	}
	for _, tr := range failed {
		e.shows(t, tr.Cell)
		if !strings.Contains(tr.Failed, "pod") {
			t.Errorf("%s: the reason names no pod: %s", tr.ID(), tr.Failed)
		}
	}
	for cell, n := range whole {
		if n < builds-1 {
			t.Errorf("%s was measured in %d builds, want all of %d but one", cell, n, builds)
		}
	}
	run := decode(t, call(t, dir, statusDone, "show", name, "--json").stdout)
	if len(run.Deltas) == 0 || len(run.Null) == 0 {
		t.Errorf("%d deltas and %d null checks", len(run.Deltas), len(run.Null))
	}
	c.said = failed[0].Failed
}

// shared are the agents that share their pod with another: the one whose thread visits all networks of a setting, and the one of the pod
// that it is in.
func shared(t *testing.T, agents []int) []int {
	t.Helper()
	own := alone(t, slices.Clone(agents))
	return slices.DeleteFunc(agents, func(pid int) bool { return slices.Contains(own, pid) })
}

// all are all agents.
func all(_ *testing.T, agents []int) []int { return agents }

// shortBudget has room for the build that is struck on a machine that is busy, too: where there are processors, shortRun ends before. overtime
// is how long after its budget a run is ended that waits still, and what a busy machine adds.
const (
	shortBudget = 12 * time.Second
	overtime    = 10 * time.Second
)

// shortRun are the arguments of a run of a few builds that a fault strikes.
func (c *chaos) shortRun(args ...string) []string {
	return c.run(append([]string{"small.yaml", "--builds", "5", "--time-budget", shortBudget.String(), "--out", "run"}, args...)...)
}

// Agents that hang cost their cells of a build, by name, and the run ends in its time.
func stoppedAgents(c *chaos, which func(*testing.T, []int) []int) {
	t := c.T
	folder := filepath.Join(c.dir, "run")
	cmd := start(t, c.dir, c.shortRun()...)
	awaitTrials(t, folder, 4)
	began := time.Now()
	for _, pid := range which(t, agentsOf(t, cmd)) {
		_ = syscall.Kill(pid, sigstop) // it may have ended
	}
	await(t, cmd).want(t, statusFailed).says(t, "trials failed; they are named above").shows(t, "no answer to ")
	c.ended(began)
	if c.took > shortBudget+overtime {
		t.Errorf("a run of %v ended %v after its agents hung", shortBudget, c.took)
	}
	whole := 0
	for _, tr := range trials(t, folder) {
		if tr.Measured() {
			whole++
			continue
		}
		if !strings.Contains(tr.Failed, "pod") || !strings.Contains(tr.Failed, "no answer to ") {
			t.Errorf("%s does not say which pod did not answer to what: %s", tr.ID(), tr.Failed)
		}
		c.said = tr.Failed
	}
	if whole < 4 {
		t.Errorf("%d trials are whole", whole)
	}
}

// Processes that a network consists of, and that hang, cost its trials, by name.
func stoppedTunnels(c *chaos) {
	t := c.T
	require.Need(t, "/dev/net/tun", hasFile("/dev/net/tun"))
	cmd := start(t, c.dir, c.shortRun("--networks", "host,bridge,udp-tun")...)
	awaitTrials(t, filepath.Join(c.dir, "run"), 4)
	began := time.Now()
	agents, stopped := agentsOf(t, cmd), 0
	for _, pid := range running(t) {
		if pid != cmd.Process.Pid && !slices.Contains(agents, pid) && syscall.Kill(pid, sigstop) == nil {
			stopped++
		}
	}
	await(t, cmd).want(t, statusFailed).says(t, "trials failed; they are named above")
	c.ended(began)
	for _, tr := range trials(t, filepath.Join(c.dir, "run")) {
		if !tr.Measured() {
			c.said = tr.Failed
			if !strings.HasPrefix(tr.Cell, "udp-tun/") {
				t.Errorf("%s failed: %s", tr.ID(), tr.Failed)
			}
		}
	}
	run := decode(t, read(t, filepath.Join(c.dir, "run", result.ResultFile)))
	if stopped == 0 || run.Ended == "failed" || c.took > shortBudget+overtime {
		t.Errorf("%d processes hung; the run ended %q after %v", stopped, run.Ended, c.took)
	}
}

// hasFile says whether there is something at a path.
func hasFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// A link of a pod that goes down in the middle costs that cell, by name.
func linkDown(c *chaos) {
	t := c.T
	nsenter := require.Tool(t, "nsenter")
	folder := filepath.Join(c.dir, "run")
	cmd := start(t, c.dir, c.shortRun()...)
	awaitTrials(t, folder, 4)
	agents := alone(t, agentsOf(t, cmd))
	require.Need(t, "a run that is under way still", len(agents) > 0)
	began := time.Now()
	down := exec.Command(nsenter, "--net", "--target", strconv.Itoa(agents[len(agents)-1]), "ip", "link", "set", "eth0", "down")
	if out, err := down.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	e := await(t, cmd).want(t, statusFailed)
	c.ended(began)
	whole, failed := c.count("run")
	if whole < 4 || failed == 0 || c.took > shortBudget+overtime {
		t.Errorf("%d trials are whole, %d failed, after %v", whole, failed, c.took)
	}
	for _, tr := range trials(t, folder) {
		if !tr.Measured() {
			e.shows(t, tr.Cell)
			c.said = tr.Failed
		}
	}
}

// Another program that computes on the measuring processor makes a run slower and less sure, and nothing else.
func hog(c *chaos) {
	t := c.T
	cpus, err := machine.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	const budget = 30 * time.Second // nothing hangs: with more patience the load of other programs fails no trial
	cmd := start(t, c.dir, c.run("small.yaml", "--builds", "5", "--time-budget", budget.String(), "--out", "run")...)
	awaitTrials(t, filepath.Join(c.dir, "run"), 4)
	began := time.Now()
	load := exec.CommandContext(t.Context(), require.Tool(t, "taskset"), "--cpu-list", strconv.Itoa(cpus[len(cpus)-1]), "sh", "-c", "while :; do :; done")
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = load.Process.Kill() // it may have been killed below
		_ = load.Wait()
	})
	await(t, cmd).want(t, statusDone).shows(t, "bridge", "macvlan")
	c.ended(began)
	if err := load.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	whole, failed := c.count("run")
	if failed > 0 || c.took > budget+overtime {
		t.Errorf("%d trials failed; the run ended %v after the load began", failed, c.took)
	}
	disturbed := 0
	for _, tr := range trials(t, filepath.Join(c.dir, "run")) {
		for _, why := range tr.Bursts.Disturbed {
			if why != "" {
				disturbed++
			}
		}
	}
	run := decode(t, read(t, filepath.Join(c.dir, "run", result.ResultFile)))
	for _, d := range run.Deltas {
		if d.Headline && d.Network == "bridge" && d.Verdict == "faster" {
			t.Errorf("under load bridge is faster than host: %+v", d)
		}
	}
	c.said = fmt.Sprintf("%d trials are whole, %d of their bursts were marked as disturbed", whole, disturbed)
}
