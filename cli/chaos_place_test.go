package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/require"
	"netdelta/result"
)

// mounting runs a shell script in a mount namespace of its own. One that ends with status 77 could not mount.
func (c *chaos) mounting(cmd *exec.Cmd) ending {
	c.Helper()
	require.Tool(c.T, "mount")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	cmd.Stdout, cmd.Stderr = new(bytes.Buffer), new(bytes.Buffer)
	err := cmd.Start()
	require.Need(c.T, "a private mount namespace with a tmpfs", !errors.Is(err, unix.EPERM))
	if err != nil {
		c.Fatal(err)
	}
	e := await(c.T, cmd)
	require.Need(c.T, "a private mount namespace with a tmpfs", e.status != 77)
	return e
}

// A full disk stops the run; what was written is valid and can be shown.
func fullDisk(c *chaos) {
	t := c.T
	if err := os.Mkdir(filepath.Join(c.dir, "disk"), 0o755); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	// 72 KiB hold a few builds.
	e := c.inPrivate(`mount -t tmpfs -o size=72k tmpfs disk || exit 77
		"$0" run long.yaml --builds 1000 --out disk/run --json >ran.json; echo "run $?"
		"$0" show disk/run --json >shown.json; echo "show $?"
		cp disk/run/trials.jsonl disk/run/result.json .`)
	c.ended(began)
	e.want(t, statusDone).shows(t, "run 1 show 0").says(t, "no space left on device", "free some space there and go on with --resume")
	whole := trials(t, c.dir)
	ran, shown := decode(t, read(t, filepath.Join(c.dir, "ran.json"))), decode(t, read(t, filepath.Join(c.dir, "shown.json")))
	if ran.Ended != "failed" || len(whole) == 0 || len(shown.Deltas) == 0 {
		t.Errorf("the run ended %q; %d trials, %d deltas shown", ran.Ended, len(whole), len(shown.Deltas))
	}
	c.said = fmt.Sprintf("no space left on device; %d trials kept", len(whole))
}

// A run whose folder is moved away goes on in it, and says where it is.
func folderVanishes(c *chaos) {
	t := c.T
	folder, gone := filepath.Join(c.dir, "run"), filepath.Join(c.dir, "gone")
	cmd := start(t, c.dir, c.run("long.yaml", "--out", "run")...)
	awaitTrials(t, folder, 4)
	began := time.Now()
	if err := os.Rename(folder, gone); err != nil {
		t.Fatal(err)
	}
	await(t, cmd).want(t, statusFailed).says(t, "was moved or replaced while the run wrote to it", "its trials are in "+gone, "--resume "+gone)
	c.ended(began)
	if len(entries(t, folder)) > 0 {
		t.Error("something was written where the folder was")
	}
	c.said = fmt.Sprintf("its %d trials are where it was moved to", len(trials(t, gone)))
}

// The page is written whatever becomes of standard output.
func fullOutput(c *chaos) {
	t := c.T
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	cmd := c.command(c.run("small.yaml", "--builds", "3", "--out", "run", "--quiet")...)
	cmd.Stdout, cmd.Stderr = full, new(bytes.Buffer)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, cmd).want(t, statusFailed).says(t, "write /dev/stdout: no space left on device")
	for _, file := range []string{"report.html", "metrics.txt"} {
		if _, err := os.Stat(filepath.Join(c.dir, "run", file)); err != nil {
			t.Error(err)
		}
	}
	c.said = "no space left on device; the page and the metrics are written"
}

// Unread messages hold no run.
func unreadMessages(c *chaos) {
	t := c.T
	cmd := command(t, c.dir, three("--out", "run")...)
	cmd.Stdout, cmd.Stderr = new(bytes.Buffer), unreadPipe(t, true)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, cmd).want(t, statusDone).shows(t, "bridge")
	c.said = fmt.Sprintf("%d trials", len(trials(t, filepath.Join(c.dir, "run"))))
}

// A run needs no home: neither of a user nor of the machine.
func readOnlyHomes(c *chaos) {
	t := c.T
	if err := os.Mkdir(filepath.Join(c.dir, "ro"), 0o755); err != nil {
		t.Fatal(err)
	}
	e := c.inPrivate(`mount -t tmpfs -o ro tmpfs ro || exit 77
		export HOME=$PWD/ro XDG_STATE_HOME=$PWD/ro/state XDG_CACHE_HOME=$PWD/ro/cache XDG_RUNTIME_DIR=$PWD/ro
		exec "$0" "$@"`, c.run("small.yaml", "--builds", "3", "--out", "run", "--quiet")...)
	e.want(t, statusDone).shows(t, "bridge")
	c.said = fmt.Sprintf("%d trials", len(trials(t, filepath.Join(c.dir, "run"))))
}

// Two runs measure one after the other; two runs in one folder are one too many.
func otherRuns(c *chaos) {
	t, dir := c.T, c.dir
	one, two := start(t, dir, three("--out", "one")...), start(t, dir, three("--out", "two")...)
	said := await(t, one).want(t, statusDone).shows(t, "bridge").stderr + await(t, two).want(t, statusDone).shows(t, "bridge").stderr
	if n := strings.Count(said, "waiting for up to 30m: another run measures on processor "); n != 1 {
		t.Errorf("%d runs have waited for the other, want 1:\n%s", n, said)
	}
	for _, out := range []string{"one", "two"} {
		if got := trials(t, filepath.Join(dir, out)); len(got) != 12 {
			t.Errorf("run %s has %d trials, want the trials of 4 cells in 3 builds", out, len(got))
		}
	}

	first := start(t, dir, "run", "long.yaml", "--builds", "500", "--out", "both")
	awaitTrials(t, filepath.Join(dir, "both"), 4)
	call(t, dir, statusFailed, "run", "--resume", "both").says(t, "the run folder is in use by another run; wait until it has ended or choose another folder")
	call(t, dir, statusUsage, "run", "long.yaml", "--out", "both").says(t, "it is not empty")
	call(t, dir, statusFailed, three("--out", "third", "--wait", "0")...).says(t,
		"another run measures on processor ", fmt.Sprintf("(process %d, run folder %s)", first.Process.Pid, filepath.Join(dir, "both")), "wait for its end by --wait")
	if left := entries(t, filepath.Join(dir, "third")); len(left) > 0 {
		t.Errorf("a run that did not begin has left %q", left)
	}
	call(t, dir, statusFailed, three("--out", "fourth", "--wait", "500ms")...).says(t, "waiting for up to 500ms: ", " still after 500ms; wait longer by --wait")
	call(t, dir, statusFailed, "hops", "--network", "bridge", "--wait", "0").says(t, "another run measures on processor ")
	call(t, dir, statusDone, "show", "both").shows(t, "bridge")
	if err := first.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	await(t, first).want(t, statusInterrupted)
	kept(t, nil, trials(t, filepath.Join(dir, "both")))
	c.said = "it waits for its turn; in the same folder it is refused"
}

// Of twenty runs at once each measures, or says which other one does.
func twentyRuns(c *chaos) {
	t := c.T
	const wait = 7 * time.Second // some measure meanwhile, and some wait in vain
	var runs [20]*exec.Cmd
	name := func(i int) string { return fmt.Sprintf("run%d", i) }
	for i := range runs {
		runs[i] = start(t, c.dir, "run", "small.yaml", "--builds", "1", "--quiet", "--wait", wait.String(), "--out", name(i))
	}
	measured := 0
	for i, run := range runs {
		e := await(t, run)
		switch e.status {
		case statusDone:
			measured++
			if got := trials(t, filepath.Join(c.dir, name(i))); len(got) != 4 {
				t.Errorf("%s has %d trials, want the trials of 4 cells", name(i), len(got))
			}
		case statusFailed:
			e.says(t, "another run measures on processor ", fmt.Sprintf(" still after %v; wait longer by --wait", wait))
		default:
			t.Errorf("%s ended with status %d: %s", name(i), e.status, e.stderr)
		}
	}
	if measured < 2 {
		t.Errorf("%d runs of 20 have measured in %v", measured, wait)
	}
	c.said = fmt.Sprintf("%d measured, each in its turn; %d said which run did", measured, len(runs)-measured)
}

// A clock that is set back and forth while a run measures changes no figure and ends no wait: all spans are of the monotonic clock.
func clockSteps(c *chaos) {
	t := c.T
	guestImage(t)
	const script = `/netdelta run /study.yaml --builds 4 --time-budget 10m --out /ran --quiet >/dev/null & run=$!
		while kill -0 $run 2>/dev/null; do
			date -s @$(($(date +%s) + 3600)) >/dev/null; sleep 1
			date -s @$(($(date +%s) - 3600)) >/dev/null; sleep 1
		done
		wait $run || exit; cat /ran/trials.jsonl`
	began := time.Now()
	e := finish(t, longCommand(t, c.dir, "vm", "exec", "--file", filepath.Join(c.dir, "small.yaml")+":/study.yaml", "--", "sh", "-c", script))
	c.ended(began)
	e.want(t, statusDone)
	journal, err := result.ReadJournal(strings.NewReader(e.stdout), "the guest's journal")
	if err != nil || len(journal.Trials) < 16 {
		t.Fatalf("%d trials: %v\n%s", len(journal.Trials), err, e.stderr)
	}
	for _, tr := range journal.Trials {
		if !tr.Measured() {
			t.Errorf("%s failed: %s", tr.ID(), tr.Failed)
		}
		for i, span := range tr.Bursts.Span {
			if start := tr.Bursts.Start[i]; span < 0 || span > int64(time.Minute) || start < 0 || start > int64(guestPatience) {
				t.Errorf("%s has a burst of %v that began after %v", tr.ID(), time.Duration(span), time.Duration(start))
			}
		}
	}
	c.said = fmt.Sprintf("%d trials, whose times know nothing of it", len(journal.Trials))
}
