package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"netdelta/internal/leak"
	"netdelta/internal/require"
)

// A user without root measures what root does, and owns what is written.
func TestRootlessRun(t *testing.T) {
	u := ordinaryUser(t)
	before := host(t)
	ran, _ := undisturbedBy(t, u.dir, func(args ...string) ending { return u.call(t, statusDone, args...) }, "--json")
	run := decode(t, ran.stdout)
	networks := map[string]bool{}
	for _, d := range run.Deltas {
		if d.Headline && d.RatioLow != nil {
			networks[d.Network] = true
		}
	}
	if !networks["bridge"] || !networks["macvlan"] || len(run.Null) == 0 {
		t.Errorf("there are intervals for %v and %d null checks", networks, len(run.Null))
	}
	folder := filepath.Join(u.dir, "run")
	for _, name := range append(entries(t, folder), ".") {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if uid := int(info.Sys().(*syscall.Stat_t).Uid); uid != u.id() {
			t.Errorf("%s belongs to user %d, want %d", name, uid, u.id())
		}
	}
	u.call(t, statusUsage, "run", "no-such-study").says(t, "no-such-study")
	u.nothingKept(t)
	nothingRuns(t)
	untouched(t, before)
}

// inner is the process in the user namespace that a call has started.
func inner(t *testing.T, outer *exec.Cmd) int {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", outer.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	require.Need(t, "lists of children (CONFIG_PROC_CHILDREN)", len(threads) > 0)
	pid := 0
	for _, path := range threads {
		if children, err := os.ReadFile(path); err == nil && len(children) > 0 {
			if _, err := fmt.Sscan(string(children), &pid); err != nil {
				t.Fatal(err)
			}
		}
	}
	if pid == 0 {
		t.Fatal("the call has no child")
	}
	return pid
}

// Whichever process of a run is killed, all of it ends, and nothing is left.
func TestRootlessKilled(t *testing.T) {
	for _, c := range []struct {
		name string
		pid  func(*testing.T, *exec.Cmd) int
	}{
		{"outside", func(_ *testing.T, cmd *exec.Cmd) int { return cmd.Process.Pid }},
		{"inside", inner},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := ordinaryUser(t)
			before := host(t)
			cmd := u.start(t, "run", "long.yaml", "--builds", "900", "--out", "run", "--quiet")
			awaitTrials(t, filepath.Join(u.dir, "run"), 4)
			var wire *leak.Tripwire
			if agents := agentsOf(t, cmd); os.Geteuid() == 0 && len(agents) > 0 {
				if w, err := leak.NewTripwire(agents[0]); err == nil {
					wire = w
					defer wire.Close()
				}
			}
			if err := syscall.Kill(c.pid(t, cmd), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			await(t, cmd).want(t, 128+int(syscall.SIGKILL))
			nothingRuns(t)
			if wire != nil {
				if err := wire.Wait(patience); err != nil {
					t.Error(err)
				}
			}
			u.call(t, statusDone, "cleanup")
			u.nothingKept(t)
			untouched(t, before)
			if got := len(trials(t, filepath.Join(u.dir, "run"))); got < 4 {
				t.Errorf("%d trials are left of 4", got)
			}
		})
	}
}

// Stopped agents of a killed run can be seen from outside the run's user namespace only.
func TestRootlessCleanup(t *testing.T) {
	for _, verb := range [][]string{{"cleanup"}, {"run", "small.yaml", "--builds", "3", "--out", "next", "--quiet"}} {
		t.Run(verb[0], func(t *testing.T) {
			u := ordinaryUser(t)
			cmd := u.start(t, "run", "long.yaml", "--builds", "900", "--out", "run", "--quiet")
			awaitTrials(t, filepath.Join(u.dir, "run"), 4)
			agents := agentsOf(t, cmd)
			if len(agents) == 0 {
				t.Fatal("the run has no agents")
			}
			for _, pid := range agents {
				_ = syscall.Kill(pid, syscall.SIGSTOP) // its build may be over
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			await(t, cmd).want(t, 128+int(syscall.SIGKILL))
			left := awaitRunning(t, func(pids []int) bool {
				return !slices.ContainsFunc(pids, func(pid int) bool { return !slices.Contains(agents, pid) })
			})
			if len(left) > 0 {
				u.call(t, statusDone, "doctor").shows(t, "-- leftovers")
			}
			u.call(t, statusDone, verb...)
			if now := running(t); len(now) > 0 {
				t.Errorf("of the agents %v there are still %v", left, now)
			}
		})
	}
}

// A signal to the process that was called counts, once; and so does what is typed at a terminal.
func TestRootlessInterrupt(t *testing.T) {
	ends := func(t *testing.T, u *user, e ending) {
		t.Helper()
		e.want(t, statusInterrupted)
		if got := len(trials(t, filepath.Join(u.dir, "run"))); got < 4 {
			t.Errorf("%d trials were kept, want 4 or more", got)
		}
		conforms(t, "result.schema.json", []byte(read(t, filepath.Join(u.dir, "run", "result.json"))))
		nothingRuns(t)
	}
	for name, signal := range map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			u := ordinaryUser(t)
			cmd := u.start(t, "run", "long.yaml", "--builds", "900", "--out", "run")
			awaitTrials(t, filepath.Join(u.dir, "run"), 4)
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			ends(t, u, await(t, cmd).says(t, "interrupted; what was measured is kept").shows(t, "null check"))
		})
	}
	t.Run("terminal", func(t *testing.T) {
		u := ordinaryUser(t)
		term := openTerminal(t)
		term.start(u.command(t, "run", "long.yaml", "--builds", "900", "--out", "run"))
		awaitTrials(t, filepath.Join(u.dir, "run"), 4)
		term.write("\x03")
		status := term.wait()
		term.expect("interrupted; what was measured is kept")
		ends(t, u, ending{status: status})
	})
}

// A run that is suspended at the terminal stops altogether, and goes on when it is told to.
func TestRootlessSuspended(t *testing.T) {
	u := ordinaryUser(t)
	cmd := u.start(t, "run", "long.yaml", "--builds", "900", "--out", "run", "--quiet")
	awaitTrials(t, filepath.Join(u.dir, "run"), 4)
	child := inner(t, cmd)
	if err := cmd.Process.Signal(syscall.SIGTSTP); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{cmd.Process.Pid, child} {
		awaitState(t, pid, "T")
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	awaitTrials(t, filepath.Join(u.dir, "run"), len(trials(t, filepath.Join(u.dir, "run")))+4)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	await(t, cmd).want(t, statusInterrupted)
}

// The doctor tells who builds labs here, and what they can't.
func TestRootlessDoctor(t *testing.T) {
	u := ordinaryUser(t)
	u.call(t, statusDone, "doctor").shows(t,
		fmt.Sprintf("ok rights rootless: labs of user %d", u.id()), "the machine's own network cards stay out of reach", "ok packet samples",
		"ok firewall", "ok processor time", "ok networks runs in the lab: host, bridge, bridge-nat, ", "killed runs left nothing")
	var findings []struct{ Topic, Fix string }
	if err := json.Unmarshal([]byte(u.call(t, statusDone, "doctor", "--json").stdout), &findings); err != nil {
		t.Fatal(err)
	}
	topics := map[string]int{}
	for _, f := range findings {
		topics[f.Topic]++
	}
	for _, topic := range []string{"kernel", "pressure", "rights", "socket buffers", "ebpf", "network vxlan", "leftovers"} {
		if topics[topic] != 1 {
			t.Errorf("%d findings about %s, want one", topics[topic], topic)
		}
	}
	u.call(t, statusDone, "list", "networks").shows(t, "bridge here CNI bridge")
}

// Where the kernel gives no user namespaces, the error says what forbids them. The limit is set in a user namespace of the test's
// own: each has its own limits.
func TestRootlessRefused(t *testing.T) {
	require.Namespaces(t)
	setpriv := require.Tool(t, "setpriv")
	u := ordinaryUser(t)
	before := host(t)
	limited := func(args ...string) ending {
		t.Helper()
		script := `echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"`
		cmd := u.command(t, args...)
		cmd.Args = append([]string{
			"sh", "-c", script, "sh", setpriv, fmt.Sprint("--reuid=", ordinaryID), fmt.Sprint("--regid=", ordinaryID), "--clear-groups", cmd.Path,
		}, args...)
		cmd.Path = require.Tool(t, "sh")
		all := []syscall.SysProcIDMap{{Size: 65536}}
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER, UidMappings: all, GidMappings: all, GidMappingsEnableSetgroups: true,
		}
		return finish(t, cmd)
	}
	for _, args := range [][]string{{"run", "small.yaml"}, {"lab", "up", "bridge"}} {
		e := limited(args...).want(t, statusFailed).says(t, "user.max_user_namespaces=0", "run it as root", "sysctl -w user.max_user_namespaces=")
		if strings.Count(e.stderr, "\n") != 1 || e.stdout != "" {
			t.Errorf("want one line of error, got %q and %q", e.stderr, e.stdout)
		}
	}
	limited("doctor").want(t, statusDone).shows(t, "-- rights no labs: needs", "user.max_user_namespaces=0", "fix: run it as root",
		"-- network bridge needs the capabilities")
	limited("cleanup").want(t, statusDone)
	limited("list", "networks", "-v").want(t, statusDone).shows(t, "lab needs the capabilities CAP_SYS_ADMIN")
	if left := entries(t, filepath.Join(u.dir, "runs")); len(left) > 0 {
		t.Errorf("a run that could not be left %q", left)
	}
	u.nothingKept(t)
	untouched(t, before)
}

// awaitState waits until a process is in a state, as the kernel abbreviates it.
func awaitState(t *testing.T, pid int, want string) {
	t.Helper()
	state := ""
	if !eventually(func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return false
		}
		state = strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))[0]
		return state == want
	}) {
		t.Fatalf("process %d is in state %q, want %q", pid, state, want)
	}
}
