package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"netdelta/experiment/guest"
	"netdelta/internal/require"
	"netdelta/result"
)

// TestRunInGuest runs a study in a guest that dies in the middle of it; goes on with it in another, and interrupts that; and ends
// it in a third. What was measured is kept throughout.
func TestRunInGuest(t *testing.T) {
	guestImage(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "long.yaml"), longStudy)
	out := filepath.Join(dir, "out")
	t.Cleanup(func() { nothingRuns(t) })

	first := begin(t, longCommand(t, dir, "run", "long.yaml", "--testbed", "vm", "--builds", "500", "--out", "out"))
	untilTrials(t, out, 3)
	killEmulator(t, first.Process.Pid)
	await(t, first).want(t, statusFailed).says(t, "guest").shows(t, "failed before its end")
	kept := len(trials(t, out))
	if kept < 3 {
		t.Fatalf("%d trials were kept", kept)
	}

	second := begin(t, longCommand(t, dir, "run", "--resume", "out"))
	untilTrials(t, out, kept+3)
	if err := second.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	await(t, second).want(t, statusInterrupted)
	kept = len(trials(t, out))

	last := trials(t, out)[kept-1].Build
	finish(t, longCommand(t, dir, "run", "--resume", "out", "--builds", strconv.Itoa(last+2))).want(t, statusDone)
	run, err := result.Load(out)
	if err != nil {
		t.Fatal(err)
	}
	e := run.Environment
	if run.Testbed != "vm" || !strings.Contains(e.Virtual, "QEMU") || e.Versions["accelerator"] == "" || e.Versions["qemu"] == "" {
		t.Errorf("testbed %q in %q with %v", run.Testbed, e.Virtual, e.Versions)
	}
	if len(trials(t, out)) <= kept {
		t.Errorf("%d trials, as many as before it was resumed", kept)
	}
	if _, err := os.Stat(filepath.Join(out, "report.html")); err != nil {
		t.Error(err)
	}
}

// TestDoctorLooksInGuest: the program that carries a run out inside a guest has the doctor look at what it is on.
func TestDoctorLooksInGuest(t *testing.T) {
	dir := labFolder(t)
	require.Need(t, "root, to mount a file over another", os.Geteuid() == 0)
	require.Tool(t, "unshare")
	write(t, filepath.Join(dir, "clock"), "hpet\n")
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c",
		`mount --bind clock /sys/devices/system/clocksource/clocksource0/current_clocksource && exec "$0" guest-run`, os.Getenv(tested))
	cmd.Dir = dir
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start(), json.NewEncoder(in).Encode(guest.Request{Study: smallStudy, Builds: 1})); err != nil {
		t.Fatal(err)
	}
	var first guest.Message
	err := json.NewDecoder(out).Decode(&first)
	_ = in.Close() // which interrupts the run
	_, _ = io.Copy(io.Discard, out)
	if err := errors.Join(err, cmd.Wait()); err != nil || first.Head == nil {
		t.Fatalf("%+v: %v", first, err)
	}
	if found := first.Head.Environment.Findings; !slices.ContainsFunc(found, func(f result.Finding) bool { return f.Topic == "clock" }) {
		t.Errorf("the doctor's findings are %+v", found)
	}
}

// TestRefusedStudyInGuest: what can't be run in the guest has the status that it has in the lab.
func TestRefusedStudyInGuest(t *testing.T) {
	guestImage(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "small.yaml"), smallStudy)
	finish(t, longCommand(t, dir, "run", "small.yaml", "--testbed", "vm", "--time-budget", "1ms", "--out", "out")).want(t, statusUsage).says(t, "budget")
	if _, err := os.Stat(filepath.Join(dir, "out")); !os.IsNotExist(err) {
		t.Errorf("a run that was refused has left a folder: %v", err)
	}
}

// untilTrials waits until so many trials are in the journal.
func untilTrials(t *testing.T, dir string, count int) {
	t.Helper()
	for deadline := time.Now().Add(guestPatience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(dir, result.TrialsFile))
		if err == nil && bytes.Count(text, []byte{'\n'}) >= count {
			return
		}
	}
	t.Fatalf("there were no %d trials within %v", count, guestPatience)
}

// killEmulator kills the emulator that a call has started.
func killEmulator(t *testing.T, call int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte("(qemu-system")) {
			continue
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if fields[1] != strconv.Itoa(call) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("the call has no emulator")
}
