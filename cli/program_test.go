package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"netdelta/internal/leak"
	"netdelta/internal/owner"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/stats"
)

// patience is far more than anything here takes, also on a machine that is busy with other work.
const patience = 2 * time.Minute

// The statuses that the program promises.
const (
	statusDone        = 0
	statusFailed      = 1
	statusUsage       = 2
	statusNothing     = 3
	statusInterrupted = 130
)

// smallStudy takes about two seconds.
const smallStudy = `study: small
baseline: host
networks: [host, bridge, macvlan]
placement: [cross-node]
workloads: [tcp-rr]
design: {burst: 2ms, builds: 6, rounds: 3, time_budget: 90s}
`

// longStudy goes on until it is stopped: its bursts can't resolve anything.
const longStudy = `study: long
baseline: host
networks: [host, bridge, macvlan]
placement: [cross-node]
workloads: [tcp-rr]
design: {burst: 2ms, builds: 500, rounds: 5, margin: 0%, time_budget: 1h}
`

// four ends a run of smallStudy after as many builds, one more than it takes for intervals, whether all is resolved or not.
func four(args ...string) []string {
	return append([]string{"run", "small.yaml", "--builds", "4"}, args...)
}

// undisturbed calls the program for a run of which three builds or more count, into the folder "run". What else this machine does may
// disturb all of a build, and two give no interval: then the run is resumed for three more, which are held against the machine as it is by then. It
// returns how the last call ended, and how many builds there are.
func undisturbed(t *testing.T, dir string, args ...string) (ran ending, builds int) {
	t.Helper()
	return undisturbedBy(t, dir, func(args ...string) ending { return call(t, dir, statusDone, args...) }, args...)
}

// undisturbedBy is undisturbed for another way to call the program.
func undisturbedBy(t *testing.T, dir string, call func(args ...string) ending, args ...string) (ran ending, builds int) {
	t.Helper()
	const most = 30
	ran = call(four(append([]string{"--out", "run"}, args...)...)...)
	for builds = 4; builds < most; {
		run := decode(t, read(t, filepath.Join(dir, "run", "result.json")))
		if !slices.ContainsFunc(run.Deltas, func(d result.Delta) bool { return d.Headline && d.Blocks < stats.DefaultMinBuilds }) &&
			!slices.ContainsFunc(run.Effects, func(e result.Effect) bool { return e.Headline && e.Blocks < stats.DefaultMinBuilds }) {
			break
		}
		builds += 3
		more := []string{"run", "--resume", "run", "--builds", strconv.Itoa(builds)}
		if slices.Contains(args, "--json") {
			more = append(more, "--json")
		}
		ran = call(more...)
	}
	return ran, builds
}

// wholeRun is a run of smallStudy in the folder "run" of dir, with how its call ended, which printed a document, and how many builds it has.
// The first test that asks makes it, and all others get the same: they look at it, or copy it.
func wholeRun(t *testing.T) (dir string, ran ending, builds int) {
	t.Helper()
	require.Namespaces(t)
	dir = filepath.Join(os.Getenv(keptFolder), "whole")
	made := filepath.Join(dir, "made.json") // written last
	if err := os.Mkdir(dir, 0o755); err == nil {
		write(t, filepath.Join(dir, "small.yaml"), smallStudy)
		ran, builds = undisturbed(t, dir, "--json", "--seed", "7")
		text, err := json.Marshal(madeRun{ran.stdout, ran.stderr, builds})
		if err != nil {
			t.Fatal(err)
		}
		write(t, made, string(text))
		nothingRuns(t)
		return dir, ran, builds
	}
	var s madeRun
	if err := json.Unmarshal([]byte(read(t, made)), &s); err != nil {
		t.Fatal(err)
	}
	return dir, ending{stdout: s.Stdout, stderr: s.Stderr}, s.Builds
}

// madeRun is what is kept of wholeRun in addition to its folder.
type madeRun struct {
	Stdout, Stderr string
	Builds         int
}

// labFolder is a fresh folder with both studies, on a machine where they can be run. When the test ends, nothing of the
// program may run still.
func labFolder(t *testing.T) string {
	t.Helper()
	require.Namespaces(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "small.yaml"), smallStudy)
	write(t, filepath.Join(dir, "long.yaml"), longStudy)
	t.Cleanup(func() { nothingRuns(t) })
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// command prepares a call of the program in a folder.
func command(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Getenv(tested), args...)
	cmd.Dir = dir
	// What runs of other tests differ by, all of which run at once, is not what this one's do.
	cmd.Env = append(os.Environ(), owner.StateVariable+"="+filepath.Join(dir, ".state"))
	return cmd
}

// ending is how a call of the program ended.
type ending struct {
	status         int // 128 and the signal's number for one that was killed
	stdout, stderr string
}

// finish runs a prepared call to its end.
func finish(t *testing.T, cmd *exec.Cmd) ending {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return await(t, cmd)
}

// await waits for a started call whose outputs are buffers.
func await(t *testing.T, cmd *exec.Cmd) ending {
	t.Helper()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	e := ending{status: status.ExitStatus(), stdout: fmt.Sprint(cmd.Stdout), stderr: fmt.Sprint(cmd.Stderr)}
	if status.Signaled() {
		e.status = 128 + int(status.Signal())
	}
	return e
}

// call runs the program in a folder and fails the test unless it ends with the status.
func call(t *testing.T, dir string, status int, args ...string) ending {
	t.Helper()
	return finish(t, command(t, dir, args...)).want(t, status)
}

// want fails the test unless the call ended with the status.
func (e ending) want(t *testing.T, status int) ending {
	t.Helper()
	if e.status != status {
		t.Fatalf("exit status %d, want %d\nstandard output:\n%s\nstandard error:\n%s", e.status, status, e.stdout, e.stderr)
	}
	return e
}

// says fails the test unless standard error has all the words.
func (e ending) says(t *testing.T, words ...string) ending {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(e.stderr, w) {
			t.Errorf("standard error does not say %q:\n%s", w, e.stderr)
		}
	}
	return e
}

// shows fails the test unless standard output has all the words, whatever the breaks between its lines.
func (e ending) shows(t *testing.T, words ...string) ending {
	t.Helper()
	text := strings.Join(strings.Fields(e.stdout), " ")
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("standard output does not show %q:\n%s", w, e.stdout)
		}
	}
	return e
}

// trials reads the journal of a run folder.
func trials(t *testing.T, dir string) []result.Trial {
	t.Helper()
	contents, err := result.LoadTrials(dir)
	if err != nil {
		t.Fatal(err)
	}
	if contents.Torn != "" {
		t.Errorf("the journal of a run that has ended is torn: %s", contents.Torn)
	}
	return contents.Trials
}

// running lists the processes of the program under test: calls under way and their agents.
func running(t *testing.T) []int {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, path := range found {
		if exe, err := os.Readlink(path); err == nil && exe == os.Getenv(tested) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// nothingRuns fails the test when processes of the program are still there after a while: agents of a killed run take
// notice by themselves.
func nothingRuns(t *testing.T) {
	t.Helper()
	nothingRunsIn(t, "")
}

// nothingRunsIn is nothingRuns of processes that work in one folder, which may be their own alone.
func nothingRunsIn(t *testing.T, dir string) {
	t.Helper()
	var left []int
	awaitRunning(t, func(pids []int) bool {
		left = slices.DeleteFunc(pids, func(pid int) bool {
			at, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)) // it may have ended
			return !strings.HasPrefix(at, dir)
		})
		return len(left) == 0
	})
	if len(left) > 0 {
		t.Errorf("processes %v of the program are still there", left)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // so that the next test starts clean
		}
	}
}

// awaitRunning waits until the processes of the program are as wanted and gives those that there are then.
func awaitRunning(t *testing.T, wanted func(pids []int) bool) []int {
	t.Helper()
	pids := running(t)
	for deadline := time.Now().Add(patience / 4); !wanted(pids) && time.Now().Before(deadline); pids = running(t) {
		time.Sleep(5 * time.Millisecond)
	}
	return pids
}

// agentsOf are the agents of a running call, oldest first.
func agentsOf(t *testing.T, run *exec.Cmd) []int {
	t.Helper()
	began := map[int]uint64{}
	for _, pid := range running(t) {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || pid == run.Process.Pid || !strings.HasSuffix(string(args), "\x00agent\x00") {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has ended meanwhile
		}
		// Field 22 is when it started; the third is the first after the name in parentheses. Numbers of processes start
		// anew when they run out, so they tell nothing of age.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if began[pid], err = strconv.ParseUint(fields[22-3], 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return slices.SortedFunc(maps.Keys(began), func(a, b int) int {
		return cmp.Or(cmp.Compare(began[a], began[b]), cmp.Compare(a, b))
	})
}

// start starts a call of the program whose outputs are kept in buffers.
func start(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	return begin(t, command(t, dir, args...))
}

// begin starts a prepared call. Its outputs are kept in buffers.
func begin(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	cmd.Stdout, cmd.Stderr = new(bytes.Buffer), new(bytes.Buffer)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil { // the test has failed before it waited: the program says where it stands as it ends
			_ = cmd.Process.Signal(syscall.SIGQUIT)
			_ = cmd.Wait()
			t.Logf("%v\n%.30000s", cmd.ProcessState, cmd.Stderr)
		}
	})
	return cmd
}

// awaitTrials waits until the journal of a run under way holds so many trials.
func awaitTrials(t *testing.T, dir string, atLeast int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // each look reads the whole journal
		contents, err := result.LoadTrials(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if len(contents.Trials) >= atLeast {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v the journal holds %d trials, want %d", patience, len(contents.Trials), atLeast)
		}
	}
}

// host takes a snapshot of the machine.
func host(t *testing.T) leak.Snapshot {
	t.Helper()
	s, err := leak.Host()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// untouched fails the test for each difference of the machine to an earlier snapshot.
func untouched(t *testing.T, before leak.Snapshot) {
	t.Helper()
	for _, line := range leak.Diff(before, host(t)) {
		t.Errorf("the host has changed: %s", line)
	}
}

// entries lists a folder, which need not exist.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range found {
		names = append(names, e.Name())
	}
	return names
}
