package experiment_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/measure"
	"netdelta/experiment/plan"
	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/internal/machine"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed/lab"
	"netdelta/workload"
)

// served is a study of workloads across nodes.
func served(names ...string) *study.Study {
	s := small([]string{"host", "bridge", "vxlan"}, result.CrossNode)
	s.Design.Rounds, s.Design.TimeBudget = 0, 10*time.Minute // a busy machine takes its time
	s.Workloads = nil
	for _, n := range names {
		s.Workloads = append(s.Workloads, study.Workload{Name: n})
	}
	return s
}

// order has the clients of a run give their daemon an order in a block, from the first network that is visited then.
func orders(t *testing.T, c *experiment.Config, what map[int]byte) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "order")
	c.Program.Env = append(c.Program.Env, trigger+"="+name)
	given := map[int]bool{}
	c.Progress = &watcher{then: func() {}, when: func(s experiment.Status) bool {
		if order, due := what[s.Build]; due && !given[s.Build] && s.Round == 1 {
			given[s.Build] = true
			if err := os.WriteFile(name, []byte{order}, 0o600); err != nil {
				t.Error(err)
			}
		}
		return false
	}}
}

// unwell are the trials of which some burst does not count since a service was unwell.
func unwell(trials []result.Trial) []result.Trial {
	return slices.DeleteFunc(slices.Clone(trials), func(t result.Trial) bool {
		return !slices.ContainsFunc(t.Bursts.Disturbed, func(why string) bool { return strings.HasPrefix(why, measure.Unwell) })
	})
}

// noted fails unless a note of the run has all the words.
func noted(t *testing.T, run result.Run, words ...string) {
	t.Helper()
	if !slices.ContainsFunc(run.Notes, func(n string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(n, w) })
	}) {
		t.Errorf("no note has %q among %q", words, run.Notes)
	}
}

// A cluster is started once, on nodes of its own, and networks are swapped beneath it; other workloads are measured in the same run.
func TestClusterOutlivesSwaps(t *testing.T) {
	c := setUp(t, served("fleet", "tcp-rr"), 2, nil)
	if !c.Blocks || c.Testbed.Nodes != 3 {
		t.Errorf("blocks: %v, on %d nodes", c.Blocks, c.Testbed.Nodes)
	}
	var first, last []int
	c.Progress = &watcher{then: func() {}, when: func(s experiment.Status) bool {
		if s.Round == 1 && len(first) == 0 {
			first = daemons(os.Getpid())
		}
		last = daemons(os.Getpid())
		return false
	}}
	run := mustRun(t, c)
	trials := journal(t, c)
	if len(trials) != 2*len(run.Cells) {
		t.Errorf("%d trials of %d cells in two blocks", len(trials), len(run.Cells))
	}
	for _, tr := range trials {
		if tr.Failed != "" || tr.Path == nil || !tr.Path.OK {
			t.Errorf("%s: failed %q, path %+v", tr.ID(), tr.Failed, tr.Path)
		}
		if !strings.Contains(tr.Cell, "fleet") {
			continue
		}
		if n := len(tr.Bursts.Round); len(tr.Bursts.Rate) != n || len(tr.Bursts.Errors) != n || n == 0 || tr.Bursts.Rate[0] <= 0 {
			t.Errorf("%s has %d bursts, the rates %v and the errors %v", tr.ID(), n, tr.Bursts.Rate, tr.Bursts.Errors)
		}
		if d := tr.Bursts.Duration; len(d) > 0 && slices.Min(d) < (20*time.Millisecond).Nanoseconds() {
			t.Errorf("%s has bursts of %v ns, and its tool takes 20 ms", tr.ID(), slices.Min(d))
		}
		if len(tr.Services) != 2 || tr.Services[0].Memory == 0 || tr.Services[0].Pod == tr.Services[1].Pod || tr.Services[1].Restarts != 0 {
			t.Errorf("%s was served by %+v", tr.ID(), tr.Services)
		}
		if tr.Disk == nil || tr.Replication == nil || tr.Errors != 1 {
			t.Errorf("%s has the disk %v, the replication %v and %d errors", tr.ID(), tr.Disk, tr.Replication, tr.Errors)
		}
	}
	if len(first) != 2 || !slices.Equal(first, last) {
		t.Errorf("the daemons %v have become %v", first, last)
	}
	if left := daemons(os.Getpid()); len(left) > 0 {
		t.Errorf("after the run the daemons %v are still there", left)
	}
}

// Daemons that end are started again, once; what they served meanwhile is measured again. The second time their workload is
// left out, and the rest goes on.
func TestServiceThatDies(t *testing.T) {
	t.Parallel()
	c := setUp(t, served("fleet", "tcp-rr"), 4, nil)
	orders(t, &c, map[int]byte{2: orderDie, 3: orderDie})
	run := mustRun(t, c)
	trials := journal(t, c)
	spoiled := unwell(trials)
	if len(spoiled) == 0 || spoiled[0].Build != 1 {
		t.Fatalf("%d trials met a service that was unwell", len(spoiled))
	}
	// The second death ends the trial: before its first burst, or after some.
	last := func(tr result.Trial) bool {
		return tr.Build == 2 && strings.Contains(tr.Cell, "fleet") && (tr.Failed != "" || len(unwell([]result.Trial{tr})) == 1)
	}
	if !slices.ContainsFunc(trials, last) {
		t.Errorf("the second death spoiled no trial: %d were", len(spoiled))
	}
	if !slices.Contains(spoiled[0].Bursts.Disturbed, "") {
		t.Errorf("%s was not measured again: %q", spoiled[0].ID(), spoiled[0].Bursts.Disturbed)
	}
	if s := spoiled[0].Services; len(s) != 2 || s[0].Restarts != 1 || s[1].Restarts != 0 {
		t.Errorf("%s was served by %+v", spoiled[0].ID(), s)
	}
	noted(t, run, "fleet", "started again", " on node ", "told to die")
	noted(t, run, "fleet", "left out of the rest of the run", "for the second time")
	for _, tr := range trials {
		fleet := strings.Contains(tr.Cell, "fleet")
		if tr.Failed != "" && !(fleet && tr.Build == 2) {
			t.Errorf("%s failed: %s", tr.ID(), tr.Failed)
		}
		if fleet && tr.Build > 2 {
			t.Errorf("%s was measured after its workload was given up", tr.ID())
		}
	}
	if last := trials[len(trials)-1]; last.Build != 3 || !strings.Contains(last.Cell, "tcp-rr") {
		t.Errorf("the rest did not go on: the last trial is %s", last.ID())
	}
}

// A pod that is lost while its daemon is started for the first time, before anything is measured, costs no trial: all are made anew.
func TestPodLostInStart(t *testing.T) {
	t.Parallel()
	c := setUp(t, served("frail"), 2, nil)
	name := filepath.Join(t.TempDir(), "order")
	c.Program.Env = append(c.Program.Env, trigger+"="+name)
	if err := os.WriteFile(name, []byte{orderLose}, 0o600); err != nil {
		t.Fatal(err)
	}
	run, failed := lostPod(t, c, 1)
	if len(failed) > 0 {
		t.Errorf("failed trials: %q", failed)
	}
	noted(t, run, "frail", "made anew", " on node ", "was lost")
}

// A pod that is lost while its daemon is started again costs the trial, which names it, and no more: the next has other pods.
func TestPodLostInRestart(t *testing.T) {
	t.Parallel()
	c := setUp(t, served("fleet"), 3, nil)
	orders(t, &c, map[int]byte{2: orderLose})
	if _, failed := lostPod(t, c, 2); len(failed) != 1 || !strings.Contains(failed[0], "fleet (fleet): pod ") {
		t.Errorf("failed trials: %q", failed)
	}
}

// A pod that is lost while a trial is collected costs that trial, which names it, though its client saw no more than a connection's end.
func TestPodLostInCollect(t *testing.T) {
	t.Parallel()
	c := setUp(t, served("frail"), 3, nil)
	orders(t, &c, map[int]byte{2: orderGone})
	if _, failed := lostPod(t, c, 2); len(failed) != 1 || !strings.Contains(failed[0], "collecting ") {
		t.Errorf("failed trials: %q", failed)
	}
}

// lostPod carries out a run that loses a pod of a workload before its last block, which must be whole, and returns why trials failed: each
// names the pod.
func lostPod(t *testing.T, c experiment.Config, last int) (run result.Run, failed []string) {
	t.Helper()
	run = mustRun(t, c)
	var whole []string
	for _, tr := range journal(t, c) {
		switch {
		case tr.Failed != "":
			failed = append(failed, tr.Failed)
			if !strings.Contains(tr.Failed, ": pod ") && !strings.Contains(tr.Failed, "; pod ") || !strings.Contains(tr.Failed, " on node ") || !strings.Contains(tr.Failed, " was lost: ") {
				t.Errorf("%s failed: %s", tr.ID(), tr.Failed)
			}
		case tr.Build == last:
			whole = append(whole, tr.ID())
		}
	}
	if len(whole) != len(run.Cells) {
		t.Errorf("in the last block, %d of %d cells were measured", len(whole), len(run.Cells))
	}
	return run, failed
}

// A service that is unwell for a while spoils what it served meanwhile, which is measured again.
func TestServiceThatIsUnwell(t *testing.T) {
	t.Parallel()
	c := setUp(t, served("fleet"), 2, nil)
	orders(t, &c, map[int]byte{1: orderHang})
	run := mustRun(t, c)
	spoiled := unwell(journal(t, c))
	if len(spoiled) != 1 || spoiled[0].Build != 0 || !slices.Contains(spoiled[0].Bursts.Disturbed, "") {
		t.Fatalf("%d trials met a service that was unwell: %+v", len(spoiled), spoiled)
	}
	for _, s := range spoiled[0].Services {
		if s.Restarts != 0 {
			t.Errorf("%s was restarted, and would have become well", s.Name)
		}
	}
	if len(run.Deltas) == 0 {
		t.Error("there are no deltas")
	}
}

// A server alone gets the same care in bursts: a daemon that ends is started again once, and the second time its workload is
// left out.
func TestLoneServerThatDies(t *testing.T) {
	s := served("lone", "tcp-rr")
	s.Design.Rounds = 6
	c := setUp(t, s, 4, nil)
	if c.Blocks {
		t.Error("what can stand side by side is measured in blocks")
	}
	orders(t, &c, map[int]byte{1: orderDie, 2: orderDie})
	run := mustRun(t, c)
	trials := journal(t, c)
	if spoiled := unwell(trials); len(spoiled) != 2 || spoiled[0].Build != 0 || spoiled[1].Build != 1 {
		t.Errorf("%d trials met a server that was unwell: %+v", len(spoiled), spoiled)
	} else if n := len(spoiled[0].Bursts.Round); n < 6 || strings.HasPrefix(spoiled[0].Bursts.Disturbed[n-1], measure.Unwell) || spoiled[0].Services[0].Restarts != 1 {
		t.Errorf("%s did not go on: %q, %+v", spoiled[0].ID(), spoiled[0].Bursts.Disturbed, spoiled[0].Services)
	}
	noted(t, run, "lone", "started again", "told to die")
	noted(t, run, "lone", "left out of the rest of the run")
	if last := trials[len(trials)-1]; last.Build != 3 || !strings.Contains(last.Cell, "tcp-rr") {
		t.Errorf("the rest did not go on: the last trial is %s", last.ID())
	}
}

// A cluster that never starts costs its own cells, with the last words of its daemons.
func TestServiceThatNeverStarts(t *testing.T) {
	t.Parallel()
	c := setUp(t, served("stillborn", "tcp-rr"), 2, nil)
	run := mustRun(t, c)
	for _, tr := range journal(t, c) {
		dead := strings.Contains(tr.Cell, "stillborn")
		if dead != strings.Contains(tr.Failed, "no luck today") || dead && tr.Build > 0 {
			t.Errorf("%s: %q", tr.ID(), tr.Failed)
		}
	}
	noted(t, run, "stillborn", "no luck today")
	if !slices.ContainsFunc(run.Deltas, func(d result.Delta) bool { return d.Workload == "tcp-rr" }) {
		t.Error("the rest has no deltas")
	}
	if slices.ContainsFunc(run.Checks, func(c result.Check) bool {
		return c.Check == insight.CheckFinished && !c.OK && strings.Contains(c.Trial, "tcp-rr")
	}) {
		t.Error("trials of the rest failed")
	}
}

// What cells need and can't have is said, with what to do; the rest of the study stays.
func TestUnmetDemands(t *testing.T) {
	require.Namespaces(t)
	s := served("lacking", "greedy", "fleet", "tcp-rr")
	s.Placement = []result.Placement{result.SameNode, result.CrossNode}
	p, err := experiment.Prepare(t.Context(), s, lab.NewDriver(network.Catalogue()), workloads())
	if err != nil {
		t.Fatal(err)
	}
	install := workload.Installation([]string{"nothing-of-the-kind"})
	for _, c := range p.Cells {
		want := map[string]string{
			"lacking": "workload lacking is unsupported: needs no-such-daemon; " + install,
			"greedy":  "workload greedy is unsupported: needs 1PiB of memory for its servers,",
			"fleet":   "workload fleet on one node is unsupported: its servers (2) stand on a node each",
			"tcp-rr":  "",
		}[c.Workload]
		if c.Placement == result.CrossNode && c.Workload == "fleet" {
			want = ""
		}
		if c.Placement == result.SameNode && c.Workload == "tcp-rr" {
			continue // live swaps have their own reasons
		}
		if !strings.HasPrefix(c.Unsupported, want) || (want == "") != (c.Unsupported == "") {
			t.Errorf("%s: %q, want %q", c.ID, c.Unsupported, want)
		}
	}
}

// Under live swaps as many builds are planned for as the study has, and one more than the least at any rate.
func TestBlocksArePlannedAsBuilds(t *testing.T) {
	require.Namespaces(t)
	for builds, want := range map[int]int{2: 3, plan.MinBuilds: plan.MinBuilds + 1, 10: 10} {
		s := served("fleet")
		s.Design.Blocks, s.Design.Builds = 0, builds
		p, err := experiment.Prepare(t.Context(), s, lab.NewDriver(network.Catalogue()), workloads())
		if err != nil || !p.Blocks || p.Rules.Builds != want {
			t.Errorf("%d builds: %v, in blocks %v, planned for %d, want %d", builds, err, p.Blocks, p.Rules.Builds, want)
		}
	}
}

// Servers that stand side by side must fit into memory together: settings that don't are left out, by name.
func TestServersFitIntoMemory(t *testing.T) {
	require.Namespaces(t)
	free, err := machine.FreeMemory()
	if err != nil {
		t.Fatal(err)
	}
	s := served("lone")
	s.Workloads[0].Levels = study.Levels{"connections": {1, 2, 3, 4}}
	all := workloads()
	for i := range all {
		if all[i].Name == "lone" {
			all[i].Demand = func(result.Params) workload.Demand { return workload.Demand{Programs: shell(), Memory: free / 10} }
		}
	}
	p, err := experiment.Prepare(t.Context(), s, lab.NewDriver(network.Catalogue()), all)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[int]bool{}
	for _, c := range p.Cells {
		if c.Skipped == "" {
			kept[c.Params.Connections] = true
		} else if !strings.Contains(c.Skipped, "of memory together") {
			t.Errorf("%s: %s", c.ID, c.Skipped)
		}
	}
	if len(kept) == 0 || len(kept) > 2 || !kept[1] {
		t.Errorf("kept %v: each takes four tenths of the memory that is free", kept)
	}
}
