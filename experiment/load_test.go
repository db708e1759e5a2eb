package experiment_test

import (
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"netdelta/experiment"
	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/probe/pressure"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
)

// alias is the catalogue with a network of it under a second name: the truth is that the two cost the same.
func alias(t *testing.T, of, name string) []network.Network {
	t.Helper()
	networks := network.Catalogue()
	n, err := network.Find(networks, of)
	if err != nil {
		t.Fatal(err)
	}
	n.Name = name
	return append(networks, n)
}

// rude is a load that takes the processor from everybody, about a millisecond long, again and again.
const rude = "while :; do i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; sleep 0.001; done"

// hog runs a load on a processor, ahead of all ordinary processes, until the function it returns is called.
func hog(t *testing.T, cpu int) (end func()) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", rude)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start a background load: %v", err)
	}
	end = func() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // with what it sleeps in
		_ = cmd.Wait()                                // it was killed: that is its only way to end
	}
	var set unix.CPUSet
	set.Set(cpu)
	err := unix.SchedSetaffinity(cmd.Process.Pid, &set)
	if err == nil {
		err = unix.SchedSetAttr(cmd.Process.Pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
	}
	if err != nil {
		end()
		t.Fatalf("put the background load on processor %d ahead of others: %v", cpu, err)
	}
	return end
}

// A load on the measuring processor that begins when a third of the run is over and ends before its last third must not
// make two equal networks differ, nor hide which of two different ones is slower: its bursts are marked and left out.
func TestLoadThatBeginsMidRunGivesNoFalseVerdictWhenQuiet(t *testing.T) {
	require.Quiet(t)
	const builds = 9
	s := small([]string{"bridge", "bridge-again", "vxlan"}, result.CrossNode)
	s.Baseline = "bridge"
	s.Design.Builds, s.Design.Rounds, s.Design.Confidence = builds, 16, 0.99
	c := setUpOn(t, alias(t, "bridge", "bridge-again"), s, builds, nil)
	load := &phases{t: t, cpu: c.Measuring[0], first: builds/3 + 1, last: 2 * builds / 3}
	t.Cleanup(load.end)
	c.Progress = load
	run := mustRun(t, c)
	load.end()
	if !load.came {
		t.Fatal("the background load never began: the test shows nothing")
	}
	for _, d := range slices.Concat(run.Null, run.Deltas) {
		if !d.Headline {
			continue
		}
		t.Logf("%s: ratio %.3f %s, left out %v", d.Cell, d.Ratio, d.Verdict, d.Excluded)
		switch verdict := stats.Verdict(d.Verdict); {
		case d.Network != "vxlan" && (verdict == stats.Slower || verdict == stats.Faster):
			t.Errorf("%s is called %s than itself (ratio %.3f)", d.Network, verdict, d.Ratio)
		case d.Network == "vxlan" && verdict != stats.Slower && verdict != stats.Unresolved:
			t.Errorf("vxlan is called %s as bridge (ratio %.3f)", verdict, d.Ratio)
		}
	}
	quiet, loaded := shares(journal(t, c), load.first-1, load.last-1)
	t.Logf("%.0f%% of the bursts under load are marked and %.0f%% of the others", 100*loaded, 100*quiet)
	if loaded < 0.2 || loaded < 2*quiet {
		t.Error("the load went unnoticed")
	}
}

// A load that is there from the start is said, and nothing that it may have caused gets a verdict: a loop on each processor takes all the
// time that there is.
func TestLoadThatIsThereFromTheStartIsNamed(t *testing.T) {
	s := small([]string{"bridge", "vxlan"}, result.CrossNode)
	c := assembled(t, network.Catalogue(), s, 3, nil)
	for range runtime.NumCPU() {
		cmd := exec.Command("/bin/sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed: that is its only way to end
		})
	}
	run := mustRun(t, c)
	for _, d := range slices.Concat(run.Null, run.Deltas) {
		if d.Verdict != string(stats.Unresolved) {
			t.Errorf("%s: %s is %s", d.Cell, d.Metric, d.Verdict)
		}
	}
	busy, found := gather.First(run.Checks, func(c result.Check) bool { return c.Check == insight.CheckBusy })
	if !found {
		t.Fatalf("nothing is said of the load: %v", run.Checks)
	}
	if first := words.Caveats(run)[0]; !strings.Contains(first, "busy throughout") || !strings.Contains(first, busy.Observed) {
		t.Errorf("the first table has %q before it", first)
	}
}

// shares are the parts of all bursts that are marked as disturbed, outside the given builds and within them.
func shares(trials []result.Trial, first, last int) (quiet, loaded float64) {
	var marked, all [2]float64
	for _, tr := range trials {
		where := 0
		if tr.Build >= first && tr.Build <= last {
			where = 1
		}
		for _, reason := range tr.Bursts.Disturbed {
			all[where]++
			if reason == pressure.ReasonPreempted || reason == pressure.ReasonPressure {
				marked[where]++
			}
		}
	}
	return marked[0] / max(all[0], 1), marked[1] / max(all[1], 1)
}

// phases runs a background load during some builds of a run, numbered from 1.
type phases struct {
	t           *testing.T
	cpu         int
	first, last int
	came        bool
	stop        func()
}

func (p *phases) Update(s experiment.Status) {
	switch {
	case s.Build >= p.first && s.Build <= p.last && p.stop == nil:
		p.came, p.stop = true, hog(p.t, p.cpu)
	case s.Build > p.last:
		p.end()
	}
}

func (p *phases) end() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
}
