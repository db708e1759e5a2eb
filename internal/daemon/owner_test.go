package daemon_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/daemon"
	"netdelta/internal/leak"
	"netdelta/internal/require"
	"netdelta/unit"
)

// ownerAsked is the variable of the environment by which this program is told to own a sandbox.
const ownerAsked = "NETDELTA_DAEMONTEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerAsked) == "" {
		os.Exit(leak.Main(m))
	}
	if err := own(); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// families is a program with all that may outlive a parent: a child, one that has left its session and its parent, and shared
// memory of both kinds.
const families = `echo kept >/dev/shm/netdelta-daemontest
(setsid sleep 600 & )
sleep 600 &
echo there
wait`

// own opens a sandbox, starts programs in it, says which, and closes the sandbox when its input ends.
func own() error {
	h, err := daemon.Open(unit.MiB)
	if err != nil {
		return err
	}
	d, err := h.Start(daemon.Spec{Path: "sh", Args: []string{"-c", families}})
	if err != nil {
		return err
	}
	if err := require.Await(patience, "the program starts", func() error {
		if !strings.Contains(d.Log(), "there") {
			return fmt.Errorf("it said %q", d.Log())
		}
		return nil
	}); err != nil {
		return err
	}
	// This program loses its death signal, as does every program that changes its user.
	if _, err := h.Start(daemon.Spec{Path: "setpriv", Args: []string{"--pdeathsig", "clear", "sleep", "600"}}); err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = io.ReadAll(os.Stdin)
	return h.Close()
}

// patience is how long anything may take on a busy machine.
const patience = 20 * time.Second

// owner starts a program that owns a sandbox.
func owner(t *testing.T, attr *syscall.SysProcAttr) (*exec.Cmd, io.Closer) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), ownerAsked+"="+strconv.Itoa(os.Getpid()))
	cmd.SysProcAttr = attr
	cmd.Stderr = os.Stderr
	in, out := require.Pipes(t, cmd)
	if err := cmd.Start(); err != nil {
		require.Need(t, "the right to make user namespaces", !errors.Is(err, unix.EPERM))
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		t.Fatalf("the owner said %q, %v", line, err)
	}
	if n := len(descendants(t)); n < 5 {
		t.Errorf("%d programs run, want the first of the sandbox, the shell, two of its children and a free one", n)
	}
	return cmd, in
}

// descendants are the processes that carry the mark of this test's owners.
func descendants(t *testing.T) (pids []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	mark := ownerAsked + "=" + strconv.Itoa(os.Getpid())
	for _, e := range entries {
		if env, err := os.ReadFile("/proc/" + e.Name() + "/environ"); err == nil && strings.Contains(string(env), mark) {
			pids = append(pids, e.Name())
		}
	}
	return pids
}

// nothingLeft waits until nothing of a sandbox is left.
func nothingLeft(t *testing.T) {
	t.Helper()
	require.NoError(t, require.Await(patience, "all processes are gone", func() error {
		if left := descendants(t); len(left) > 0 {
			return fmt.Errorf("processes %v are there", left)
		}
		return nil
	}))
	if _, err := os.Stat("/dev/shm/netdelta-daemontest"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("shared memory of a program is left: %v", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), " "+daemon.Folder+" ") && strings.Contains(string(mounts), "size=1024k") {
		t.Errorf("a mount is left (%v):\n%s", err, mounts)
	}
}

func TestKilledOwnerLeavesNothing(t *testing.T) {
	require.Namespaces(t)
	require.Tool(t, "setpriv")
	cmd, _ := owner(t, nil)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	nothingLeft(t)
}

func TestClosedHomeLeavesNothing(t *testing.T) {
	require.Namespaces(t)
	require.Tool(t, "setpriv")
	cmd, in := owner(t, nil)
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	nothingLeft(t)
}

func TestHomeOfAnOrdinaryUser(t *testing.T) {
	require.Namespaces(t)
	require.Tool(t, "setpriv")
	for _, end := range []string{"closed", "killed"} {
		t.Run(end, func(t *testing.T) {
			cmd, in := owner(t, &syscall.SysProcAttr{
				Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
				UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
			})
			if end == "killed" {
				_ = cmd.Process.Kill()
				_ = cmd.Wait() // it was killed
			} else {
				_ = in.Close()
				if err := cmd.Wait(); err != nil {
					t.Error(err)
				}
			}
			nothingLeft(t)
		})
	}
}

func TestManyStarts(t *testing.T) {
	h := open(t, unit.MiB)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 25 {
				want := fmt.Sprintf("%d.%d", i, j)
				out, err := h.Run(t.Context(), daemon.Spec{Path: "echo", Args: []string{"-n", want}})
				if err != nil || string(out) != want {
					t.Errorf("%q, %v, want %s", out, err, want)
				}
				d, err := h.Start(daemon.Spec{Path: "sleep", Args: []string{"600"}})
				if err != nil {
					t.Error(err)
					return
				}
				if err := d.Stop(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// A sandbox may be closed at any time, even while programs are being started in it.
func TestCloseWhileStarting(t *testing.T) {
	require.Namespaces(t)
	for range 10 {
		h, err := daemon.Open(unit.MiB)
		if err != nil {
			t.Fatal(err)
		}
		var all, running sync.WaitGroup
		running.Add(3)
		for range 3 {
			all.Go(func() {
				ready := sync.OnceFunc(running.Done)
				defer ready()
				for {
					d, err := h.Start(daemon.Spec{Path: "sleep", Args: []string{"600"}})
					if errors.Is(err, daemon.ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					ready()
					if _, err := h.Run(t.Context(), daemon.Spec{Path: "true"}); err == nil && d.Name() != "sleep" {
						t.Error("a daemon of another name")
					}
				}
			})
		}
		running.Wait()
		all.Go(func() {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	}
}

func TestPinned(t *testing.T) {
	h := open(t, unit.MiB)
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !allowed.IsSet(cpu) {
		cpu++
	}
	show := daemon.Spec{Path: "grep", Args: []string{"Cpus_allowed_list", "/proc/self/status"}}
	free, err := h.Run(t.Context(), show)
	if err != nil {
		t.Fatal(err)
	}
	show.CPUs = daemon.Pin(cpu)
	if out, err := h.Run(t.Context(), show); err != nil || string(out) != fmt.Sprintf("Cpus_allowed_list:\t%d\n", cpu) {
		t.Errorf("pinned to %d: %q, %v", cpu, out, err)
	}
	show.CPUs = daemon.Pin(-1)
	if out, err := h.Run(t.Context(), show); err != nil || !bytes.Equal(out, free) {
		t.Errorf("not pinned: %q, %v, want %q", out, err, free)
	}
	for _, none := range []int{100_000, 900} {
		show.CPUs = daemon.Pin(none)
		if _, err := h.Run(t.Context(), show); err == nil || !regexp.MustCompile(fmt.Sprintf(`pin to processors? \[?%d`, none)).MatchString(err.Error()) {
			t.Errorf("pinned to processor %d: %v", none, err)
		}
	}
}

func TestMeasure(t *testing.T) {
	h := open(t, unit.MiB)
	ran, err := h.Measure(t.Context(), daemon.Spec{Path: "sh", Args: []string{"-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; echo done"}})
	if err != nil || string(ran.Output) != "done\n" || ran.CPU <= 0 || ran.CPU > patience {
		t.Errorf("%+v, %v", ran, err)
	}
}
