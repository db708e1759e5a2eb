package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed/lab/rootless"
)

// damaged is a copy of a run folder with one file changed.
func damaged(t *testing.T, folder, file string, change func(lines []string) []string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(read(t, filepath.Join(dir, file)), "\n")
	write(t, filepath.Join(dir, file), strings.Join(change(lines), ""))
	return dir
}

// What is wrong with a journal is said with its line; what was whole stays.
func TestDamagedJournal(t *testing.T) {
	dir, _, builds := wholeRun(t)
	t.Cleanup(func() { nothingRuns(t) })
	folder := filepath.Join(dir, "run")
	whole, more := trials(t, folder), strconv.Itoa(builds+1)

	refused := func(t *testing.T, dir string, words ...string) {
		t.Helper()
		before := read(t, filepath.Join(dir, result.TrialsFile))
		for _, args := range [][]string{{"show", dir}, {"show", dir, "--json"}, {"run", "--resume", dir}} {
			if e := call(t, dir, statusFailed, args...).says(t, words...); e.stdout != "" {
				t.Errorf("%v printed results: %s", args, e.stdout)
			}
		}
		if read(t, filepath.Join(dir, result.TrialsFile)) != before {
			t.Error("the journal was changed")
		}
	}
	t.Run("newer trial", func(t *testing.T) {
		refused(t, damaged(t, folder, result.TrialsFile, func(lines []string) []string {
			lines[1] = strings.Replace(lines[1], `"schema":1`, `"schema":7`, 1)
			return lines
		}), "trials.jsonl:2: ", "schema 7", "up to 1")
	})
	t.Run("newer result", func(t *testing.T) {
		refused(t, damaged(t, folder, result.ResultFile, func(lines []string) []string {
			return []string{strings.Replace(strings.Join(lines, ""), `"schema": 1`, `"schema": 7`, 1)}
		}), "result.json: ", "schema 7", "up to 1")
	})
	t.Run("corrupt middle", func(t *testing.T) {
		refused(t, damaged(t, folder, result.TrialsFile, func(lines []string) []string {
			lines[2] = lines[2][:len(lines[2])/2] + "\n"
			return lines
		}), "trials.jsonl:3: corrupt: ")
	})
	t.Run("torn end", func(t *testing.T) {
		torn := damaged(t, folder, result.TrialsFile, func(lines []string) []string {
			last := len(lines) - 2 // after the last line feed there is nothing
			return append(lines[:last], lines[last][:len(lines[last])-100])
		})
		note := fmt.Sprintf("trials.jsonl:%d: ", len(whole))
		call(t, dir, statusDone, "show", torn).shows(t, note)
		run := decode(t, call(t, dir, statusDone, "show", torn, "--json").stdout)
		if !strings.Contains(strings.Join(run.Notes, "\n"), note) {
			t.Errorf("the record does not say that a line was torn: %q", run.Notes)
		}
		resumed := call(t, dir, statusDone, "run", "--resume", torn, "--builds", more)
		resumed.shows(t, note, fmt.Sprintf("%d finished trials", len(whole)-1))
		kept(t, whole[:len(whole)-1], trials(t, torn))
	})
	t.Run("cut short", func(t *testing.T) {
		short := damaged(t, folder, result.TrialsFile, func(lines []string) []string { return lines[:len(lines)-3] })
		note := fmt.Sprintf("trials.jsonl holds %d trials, and held %d", len(whole)-2, len(whole))
		call(t, dir, statusDone, "show", short).shows(t, note)
		call(t, dir, statusDone, "run", "--resume", short, "--builds", more).shows(t, note)
	})
	t.Run("killed, then cut short", func(t *testing.T) {
		short := damaged(t, folder, result.TrialsFile, func(lines []string) []string { return lines[:len(lines)-3] })
		record := filepath.Join(short, result.ResultFile) // a killed run has never written how many trials there were
		write(t, record, strings.Replace(read(t, record), fmt.Sprintf(`"trials": %d,`, len(whole)), "", 1))
		note := fmt.Sprintf("trials.jsonl holds %d trials, and held %d when trials.count was written", len(whole)-2, len(whole))
		call(t, dir, statusDone, "show", short).shows(t, note)
		call(t, dir, statusDone, "report", short, "--format", "json").shows(t, note)
		if err := os.Remove(filepath.Join(short, result.CountFile)); err != nil { // as an older netdelta left it
			t.Fatal(err)
		}
		if got := call(t, dir, statusDone, "show", short).stdout; strings.Contains(got, "cut short") {
			t.Errorf("without a count:\n%s", got)
		}
	})
	t.Run("one digit", func(t *testing.T) {
		refused(t, damaged(t, folder, result.TrialsFile, func(lines []string) []string {
			lines[3] = strings.Replace(lines[3], `"transactions":[`, `"transactions":[9`, 1)
			return lines
		}), "trials.jsonl:4: corrupt: ", "checksum")
	})
	t.Run("failed build", func(t *testing.T) {
		failed := damaged(t, folder, result.TrialsFile, func(lines []string) []string {
			for i, tr := range whole { // all without checksums, as an older netdelta wrote them
				if tr.Build == 2 {
					tr.Failed = "its pod was lost"
				}
				line, err := json.Marshal(tr)
				if err != nil {
					t.Fatal(err)
				}
				lines[i] = string(line) + "\n"
			}
			return lines
		})
		before := trials(t, failed)
		e := call(t, dir, statusFailed, "run", "--resume", failed, "--builds", more).says(t, "4 trials failed")
		e.shows(t, "its pod was lost")
		after := trials(t, failed)
		kept(t, before, after) // the build that follows has a number of its own
		if len(after) != len(before)+4 {
			t.Errorf("%d trials, want the trials of one more build than the %d", len(after), len(before))
		}
	})
	t.Run("killed before its record", func(t *testing.T) {
		bare := damaged(t, folder, result.TrialsFile, func([]string) []string { return nil })
		for _, f := range []string{result.ResultFile, result.EnvironmentFile} {
			if err := os.Remove(filepath.Join(bare, f)); err != nil {
				t.Fatal(err)
			}
		}
		call(t, dir, statusDone, "run", "--resume", bare, "--builds", "3").shows(t, "bridge")
		if got := trials(t, bare); len(got) < 4 {
			t.Errorf("%d trials, want 4 or more", len(got))
		}
	})
}

// kept fails the test unless all trials of before are still there, first and in their order, as they were, and none twice.
func kept(t *testing.T, before, after []result.Trial) {
	t.Helper()
	seen := map[string]bool{}
	for i, tr := range after {
		if seen[tr.ID()] {
			t.Errorf("trial %s is twice in the journal", tr.ID())
		}
		seen[tr.ID()] = true
		if i < len(before) && fmt.Sprint(before[i].Bursts, before[i].Histogram, before[i].ID()) != fmt.Sprint(tr.Bursts, tr.Histogram, tr.ID()) {
			t.Errorf("trial %d was %s and is %s, or its figures were altered", i, before[i].ID(), tr.ID())
		}
	}
	if len(after) < len(before) {
		t.Errorf("%d trials of %d were lost", len(before)-len(after), len(before))
	}
}

// nobody makes a call as a user without any rights.
func nobody(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	require.Need(t, "root, to become another user", os.Geteuid() == 0)
	const number = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: number, Gid: number}}
	cmd.Dir = "/"
	return cmd
}

// open lets everybody into a test's folder; t.TempDir is its owner's alone.
func open(t *testing.T, dir string) {
	t.Helper()
	for d := dir; filepath.Clean(d) != filepath.Clean(os.TempDir()) && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// If a folder may not be written, the error gives the fix, and nothing is left. TestRootlessRefused covers missing rights.
func TestNoPermission(t *testing.T) {
	dir := labFolder(t)
	open(t, dir)
	require.Need(t, "user namespaces for users without root", rootless.Try() == nil)
	before := host(t)
	out := filepath.Join(dir, "run")
	// What this user needs for a lab netdelta gets by itself, but not the right to write there.
	unwritable := finish(t, nobody(t, command(t, dir, "run", filepath.Join(dir, "small.yaml"), "--out", out)))
	unwritable.want(t, statusFailed).says(t, "permission denied", "--out")
	if len(entries(t, out)) > 0 {
		t.Error("a folder that may not be written was written")
	}
	untouched(t, before)
}

// A user who may make user namespaces needs no root.
func TestRunInUserNamespace(t *testing.T) {
	dir := labFolder(t)
	open(t, dir)
	unshare := require.Tool(t, "unshare")
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	before := host(t)
	cmd := exec.Command(unshare, "-Urnm", os.Getenv(tested), "run", "small.yaml", "--builds", "3", "--quiet", "--out", "run")
	nobody(t, cmd)
	cmd.Dir = dir
	ran := finish(t, cmd)
	require.Need(t, "user namespaces for everybody", !strings.Contains(ran.stderr, "unshare"))
	ran.want(t, statusDone).shows(t, "bridge", "macvlan")
	untouched(t, before)
}
