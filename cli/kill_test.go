package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/leak"
	"netdelta/internal/require"
	"netdelta/result"
)

// kills is how often the run is killed, and sampleEvery after how many kills the machine is looked at.
const (
	kills       = 50
	sampleEvery = 10
)

// victim is a run that is killed again and again.
type victim struct {
	dir    string // has the study
	temp   string // where the program may put temporary files
	random *rand.Rand
	wires  int
}

func (v *victim) folder() string { return filepath.Join(v.dir, "run") }

// whole is the part of the journal that consists of whole lines, and its trials.
func (v *victim) whole(t *testing.T) ([]byte, []result.Trial) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(v.folder(), result.TrialsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	contents, err := result.ReadJournal(bytes.NewReader(data), "journal")
	if err != nil {
		t.Fatalf("a kill has damaged the journal: %v", err)
	}
	return data[:contents.Size], contents.Trials
}

// live starts the run or goes on with it.
func (v *victim) live(t *testing.T) *exec.Cmd {
	t.Helper()
	args := []string{"run", "--resume", "run", "--builds", "900", "--quiet"}
	if _, err := os.Stat(filepath.Join(v.folder(), result.StudyFile)); errors.Is(err, fs.ErrNotExist) {
		// It was killed before there was anything to go on with.
		if _, trials := v.whole(t); len(trials) > 0 {
			t.Fatalf("%d trials without the study", len(trials))
		}
		if err := os.RemoveAll(v.folder()); err != nil {
			t.Fatal(err)
		}
		args = []string{"run", "small.yaml", "--out", "run", "--builds", "900", "--quiet"}
	}
	cmd := command(t, v.dir, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+v.temp)
	cmd.Stdout, cmd.Stderr = new(bytes.Buffer), new(bytes.Buffer)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// wait lets the run live for a random time. Every other time it counts from the moment when the journal grows, so that
// also on a slow machine kills hit the middle of the work.
func (v *victim) wait(t *testing.T, kill int) {
	t.Helper()
	if kill%2 == 0 {
		time.Sleep(time.Duration(v.random.Int64N(int64(700 * time.Millisecond))))
		return
	}
	before, _ := v.whole(t)
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if now, _ := v.whole(t); len(now) > len(before) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("before kill %d nothing was measured in %v", kill+1, patience)
		}
	}
	time.Sleep(time.Duration(v.random.Int64N(int64(200 * time.Millisecond))))
}

// end kills the run. With sample it also stretches a wire into a namespace of the run and sees that it ends.
func (v *victim) end(t *testing.T, cmd *exec.Cmd, sample bool) {
	t.Helper()
	var wire *leak.Tripwire
	if agents := agentsOf(t, cmd); sample && len(agents) > 0 {
		var err error
		if wire, err = leak.NewTripwire(agents[0]); err != nil {
			wire = nil // the agent's build was removed just then
		} else {
			v.wires++
			defer wire.Close()
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatalf("the run ended before it was killed: %v", err)
	}
	if e := await(t, cmd); e.status != 128+int(syscall.SIGKILL) {
		t.Fatalf("the run ended with status %d before it was killed:\n%s", e.status, e.stderr)
	}
	if !sample {
		return
	}
	nothingRuns(t)
	if wire != nil {
		if err := wire.Wait(patience); err != nil {
			t.Error(err)
		}
	}
	call(t, v.dir, statusDone, "cleanup")
	if left := entries(t, v.temp); len(left) > 0 {
		t.Errorf("temporary files are left: %q", left)
	}
}

// A run that is killed at any moment, again and again, goes on from where it was and in the end has all that it ever had.
func TestKilledRunResumes(t *testing.T) {
	long(t)
	v := &victim{dir: labFolder(t), temp: t.TempDir(), random: rand.New(rand.NewPCG(3, 5))}
	before := host(t)
	var known []byte
	for kill := range kills {
		cmd := v.live(t)
		v.wait(t, kill)
		sample := kill%sampleEvery == sampleEvery-1
		v.end(t, cmd, sample)
		now, trials := v.whole(t)
		if !bytes.HasPrefix(now, known) {
			t.Fatalf("after kill %d the journal has lost or altered trials: it had %d bytes in whole lines and has %d", kill+1, len(known), len(now))
		}
		known = slices.Clone(now)
		kept(t, nil, trials)
		if sample {
			untouched(t, before)
		}
	}
	if v.wires == 0 {
		t.Error("no wire was ever stretched: the test shows nothing about namespaces")
	}
	_, trials := v.whole(t)
	builds := 0
	for _, tr := range trials {
		builds = max(builds, tr.Build+1)
	}
	done := call(t, v.dir, statusDone, "run", "--resume", "run", "--builds", fmt.Sprint(builds+2), "--json")
	now, all := v.whole(t)
	if !bytes.HasPrefix(now, known) {
		t.Error("the last life has lost or altered trials")
	}
	kept(t, trials, all)
	run := decode(t, done.stdout)
	networks := map[string]bool{}
	for _, d := range run.Deltas {
		if d.Headline && d.RatioLow != nil && *d.RatioLow < d.Ratio && d.Ratio < *d.RatioHigh {
			networks[d.Network] = true
		}
	}
	if len(networks) != 2 {
		t.Errorf("after %d kills and %d trials there are intervals for %v, want bridge and macvlan", kills, len(all), networks)
	}
	t.Logf("%d kills: %d trials of %d builds kept, %d wires", kills, len(trials), builds, v.wires)
	nothingRuns(t)
	untouched(t, before)
}

// stoppedOrphans leaves the agents of a killed run behind, stopped, so that they can't notice.
func stoppedOrphans(t *testing.T, dir, out string) []int {
	t.Helper()
	cmd := start(t, dir, "run", "long.yaml", "--out", out, "--quiet")
	awaitTrials(t, filepath.Join(dir, out), 4)
	agents := agentsOf(t, cmd)
	for _, pid := range agents {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, cmd).want(t, 128+int(syscall.SIGKILL))
	left := awaitRunning(t, func(pids []int) bool {
		return !slices.ContainsFunc(pids, func(pid int) bool { return !slices.Contains(agents, pid) })
	})
	t.Logf("agents %v were stopped, %v are left", agents, left)
	return left
}

// Stopped agents of a killed run are ended by cleanup, and by the next run. Another run on this machine may be faster: it
// does the same.
func TestStoppedAgents(t *testing.T) {
	dir := labFolder(t)
	before := host(t)
	for verb, args := range map[string][]string{
		"cleanup": {"cleanup"}, "run": six("--out", "next", "--quiet"),
	} {
		t.Run(verb, func(t *testing.T) {
			left := stoppedOrphans(t, dir, "killed-before-"+verb)
			e := call(t, dir, statusDone, args...)
			said := 0
			for _, pid := range left {
				if strings.Contains(e.stdout+e.stderr, fmt.Sprintf("process netdelta (%d)", pid)) {
					said++
				}
			}
			t.Logf("%d of %d named", said, len(left))
			if now := running(t); len(now) > 0 {
				t.Errorf("processes %v are still there", now)
			}
			untouched(t, before)
		})
	}
}

// An interrupted run keeps and shows what it has.
func TestInterrupt(t *testing.T) {
	dir := labFolder(t)
	before := host(t)
	for name, signal := range map[string]os.Signal{"SIGINT": os.Interrupt, "SIGTERM": syscall.SIGTERM, "SIGHUP": syscall.SIGHUP} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(dir, name)
			cmd := start(t, dir, "run", "long.yaml", "--out", name, "--seed", "5")
			awaitTrials(t, folder, 8)
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			e := await(t, cmd).want(t, statusInterrupted)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("the run ended %v after the signal", took)
			} else {
				t.Logf("the run ended %v after the signal", took)
			}
			for _, file := range []string{"environment.json", "report.html"} {
				if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
					t.Error(err)
				}
			}
			e.shows(t, "bridge", "macvlan", "null check").says(t, "interrupted; what was measured is kept")
			if got := trials(t, folder); len(got) < 8 {
				t.Errorf("%d trials were kept, want 8 or more", len(got))
			}
			conforms(t, "result.schema.json", []byte(read(t, filepath.Join(folder, "result.json"))))
			run := decode(t, call(t, dir, statusDone, "show", name, "--json").stdout)
			if run.Ended != "interrupted" || len(run.Deltas) == 0 {
				t.Errorf("the run ended %q with %d deltas", run.Ended, len(run.Deltas))
			}
			nothingRuns(t)
			untouched(t, before)
		})
	}
}

// What only computes ends at once, also while its output is not read.
func TestInterruptedReport(t *testing.T) {
	dir := t.TempDir()
	runs(t, dir, "old")
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	size, err := unix.FcntlInt(out.Fd(), unix.F_SETPIPE_SZ, 1)
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(t, dir, "report", "old", "--out", "-")
	cmd.Stdout = out
	if err := errors.Join(cmd.Start(), out.Close()); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool { // the pipe is full
		n, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCINQ)
		return err == nil && n >= size
	}) {
		t.Fatal("the page is not printed")
	}
	began := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if e := await(t, cmd); e.status != statusInterrupted || time.Since(began) > time.Second {
		t.Errorf("exit status %d after %v", e.status, time.Since(began))
	}
}

// The page is written whatever becomes of standard output.
func TestFullOutput(t *testing.T) {
	dir := labFolder(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	cmd := command(t, dir, six("--out", "run", "--quiet")...)
	cmd.Stdout, cmd.Stderr = full, new(bytes.Buffer)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, cmd).want(t, statusFailed).says(t, "write /dev/stdout: no space left on device")
	for _, file := range []string{"report.html", "metrics.txt"} {
		if _, err := os.Stat(filepath.Join(dir, "run", file)); err != nil {
			t.Error(err)
		}
	}
}

// An interrupt counts at any moment, also while networks are being built.
func TestInterruptEarly(t *testing.T) {
	long(t)
	dir := labFolder(t)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range 8 {
		cmd := start(t, dir, "run", "long.yaml", "--out", fmt.Sprint("run", i), "--quiet")
		time.Sleep(time.Duration(random.Int64N(int64(500 * time.Millisecond))))
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		await(t, cmd).want(t, statusInterrupted)
		if left := running(t); len(left) > 0 {
			t.Errorf("processes %v outlived the interrupted run", left)
		}
	}
}

// Two runs measure one after the other; two runs in one folder are one too many.
func TestTwoRuns(t *testing.T) {
	dir := labFolder(t)
	before := host(t)
	one, two := start(t, dir, six("--out", "one")...), start(t, dir, six("--out", "two")...)
	said := await(t, one).want(t, statusDone).shows(t, "bridge").stderr + await(t, two).want(t, statusDone).shows(t, "bridge").stderr
	if n := strings.Count(said, "waiting for up to 30m: another run measures on processor "); n != 1 {
		t.Errorf("%d runs have waited for the other, want 1:\n%s", n, said)
	}
	for _, out := range []string{"one", "two"} {
		if got := trials(t, filepath.Join(dir, out)); len(got) != 24 {
			t.Errorf("run %s has %d trials, want the trials of 4 cells in 6 builds", out, len(got))
		}
	}

	first := start(t, dir, "run", "long.yaml", "--out", "both")
	awaitTrials(t, filepath.Join(dir, "both"), 4)
	call(t, dir, statusFailed, "run", "--resume", "both").says(t, "the run folder is in use by another run; wait until it has ended or choose another folder")
	call(t, dir, statusUsage, "run", "long.yaml", "--out", "both").says(t, "it is not empty")
	call(t, dir, statusFailed, six("--out", "third", "--wait", "0")...).says(t,
		"another run measures on processor ", fmt.Sprintf("(process %d, run folder %s)", first.Process.Pid, filepath.Join(dir, "both")), "wait for its end by --wait")
	if left := entries(t, filepath.Join(dir, "third")); len(left) > 0 {
		t.Errorf("a run that did not begin has left %q", left)
	}
	call(t, dir, statusFailed, six("--out", "fourth", "--wait", "500ms")...).says(t, "waiting for up to 500ms: ", " still after 500ms; wait longer by --wait")
	call(t, dir, statusDone, "show", "both").shows(t, "bridge")
	if err := first.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	await(t, first).want(t, statusInterrupted)
	kept(t, nil, trials(t, filepath.Join(dir, "both")))
	untouched(t, before)
}

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
func TestLostPod(t *testing.T) {
	long(t)
	dir := labFolder(t)
	for name, signal := range map[string]syscall.Signal{"dies": syscall.SIGKILL, "hangs": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(dir, name)
			cmd := start(t, dir, "run", "small.yaml", "--builds", "8", "--rounds", "40", "--out", name)
			awaitTrials(t, folder, 4)
			agents := alone(t, agentsOf(t, cmd))
			require.Need(t, "a run that is under way still", len(agents) > 0)
			// The newest is of the build that is measured next, if not of the one that is measured now.
			if err := syscall.Kill(agents[len(agents)-1], signal); err != nil {
				t.Fatal(err)
			}
			e := await(t, cmd).want(t, statusFailed).says(t, "trials failed; they are named above and left out of every delta")
			var failed []result.Trial
			whole := map[string]int{}
			for _, tr := range trials(t, folder) {
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
			for cell, builds := range whole {
				if builds < 7 {
					t.Errorf("%s was measured in %d builds, want 7 of 8 at least", cell, builds)
				}
			}
			run := decode(t, call(t, dir, statusDone, "show", name, "--json").stdout)
			if len(run.Deltas) == 0 || len(run.Null) == 0 {
				t.Errorf("%d deltas and %d null checks", len(run.Deltas), len(run.Null))
			}
			nothingRuns(t)
		})
	}
}
