package lab_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netdelta/internal/leak"
	"netdelta/internal/owner"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/testbedtest"
)

// play starts this binary in a role and returns it with the first line that it says.
func play(t *testing.T, name string) (cmd *exec.Cmd, line string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(self)
	cmd.Env = append(os.Environ(), testbedtest.Role(name))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("role %s: %v", name, err)
	}
	return cmd, strings.TrimSpace(line)
}

// kill ends a program as the kernel does when memory is short.
func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // says that it was killed
}

// host takes a snapshot of the host.
func host(t *testing.T) leak.Snapshot {
	t.Helper()
	s, err := leak.Host()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// same fails for each difference of the host to an earlier snapshot.
func same(t *testing.T, when string, before leak.Snapshot) {
	t.Helper()
	for _, line := range leak.Diff(before, host(t)) {
		t.Errorf("%s, the host is not the same: %s", when, line)
	}
}

func TestHostUntouched(t *testing.T) {
	require.Namespaces(t)
	before := host(t)
	driver := lab.NewDriver(network.Catalogue())
	var specs []testbed.Spec
	for _, family := range []result.Family{result.IPv4, result.IPv6} {
		names, err := supported(t.Context(), driver, family)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			specs = append(specs, testbed.Spec{Nodes: 2, PodsPerNode: 2, Family: family, Network: name, Link: testbed.Link{Rate: 1e9}})
		}
	}
	same(t, "after asking what is supported", before)
	t.Parallel()
	for _, spec := range specs {
		for _, spec.PodsOutlive = range []bool{false, true} {
			tb, err := driver.Open(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			err = carry(t.Context(), tb)
			same(t, "with "+spec.Network+" up", before)
			if err := errors.Join(err, tb.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	same(t, "after all", before)
}

func TestCleanup(t *testing.T) {
	require.Namespaces(t)
	before := host(t)
	live, err := lab.NewDriver(network.Catalogue()).Open(t.Context(), testbed.Spec{Nodes: 1, PodsPerNode: 1, Network: "bridge"})
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	bystander := testbedtest.StartPeer(t, live.Pods()[0])
	ownDir, err := owner.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(ownDir)

	// Others may clean up at the same time, in tests of other packages say, and take what is to be found here.
	const tries = 5
	for n := 1; !killAndCleanUp(t); n++ {
		if n == tries {
			t.Errorf("in none of %d tries did the clean-up tell all that it removed", tries)
			break
		}
	}
	if _, err := bystander.Environment(); err != nil {
		t.Errorf("the clean-up hurt a run that lives: %v", err)
	}
	if _, err := os.Stat(ownDir); err != nil {
		t.Errorf("the clean-up hurt a run that lives: %v", err)
	}
	same(t, "after the clean-up", before)
}

// killAndCleanUp kills a run and cleans up after it, and returns whether the clean-up told all that had to be removed.
func killAndCleanUp(t *testing.T) (told bool) {
	t.Helper()
	run, line := play(t, "leave")
	var dir string
	var idle, deaf, stopped, daemon int
	if _, err := fmt.Sscan(line, &dir, &idle, &deaf, &stopped, &daemon); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	wire, err := leak.NewTripwire(deaf)
	if err != nil {
		t.Fatal(err)
	}
	defer wire.Close()
	if mine := orphansOf(t, run.Process.Pid); len(mine) > 0 {
		t.Errorf("a run that lives has the orphans %v", mine)
	}
	kill(t, run)
	removed, err := lab.Cleanup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if mine := orphansOf(t, run.Process.Pid); len(mine) > 0 {
		t.Errorf("after the clean-up there is still %v", mine)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the clean-up, directory %s: %v", dir, err)
	}
	if err := wire.Wait(30 * time.Second); err != nil {
		t.Error(err)
	}
	text := fmt.Sprint(removed)
	told = strings.Contains(text, dir)
	for _, pid := range []int{deaf, stopped, daemon} {
		told = told && strings.Contains(text, fmt.Sprintf("(%d)", pid))
	}
	return told
}

// marked lists processes with the mark of a program, whether it lives or not.
func marked(t *testing.T, pid int) []owner.Process {
	t.Helper()
	all, err := owner.Processes()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(p owner.Process) bool { return p.Owner.PID != pid })
}

// awaitMarked waits until there are processes with the mark of a program.
func awaitMarked(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, 30*time.Second, fmt.Sprintf("program %d has processes of a lab", pid), func() bool { return len(marked(t, pid)) > 0 })
}

// orphansOf lists a program's processes that are orphans.
func orphansOf(t *testing.T, pid int) []owner.Process {
	t.Helper()
	orphans, err := lab.Orphans()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(marked(t, pid), func(p owner.Process) bool {
		return !strings.Contains(fmt.Sprint(orphans), fmt.Sprintf("(%d)", p.PID))
	})
}

func TestKilledAtAnyMoment(t *testing.T) {
	require.Namespaces(t)
	before := host(t)
	const kills = 20
	random := rand.New(rand.NewPCG(1, 2))
	stood := 0 // when their run was killed: others may have cleaned up before this test does
	for n := range kills {
		run, line := play(t, "churn")
		if line != "ready" {
			t.Fatal(line)
		}
		if n%2 == 1 { // from when processes of a lab are there, which a busy machine may take long to begin
			awaitMarked(t, run.Process.Pid)
		}
		time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
		stood += len(marked(t, run.Process.Pid))
		kill(t, run)
		if _, err := lab.Cleanup(t.Context()); err != nil {
			t.Fatal(err)
		}
		if mine := orphansOf(t, run.Process.Pid); len(mine) > 0 {
			t.Fatalf("after the clean-up there is still %v", mine)
		}
	}
	if stood == 0 {
		t.Errorf("%d kills met no process of a lab: the test shows nothing", kills)
	}
	t.Logf("%d kills met %d processes of labs", kills, stood)
	same(t, "after the kills", before)
	if found := leak.Own(); len(found) > 0 {
		t.Errorf("the test itself has leaked %q", found)
	}
}

// A process that only has the variable in its environment is not of a lab: no clean-up ends it.
func TestCleanupSparesForeignProcesses(t *testing.T) {
	require.Namespaces(t)
	self, err := owner.Self()
	if err != nil {
		t.Fatal(err)
	}
	dead := self
	dead.PID = 1 << 30
	foreign := exec.Command("sleep", "60")
	foreign.Env = append(os.Environ(), owner.Variable+"="+dead.String()+"-1")
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = foreign.Process.Kill() // that it runs still is what is tested
		_ = foreign.Wait()
	}()
	require.Eventually(t, 20*time.Second, "the process carries the mark", func() bool {
		p, ok := owner.ProcessOf(foreign.Process.Pid)
		return ok && p.Name == "sleep"
	})
	found, err := lab.Orphans()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range found {
		if strings.Contains(o.Name, fmt.Sprintf("(%d)", foreign.Process.Pid)) {
			t.Errorf("%s would be removed", o)
		}
	}
	if _, err := lab.Cleanup(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := foreign.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process was ended: %v", err)
	}
}
