package experiment_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/agent"
	"netdelta/experiment"
	"netdelta/experiment/plan"
	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/internal/leak"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/probe/pressure"
	"netdelta/probe/probetest"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/lab/udptun"
	"netdelta/workload/catalogue"
)

// The test binary is its own agent.
func TestMain(m *testing.M) {
	if agent.Asked() {
		agent.Become(workloads())
	}
	if n := len(os.Args); os.Args[n-1] == echoVerb {
		fmt.Fprintln(os.Stderr, echo(os.Args[n-2]))
		os.Exit(1)
	}
	if dir := os.Getenv(runsIn); dir != "" {
		os.Exit(runFleet(dir))
	}
	if udptun.Asked() {
		os.Exit(udptun.Become())
	}
	os.Exit(leak.Main(m))
}

// watcher is a Progress that calls back, once, when the run has reached a point.
type watcher struct {
	when func(experiment.Status) bool
	then func()
	once sync.Once
}

func (w *watcher) Update(s experiment.Status) {
	if w.when != nil && w.when(s) {
		w.once.Do(w.then)
	}
}

// small is a study that takes a second or two.
func small(networks []string, placements ...result.Placement) *study.Study {
	if len(placements) == 0 {
		placements = []result.Placement{result.SameNode, result.CrossNode}
	}
	return &study.Study{
		Name: "small", Baseline: "host", Networks: networks, Placement: placements,
		Testbed:   study.Testbed{Kind: "lab", Nodes: 2, Pods: 2, Link: study.Link{MTU: 1500}},
		Workloads: []study.Workload{{Name: "tcp-rr"}},
		Design: study.Design{
			Burst: 2 * time.Millisecond, Builds: 6, Rounds: 3, Confidence: 0.95, Margin: 0.02, TimeBudget: time.Minute, Seed: 42,
		},
	}
}

// setUp prepares a run of the study that ends after so many builds, in the folder or, without one, a new one.
func setUp(t *testing.T, s *study.Study, builds int, folder *result.Folder) experiment.Config {
	t.Helper()
	return setUpOn(t, network.Catalogue(), s, builds, folder)
}

// setUpOn is setUp with a catalogue of the test's own. What else happens on this machine neither disturbs what is measured nor is seen.
func setUpOn(t *testing.T, networks []network.Network, s *study.Study, builds int, folder *result.Folder) experiment.Config {
	t.Helper()
	c := assembled(t, networks, s, builds, folder)
	c.Program, c.Machine = probetest.Ahead(c.Program), idle(t, c)
	return c
}

// idle is in place of a run's reader of the machine the reader of one where nothing else ever runs.
func idle(t *testing.T, c experiment.Config) *pressure.Reader {
	t.Helper()
	proc, text := t.TempDir(), ""
	for _, cpu := range c.Measuring {
		text += fmt.Sprintf("cpu%d 0 0 0 0 0 0 0 0 0 0\n", cpu)
	}
	err := errors.Join(os.WriteFile(filepath.Join(proc, "stat"), []byte(text), 0o600), c.Machine.Close())
	if err != nil {
		t.Fatal(err)
	}
	r, err := pressure.NewReader(proc, c.Measuring)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// assembled is setUpOn for a run that sees this machine as it is.
func assembled(t *testing.T, networks []network.Network, s *study.Study, builds int, folder *result.Folder) experiment.Config {
	t.Helper()
	require.Namespaces(t)
	driver := lab.NewDriver(networks)
	p, err := experiment.Prepare(t.Context(), s, driver, workloads())
	if err != nil {
		t.Fatal(err)
	}
	p.Rules.MaxBuilds = builds
	c, err := experiment.Assemble(t.Context(), s, p, driver, workloads())
	if err != nil {
		t.Fatal(err)
	}
	if folder == nil {
		if folder, err = result.Create(filepath.Join(t.TempDir(), "run"), []byte("study: small\n")); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	})
	c.Folder, c.Progress, c.Judge = folder, &watcher{}, words.NewJudge(c.Workloads)
	return c
}

func journal(t *testing.T, c experiment.Config) []result.Trial {
	t.Helper()
	contents, err := result.LoadTrials(c.Folder.Dir())
	if err != nil {
		t.Fatal(err)
	}
	return contents.Trials
}

func mustRun(t *testing.T, c experiment.Config) result.Run {
	t.Helper()
	run, err := experiment.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// checkTrials fails unless each cell has one whole trial in each build from first on.
func checkTrials(t *testing.T, cells []result.Cell, trials []result.Trial, first, builds, bursts int) {
	t.Helper()
	have := map[string]int{}
	for _, tr := range trials {
		if tr.Failed != "" {
			t.Errorf("%s failed: %s", tr.ID(), tr.Failed)
		}
		if tr.Build >= first && len(tr.Bursts.P50) < bursts {
			t.Errorf("%s has %d bursts, want at least %d", tr.ID(), len(tr.Bursts.P50), bursts)
		}
		quiet := slices.Contains(tr.Bursts.Disturbed, "") // on a busy machine there may be no burst that counts
		if tr.TCP == nil || quiet && (tr.Histogram == "" || tr.Transactions == 0) {
			t.Errorf("%s lacks its histogram, its transactions or TCP_INFO", tr.ID())
		}
		have[tr.ID()]++
	}
	for _, c := range cells {
		if c.Unsupported != "" {
			continue
		}
		for b := first; b < first+builds; b++ {
			if id := (result.Trial{Cell: c.ID, Build: b}).ID(); have[id] != 1 {
				t.Errorf("%d trials %s in the journal, want one", have[id], id)
			}
		}
	}
}

func TestRunAndResume(t *testing.T) {
	c := setUp(t, small([]string{"host", "bridge", "routed"}), 2, nil)
	before, err := leak.Host()
	if err != nil {
		t.Fatal(err)
	}
	run := mustRun(t, c)
	checkTrials(t, run.Cells, journal(t, c), 0, 2, 3)
	if len(run.Deltas) == 0 || len(run.Null) == 0 {
		t.Errorf("%d deltas and %d null checks came out", len(run.Deltas), len(run.Null))
	}
	for _, d := range run.Deltas {
		if d.RatioLow != nil || d.Need != stats.DefaultMinBuilds {
			t.Errorf("two builds of %s gave an interval, or it does not say that %d are needed: need %d", d.Cell, stats.DefaultMinBuilds, d.Need)
		}
	}
	if len(run.Environment.Links) == 0 || len(run.Environment.Sysctls) == 0 {
		t.Error("the environment lacks the links or the kernel's settings")
	}
	if err := c.Folder.Close(); err != nil {
		t.Fatal(err)
	}

	folder, err := result.Open(c.Folder.Dir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	again := setUp(t, small([]string{"host", "bridge", "routed"}), 3, folder)
	run = mustRun(t, again)
	trials := journal(t, again)
	checkTrials(t, run.Cells, trials, 0, 3, 3)
	if want := 3 * len(run.Cells); len(trials) != want {
		t.Errorf("%d trials after resuming, want %d", len(trials), want)
	}
	after, err := leak.Host()
	if err != nil {
		t.Fatal(err)
	}
	if diff := leak.Diff(before, after); len(diff) > 0 {
		t.Errorf("the host has changed:\n%s", strings.Join(diff, "\n"))
	}
}

func TestBlocksSwapLive(t *testing.T) {
	t.Parallel()
	s := small([]string{"host", "bridge", "macvlan", "vxlan"})
	s.Design.Blocks = 2
	c := setUp(t, s, 2, nil)
	run := mustRun(t, c)
	checkTrials(t, run.Cells, journal(t, c), 0, 2, 3)
	for _, cell := range run.Cells {
		// Under live swaps host networking on one node would cross the switch; the others have nothing to be held against.
		if refused := cell.Unsupported != ""; refused != (cell.Placement == result.SameNode) {
			t.Errorf("%s: %q", cell.ID, cell.Unsupported)
		}
	}
}

// children are the agents that this process has running.
func children(t *testing.T) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && parentOf(pid) == os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A pod that dies or hangs costs the trials that it served, by name, and nothing else.
func TestLostPods(t *testing.T) {
	for name, signal := range map[string]unix.Signal{"dies": unix.SIGKILL, "hangs": unix.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			c := setUp(t, small([]string{"host", "bridge", "macvlan"}, result.CrossNode), 2, nil)
			c.Progress = &watcher{
				when: func(s experiment.Status) bool { return s.Build == 1 && s.Round == 2 },
				then: func() {
					if err := unix.Kill(slices.Min(children(t)), signal); err != nil {
						t.Errorf("hitting an agent: %v", err)
					}
				},
			}
			run := mustRun(t, c)
			var failed, whole int
			for _, tr := range journal(t, c) {
				if tr.Failed == "" {
					whole++
				} else if failed++; tr.Build != 0 || !strings.Contains(tr.Failed, "pod") {
					t.Errorf("%s: %s", tr.ID(), tr.Failed)
				}
			}
			if failed != 1 || whole != 2*len(run.Cells)-1 {
				t.Errorf("%d trials failed and %d did not, want 1 and %d", failed, whole, 2*len(run.Cells)-1)
			}
			if !slices.ContainsFunc(run.Checks, func(c result.Check) bool { return c.Check == insight.CheckFinished && !c.OK }) {
				t.Error("the record does not name the failed trial")
			}
		})
	}
}

func TestInterruptionKeepsWhatWasMeasured(t *testing.T) {
	t.Parallel()
	s := small([]string{"host", "bridge"}, result.CrossNode)
	s.Design.Rounds = 1000
	c := setUp(t, s, 1, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Progress = &watcher{when: func(s experiment.Status) bool { return s.Round == 5 }, then: cancel}
	run, err := experiment.Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if run.Ended != plan.EndedInterrupted {
		t.Errorf("the run ended %q", run.Ended)
	}
	checkTrials(t, run.Cells, journal(t, c), 0, 1, 3)
}

// A journal that can't be written ends the run with an error.
func TestJournalFails(t *testing.T) {
	t.Parallel()
	c := setUp(t, small([]string{"host", "bridge"}, result.CrossNode), 100, nil)
	c.Progress = &watcher{when: func(s experiment.Status) bool { return s.Round == 2 }, then: func() {
		if err := c.Folder.Close(); err != nil {
			t.Error(err)
		}
	}}
	run, err := experiment.Run(t.Context(), c)
	if err == nil {
		t.Fatal("no error though the journal was closed")
	}
	if run.Ended != "failed" {
		t.Errorf("the run ended %q", run.Ended)
	}
	if builds := len(journal(t, c)); builds != 0 {
		t.Errorf("%d trials in a journal that was closed", builds)
	}
}

func TestNothingToMeasure(t *testing.T) {
	require.Namespaces(t)
	driver := lab.NewDriver(network.Catalogue())
	lacking := ""
	for _, n := range network.Catalogue() {
		if driver.Supports(t.Context(), testbed.Spec{Network: n.Name, Family: result.IPv4}) != nil {
			lacking = n.Name
		}
	}
	require.Need(t, "a kernel without ipvlan", lacking != "")
	s := small([]string{lacking})
	s.Baseline = lacking
	_, err := experiment.Prepare(t.Context(), s, driver, catalogue.Workloads())
	if err == nil || !strings.Contains(err.Error(), "unsupported") {
		t.Errorf("got %v", err)
	}
}
