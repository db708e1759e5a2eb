package experiment_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"netdelta/experiment"
	"netdelta/experiment/study"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// A change that can't be made, or is made in part, and one whose agents end again and again once it is made, fail their networks by name, and
// nothing else. The cluster is restored.
func TestChangeThatFails(t *testing.T) {
	t.Parallel()
	faults := map[string]string{"refused": "it is refused", "broken": "CrashLoopBackOff"}
	c, g := changingAgainst(t, "pod", 3, testbed.Change{Network: "refused"}, testbed.Change{Network: "broken"}) // each is given up in its second visit
	g.refuses, g.broken = "refused", "broken"
	run := mustRun(t, c)
	failed := map[string]int{}
	for _, tr := range journal(t, c) {
		name, _, _ := strings.Cut(tr.Cell, "/")
		says, changed := faults[name]
		switch {
		case strings.HasPrefix(name, "host@"): // stands beside them
		case changed != (tr.Failed != ""):
			t.Errorf("%s failed: %q", tr.ID(), tr.Failed)
		case changed:
			failed[name]++
			if !strings.Contains(tr.Failed, says) {
				t.Errorf("%s failed: %q", tr.ID(), tr.Failed)
			}
		}
	}
	for name, says := range faults {
		if failed[name] != 2 {
			t.Errorf("%d trials of %s failed", failed[name], name)
		}
		noted(t, run, name, "was given up", says)
	}
	if g.state != "" {
		t.Errorf("the cluster is changed for %q", g.state)
	}
	orderly(t, g.said)
}

// Settings that were left out for want of time are measured once it turns out that there is enough, and are in the record as the others are.
func TestSettingsComeIn(t *testing.T) {
	t.Parallel()
	const blocks = 2
	s := small([]string{"host", "pod"}, result.CrossNode)
	s.Baseline, s.Design.Blocks = "pod", blocks
	s.Workloads = []study.Workload{{Name: "tcp-rr", Levels: study.Levels{"message": {unit.Bytes(300), unit.Bytes(500)}}}}
	c, _ := changingStudy(t, s, testbed.Change{Network: "vxlan-on"})
	const fitted = "the time budget of 20m holds 1 of 2 workload settings, each on all 3 networks: tcp-rr 300B"
	c.Admits, c.Run.Notes = true, append(c.Run.Notes, fitted)
	for i, cell := range c.Run.Cells {
		if cell.Params.Message == 500 {
			c.Run.Cells[i].Skipped = "left out"
		}
	}
	run := mustRun(t, c)
	count := map[string]int{}
	for _, tr := range journal(t, c) {
		count[tr.Cell]++
	}
	for _, cell := range run.Cells {
		if cell.Skipped != "" || count[cell.ID] != blocks {
			t.Errorf("%s has %d trials, and is left out: %q", cell.ID, count[cell.ID], cell.Skipped)
		}
	}
	noted(t, run, "tcp-rr 500B was measured from build 4 on")
	if slices.Contains(run.Notes, fitted) {
		t.Errorf("it is still said that %s", fitted)
	}
}

// A change that leaves its rules behind when it is undone is seen by the way of packets in the next visit to the cluster as it was found.
func TestRulesLeftBehind(t *testing.T) {
	t.Parallel()
	c, g := changing(t, 3, testbed.Change{Network: "vxlan-on"})
	g.forgets, g.leaves = true, []string{"there is now on node w1: device flannel.1"}
	run := mustRun(t, c)
	noted(t, run, "device flannel.1")
	wrong := 0
	for _, tr := range journal(t, c) {
		pod := strings.HasPrefix(tr.Cell, "pod/")
		if tr.Failed != "" || tr.Path == nil || !tr.Path.OK && !pod {
			t.Errorf("%s failed: %q, path %+v", tr.ID(), tr.Failed, tr.Path)
		} else if pod && !tr.Path.OK {
			wrong++
			if last := tr.Path.Findings[len(tr.Path.Findings)-1]; !strings.Contains(last, "encapsulation vxlan, and none in the first visit") {
				t.Errorf("%s: %q", tr.ID(), tr.Path.Findings)
			}
		}
	}
	if wrong == 0 {
		t.Errorf("nothing was seen of the rules that were left: %q", g.said)
	}
}

// A cluster of daemons is made anew in each state, under the network that it is measured on. What is measured after one of
// them was killed does not count, by name, though the others serve on.
func TestDatabaseInEveryState(t *testing.T) {
	require.Long(t)
	t.Parallel()
	s := transactions(t, "pod")
	s.Baseline, s.Networks, s.Design.Blocks = "pod", []string{"pod"}, 1
	c, g := changingStudy(t, s, testbed.Change{Network: "vxlan-on"})
	const last = 2
	c.Progress = &watcher{then: func() {}, when: func(s experiment.Status) bool { return s.Build == last+1 && g.killOne(t, "mariadbd") }}
	run := mustRun(t, c)
	var seen []string
	for _, tr := range journal(t, c) {
		name, _, _ := strings.Cut(tr.Cell, "/")
		seen = append(seen, name)
		if tr.Build == last {
			if len(tr.Bursts.Disturbed) == 0 || slices.Contains(tr.Bursts.Disturbed, "") || !strings.Contains(tr.Bursts.Disturbed[0], "killed") {
				t.Errorf("%s lost a database: failed %q, bursts %q", tr.ID(), tr.Failed, tr.Bursts.Disturbed)
			}
			continue
		}
		if tr.Failed != "" || len(tr.Services) != 3 || tr.Replication == nil {
			t.Errorf("%s: failed %q, %d services, replication %+v", tr.ID(), tr.Failed, len(tr.Services), tr.Replication)
		}
	}
	if slices.Sort(seen); !slices.Equal(seen, []string{"pod", "pod+twin", "vxlan-on"}) {
		t.Errorf("measured were %q: %q", seen, run.Notes)
	}
	orderly(t, g.said)
}

// killOne kills the program in one pod of the testbed that was opened last: none that clients talk to. It says whether there was one.
func (g *ground) killOne(t *testing.T, program string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.beds) == 0 {
		return false
	}
	bed := g.beds[len(g.beds)-1]
	var space unix.Stat_t
	pods := elsewhere(bed.Pods())
	last := pods[slices.IndexFunc(pods, func(p testbed.Pod) bool { return p.Node() == pods[len(pods)-1].Node() })]
	if err := bed.Instruments().Within(last.Name(), func(fd int) error { return unix.Fstat(fd, &space) }); err != nil {
		return false // it is gone
	}
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		t.Error(err)
	}
	for _, name := range names {
		var own unix.Stat_t
		said, err := os.ReadFile(name)
		if err != nil || strings.TrimSpace(string(said)) != program || unix.Stat(filepath.Dir(name)+"/ns/net", &own) != nil || own.Ino != space.Ino {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			return unix.Kill(pid, unix.SIGKILL) == nil
		}
	}
	return false
}
