package result

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/require"
)

// writeForever resumes the run in dir and appends trials until it is killed. It prints the build of each trial once
// Append has acknowledged it.
func writeForever(dir string) error {
	folder, err := Open(dir, nil)
	if err != nil {
		return err
	}
	for build := len(folder.Contents.Trials); ; build++ {
		if err := folder.Append(sampleTrial(build)); err != nil {
			return err
		}
		if err := folder.WriteResult(Run{Schema: Schema, Seed: uint64(build)}); err != nil {
			return err
		}
		fmt.Println(build)
	}
}

// TestKilledWriterLosesNothing kills a writer fifty times at random points. Each time the journal must open, hold every
// trial that was acknowledged, and hold them in order.
func TestKilledWriterLosesNothing(t *testing.T) {
	dir := filled(t, 0)
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	acknowledged := -1
	for kill := range 50 {
		last, err := writeAndKill(t, dir, random)
		if err != nil {
			t.Fatalf("kill %d: %v", kill, err)
		}
		acknowledged = max(acknowledged, last)
		folder, err := Open(dir, nil)
		if err != nil {
			t.Fatalf("kill %d: %v", kill, err)
		}
		trials := folder.Contents.Trials
		if len(trials) <= acknowledged {
			t.Fatalf("kill %d: %d trials in the journal, but number %d was acknowledged", kill, len(trials), acknowledged)
		}
		for i, trial := range trials {
			if trial.Build != i {
				t.Fatalf("kill %d: trial %d is of build %d", kill, i, trial.Build)
			}
		}
		if _, err := Load(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("kill %d: %v", kill, err)
		}
		if err := folder.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if acknowledged < 50 {
		t.Fatalf("only %d trials were acknowledged in 50 lives", acknowledged+1)
	}
	t.Logf("50 kills, %d acknowledged trials, none lost", acknowledged+1)
}

// writeAndKill lets a writer acknowledge a few trials, kills it some random time later, and returns the last
// acknowledged one, -1 if there was none.
func writeAndKill(t *testing.T, dir string, random *rand.Rand) (int, error) {
	t.Helper()
	cmd := child(t, "writer", dir)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	var complaint strings.Builder
	cmd.Stderr = &complaint
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	last, atLeast := -1, random.IntN(4)
	delay := time.Duration(random.IntN(3000)) * time.Microsecond
	lines := bufio.NewScanner(stdout)
	killed := false
	for count := 0; ; count++ {
		if count == atLeast && !killed {
			killed = true
			time.AfterFunc(delay, func() { _ = cmd.Process.Kill() })
		}
		if !lines.Scan() {
			break
		}
		if last, err = strconv.Atoi(lines.Text()); err != nil {
			break // a line that the kill cut short was not acknowledged in full
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		return 0, fmt.Errorf("the writer ended by itself: %w: %s", err, complaint.String())
	}
	return last, nil
}

// inPrivateMounts runs cmd in a mount namespace of its own and returns its output; it skips the test where none can be had.
func inPrivateMounts(t *testing.T, cmd *exec.Cmd) []byte {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	output, err := cmd.CombinedOutput()
	refused := errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSPC)
	require.Need(t, "a private mount namespace with a tmpfs", !refused && !strings.Contains(string(output), "can't mount"))
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return output
}

// mountTmpfs puts an empty file system of the given size over dir, seen by this process alone: it must have a mount
// namespace of its own.
func mountTmpfs(dir, size string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("can't mount privately: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		return fmt.Errorf("can't mount tmpfs: %w", err)
	}
	return nil
}

// fillDisk appends to a journal on a file system that gets full, frees space, and goes on.
func fillDisk(dir string) error {
	if err := mountTmpfs(dir, "256k"); err != nil {
		return err
	}
	run, ballast := filepath.Join(dir, "run"), filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 64<<10), 0o644); err != nil {
		return err
	}
	folder, err := Create(run, []byte("study: full\n"))
	if err != nil {
		return err
	}
	if err := folder.WriteResult(Run{Schema: Schema, Seed: 1}); err != nil {
		return err
	}
	appended := 0
	for err = folder.Append(sampleTrial(0)); err == nil; err = folder.Append(sampleTrial(appended)) {
		appended++
	}
	fmt.Println(err)
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "free some space") {
		return fmt.Errorf("not the error of a full disk: %w", err)
	}
	if err := checkJournal(run, appended); err != nil {
		return err
	}
	long := Run{Schema: Schema, Seed: 2, Question: strings.Repeat("why? ", 100_000)}
	if err := folder.WriteResult(long); !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("result on a full disk: %w", err)
	}
	if r, err := Load(run); err != nil || r.Seed != 1 {
		return fmt.Errorf("the result before: seed %d, %w", r.Seed, err)
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	if err := folder.Append(sampleTrial(appended)); err != nil {
		return fmt.Errorf("append with space again: %w", err)
	}
	return errors.Join(checkJournal(run, appended+1), folder.Close())
}

// checkJournal returns an error unless the journal is whole and holds n trials.
func checkJournal(dir string, n int) error {
	contents, err := LoadTrials(dir)
	if err != nil {
		return err
	}
	if contents.Torn != "" || len(contents.Trials) != n {
		return fmt.Errorf("the journal holds %d trials of %d, torn %q", len(contents.Trials), n, contents.Torn)
	}
	return nil
}

func TestFullDisk(t *testing.T) {
	t.Logf("%s", inPrivateMounts(t, child(t, "full-disk", t.TempDir())))
}

// writeReadOnly tries to make and to resume a run on a read-only file system.
func writeReadOnly(dir string) error {
	if err := mountTmpfs(dir, "256k"); err != nil {
		return err
	}
	run := filepath.Join(dir, "run")
	folder, err := Create(run, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(folder.Append(sampleTrial(0)), folder.Close()); err != nil {
		return err
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("can't mount read-only: %w", err)
	}
	_, createErr := Create(filepath.Join(dir, "other"), nil)
	_, openErr := Open(run, nil)
	for _, err := range []error{createErr, openErr} {
		if !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), "--out") {
			return fmt.Errorf("not the error of a read-only file system: %w", err)
		}
		fmt.Println(err)
	}
	return checkJournal(run, 1)
}

func TestReadOnlyFileSystem(t *testing.T) {
	t.Logf("%s", inPrivateMounts(t, child(t, "read-only", t.TempDir())))
}

// writeUnprivileged tries to make and to resume a run in folders of another user.
func writeUnprivileged(dir string) error {
	if os.Getuid() == 0 {
		const nobody = 65534
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
			return err
		}
	}
	_, createErr := Create(filepath.Join(dir, "other"), nil)
	_, openErr := Open(filepath.Join(dir, "run"), nil)
	for _, err := range []error{createErr, openErr} {
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "that you may write") {
			return fmt.Errorf("not the error of missing permission: %w", err)
		}
		fmt.Println(err)
	}
	return nil
}

func TestUnwritableFolder(t *testing.T) {
	run := filled(t, 1)
	dir := filepath.Dir(run)
	if err := errors.Join(os.Chmod(filepath.Join(run, TrialsFile), 0o444), os.Chmod(dir, 0o555)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(dir, 0o755) }()
	output, err := child(t, "unprivileged", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	t.Logf("%s", output)
}
