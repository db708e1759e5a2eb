package experiment_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/experiment"
	"netdelta/experiment/plan"
	"netdelta/experiment/study"
	"netdelta/internal/leak"
	"netdelta/internal/machine"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

// runsIn is the variable of the environment that has the test binary carry out a run in a folder, for a test that kills it.
const runsIn = "FLEET_RUNS_IN"

// runFleet runs until it is killed, and says so when it has its services.
func runFleet(dir string) int {
	ctx := context.Background()
	s := served("fleet")
	driver := lab.NewDriver(network.Catalogue())
	p, err := experiment.Prepare(ctx, s, driver, workloads())
	if err == nil {
		p.FixBuilds(1000)
		var c experiment.Config
		if c, err = experiment.Assemble(ctx, s, p, driver, workloads()); err == nil {
			c.Folder, err = result.Create(filepath.Join(dir, "run"), []byte("study: small\n"))
			c.Judge = words.NewJudge(c.Workloads)
			c.Progress = &watcher{when: func(experiment.Status) bool { return len(daemons(os.Getpid())) == 2 }, then: func() { fmt.Println("ready") }}
			if err == nil {
				_, err = experiment.Run(ctx, c)
			}
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// A run that is killed leaves no daemon, no mount and no namespace.
func TestKilledRunLeavesNoService(t *testing.T) {
	t.Parallel()
	require.Namespaces(t)
	before, err := leak.Host()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), runsIn+"="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	running := daemons(cmd.Process.Pid)
	if len(running) != 2 {
		t.Errorf("the run has the daemons %v, want two", running)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // says that it was killed
	for _, pid := range running {
		require.Eventually(t, 30*time.Second, fmt.Sprintf("daemon %d is gone", pid), func() bool { return errors.Is(unix.Kill(pid, 0), unix.ESRCH) })
	}
	if _, err := lab.Cleanup(t.Context()); err != nil {
		t.Error(err)
	}
	after, err := leak.Host()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range leak.Diff(before, after) {
		t.Errorf("the host is not the same: %s", line)
	}
}

// An interrupted run ends its services at once; when it is resumed they are started anew, and no trial is lost.
func TestInterruptedAndResumedServices(t *testing.T) {
	c := setUp(t, served("fleet"), 3, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var first []int
	c.Progress = &watcher{then: cancel, when: func(s experiment.Status) bool {
		if s.Build == 2 && s.Round == 1 && len(first) == 0 {
			first = daemons(os.Getpid())
			time.AfterFunc(300*time.Millisecond, cancel)
		}
		return s.Build == 3
	}}
	run, err := experiment.Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if run.Ended != plan.EndedInterrupted {
		t.Errorf("the run ended %q", run.Ended)
	}
	if left := daemons(os.Getpid()); len(first) != 2 || len(left) > 0 {
		t.Errorf("of the daemons %v there are still %v", first, left)
	}
	kept := len(journal(t, c))
	if err := c.Folder.Close(); err != nil {
		t.Fatal(err)
	}
	folder, err := result.Open(c.Folder.Dir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	again := setUp(t, served("fleet"), 3, folder)
	run = mustRun(t, again)
	trials := journal(t, again)
	last := map[string]int{}
	for _, tr := range trials {
		last[tr.Cell] = max(last[tr.Cell], tr.Build)
		if tr.Failed != "" {
			t.Errorf("%s failed: %s", tr.ID(), tr.Failed)
		}
	}
	for _, c := range run.Cells {
		if last[c.ID] != 2 {
			t.Errorf("the last build of %s is %d, want the third", c.ID, last[c.ID])
		}
	}
	if kept < len(run.Cells) || len(trials) <= kept {
		t.Errorf("%d trials before, %d after", kept, len(trials))
	}
}

// A network that can't be swapped in costs its own trials; services do well under the others.
func TestClusterUnderNetworkThatFails(t *testing.T) {
	t.Parallel()
	c := setUp(t, served("fleet"), 2, nil)
	c.Driver = unswappable{c.Driver, "vxlan"}
	run := mustRun(t, c)
	for _, tr := range journal(t, c) {
		if wrong := strings.HasPrefix(tr.Cell, "vxlan/"); wrong != strings.Contains(tr.Failed, "no room") {
			t.Errorf("%s: %q", tr.ID(), tr.Failed)
		}
	}
	if !slices.ContainsFunc(run.Deltas, func(d result.Delta) bool { return d.Workload == "fleet" && d.Network == "bridge" }) {
		t.Error("there is no delta of the cluster on another network")
	}
}

// unswappable is a driver whose testbeds can't have one network.
type unswappable struct {
	testbed.Provider
	network string
}

func (u unswappable) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	if spec.Network == u.network {
		return nil, errors.New("no room")
	}
	tb, err := u.Provider.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return unswappableBed{tb.Instruments().Observer, u.network}, nil
}

type unswappableBed struct {
	testbed.Observer
	network string
}

func (u unswappableBed) Swap(ctx context.Context, network string) error {
	if network == u.network {
		return errors.New("no room")
	}
	return u.Observer.Swap(ctx, network)
}

// What a cluster's packets went another way with is named though the expected number of bytes is unknown, and what daemons say
// to each other is not taken for it.
func TestClusterMisrouted(t *testing.T) {
	t.Parallel()
	s := served("fleet", "tcp-rr")
	s.Networks = []string{"host", "routed", "vxlan"}
	c := setUpOn(t, astray(t), s, 2, nil)
	run := mustRun(t, c)
	for _, tr := range journal(t, c) {
		wrong := strings.HasPrefix(tr.Cell, "routed/")
		if tr.Failed != "" || tr.Path == nil {
			t.Errorf("%s failed: %q", tr.ID(), tr.Failed)
			continue
		}
		found := strings.Join(tr.Path.Findings, "; ")
		if tr.Path.OK == wrong || wrong != strings.Contains(found, "/eth1 carried") {
			t.Errorf("%s: proved %v: %s", tr.ID(), tr.Path.OK, found)
		}
	}
	if slices.ContainsFunc(run.Deltas, func(d result.Delta) bool { return d.Network == "routed" && d.Ratio != 0 }) {
		t.Error("there is a delta of what was misrouted")
	}
}

// Under classes of service a cluster is pinned, so that neighbours compete with it or not; each class has a cluster of its own.
func TestClusterWithNeighbours(t *testing.T) {
	cpus, err := machine.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	require.Need(t, "two processors", len(cpus) > 1)
	s := served("fleet")
	s.Factors = study.Levels{"qos": {result.BestEffort, result.Guaranteed}}
	s.Design.TimeBudget *= 2 // two clusters are started, one for each class
	c := setUp(t, s, 1, nil)
	most := 0
	c.Progress = &watcher{then: func() {}, when: func(experiment.Status) bool {
		most = max(most, len(daemons(os.Getpid())))
		return false
	}}
	run := mustRun(t, c)
	trials := journal(t, c)
	if len(trials) != len(run.Cells) {
		t.Errorf("%d trials of %d cells", len(trials), len(run.Cells))
	}
	for _, tr := range trials {
		if tr.Failed != "" || tr.ClientCPU != c.Measuring[0] || tr.ServerCPU != c.Measuring[0] {
			t.Errorf("%s on processors %d and %d: %s", tr.ID(), tr.ClientCPU, tr.ServerCPU, tr.Failed)
		}
	}
	if most != 4 {
		t.Errorf("there were %d daemons, want two for each class", most)
	}
}
