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

	"github.com/prometheus/procfs"

	"netdelta/internal/leak"
	"netdelta/internal/owner"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

// The signals that strike, by short names.
const (
	sigkill = syscall.SIGKILL
	sigstop = syscall.SIGSTOP
	sigterm = syscall.SIGTERM
	sighup  = syscall.SIGHUP
)

// kills is how often the run is killed, and sampleEvery after how many kills the machine is looked at: where the run was killed in the midst
// of its work.
const (
	kills       = 12
	sampleEvery = 4
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
func killedAgainAndAgain(c *chaos) {
	t := c.T
	v := &victim{dir: c.dir, temp: t.TempDir(), random: rand.New(rand.NewPCG(3, 5))}
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
	c.said = fmt.Sprintf("%d kills: %d trials of %d builds kept", kills, len(trials), builds)
}

// A run that is killed once goes on where it was.
func killedOnce(c *chaos) {
	t := c.T
	folder := filepath.Join(c.dir, "run")
	cmd := begin(t, c.command(c.run("long.yaml", "--out", "run", "--quiet")...))
	c.awaitTrials(folder, 4)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	await(t, cmd).want(t, 128+int(sigkill))
	c.nothingRuns()
	c.ended(began)
	before := trials(t, folder)
	builds := before[len(before)-1].Build + 2
	finish(t, c.command(c.run("--resume", "run", "--builds", fmt.Sprint(builds), "--quiet")...)).want(t, statusDone)
	after := trials(t, folder)
	kept(t, before, after)
	if len(after) <= len(before) {
		t.Errorf("%d trials before the kill, %d in the end", len(before), len(after))
	}
	if c.flags != nil {
		call(t, c.dir, statusDone, append([]string{"cleanup"}, withoutImage(c.flags)...)...)
	}
	c.said = fmt.Sprintf("%d trials kept, %d in the end", len(before), len(after))
}

// What a killed run leaves of control groups, the next run removes.
func killedWithGroups(c *chaos) {
	t := c.T
	require.Need(t, "control groups of version 2 and eBPF, to join sockets",
		lab.NewDriver(network.Catalogue()).Supports(t.Context(), testbed.Spec{Network: "sockmap"}) == nil)
	cmd := start(t, c.dir, c.run("long.yaml", "--networks", "host,sockmap", "--placement", "same-node", "--builds", "500", "--out", "run")...)
	made := eventually(func() bool { return len(groupsOf(t, cmd.Process.Pid)) > 0 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if e := await(t, cmd); !made {
		t.Fatalf("no control group was made:\n%s", e.stderr)
	}
	nothingRuns(t)
	left := groupsOf(t, cmd.Process.Pid)
	began := time.Now()
	call(t, c.dir, statusDone, three("--out", "next", "--quiet")...)
	c.ended(began)
	if still := groupsOf(t, cmd.Process.Pid); len(still) > 0 {
		t.Errorf("%q are left", still)
	}
	c.said = fmt.Sprintf("%d control groups were left; the next run has removed them", len(left))
}

// groupsOf are the control groups of a program's labs.
func groupsOf(t *testing.T, pid int) []string {
	t.Helper()
	var found []string
	mounts, err := procfs.GetMounts()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mounts {
		if m.FSType != "cgroup2" {
			continue
		}
		err := filepath.WalkDir(m.MountPoint, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.IsDir() {
				return nil //nolint:nilerr // what goes away while it is looked at is no group
			}
			mark, ours := strings.CutPrefix(e.Name(), "netdelta-")
			if o, err := owner.Parse(mark); ours && err == nil && o.PID == pid {
				found = append(found, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
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

// Stopped agents of a killed run are ended by cleanup, and by the next run. Another run on this machine may be faster: it does the same.
func stoppedOrphansEnd(c *chaos, args ...string) {
	t := c.T
	left := stoppedOrphans(t, c.dir, "killed")
	began := time.Now()
	e := call(t, c.dir, statusDone, args...)
	c.ended(began)
	said := 0
	for _, pid := range left {
		if strings.Contains(e.stdout+e.stderr, fmt.Sprintf("process netdelta (%d)", pid)) {
			said++
		}
	}
	c.said = fmt.Sprintf("%d of %d processes named that were ended", said, len(left))
	if now := running(t); len(now) > 0 {
		t.Errorf("processes %v are still there", now)
	}
}

// An interrupted run keeps and shows what it has.
func interrupted(c *chaos, signal os.Signal) {
	t := c.T
	folder := filepath.Join(c.dir, "run")
	cmd := begin(t, c.command(c.run("long.yaml", "--builds", "500", "--out", "run", "--seed", "5")...))
	c.awaitTrials(folder, 8)
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	e := await(t, cmd).want(t, statusInterrupted)
	c.ended(began)
	if c.took > 5*time.Second && c.flags == nil {
		t.Errorf("the run ended %v after the signal", c.took)
	}
	for _, file := range []string{"environment.json", "report.html"} {
		if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
			t.Error(err)
		}
	}
	e.shows(t, "null check", "next netdelta run --resume run").says(t, "interrupted; what was measured is kept")
	kept := len(trials(t, folder))
	if kept < 8 {
		t.Errorf("%d trials were kept, want 8 or more", kept)
	}
	conforms(t, "result.schema.json", []byte(read(t, filepath.Join(folder, "result.json"))))
	run := decode(t, call(t, c.dir, statusDone, "show", "run", "--json").stdout)
	if run.Ended != "interrupted" || len(run.Deltas) == 0 {
		t.Errorf("the run ended %q with %d deltas", run.Ended, len(run.Deltas))
	}
	c.said = fmt.Sprintf("%d trials kept, the page is written", kept)
}

// An interrupt counts at any moment, also while networks are being built.
func interruptedEarly(c *chaos) {
	t, dir := c.T, c.dir
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
