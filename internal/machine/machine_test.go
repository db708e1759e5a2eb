package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

func TestDescribeThisMachine(t *testing.T) {
	e, err := Describe("v1")
	if err != nil {
		t.Fatal(err)
	}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	if e.Kernel != strings.TrimSpace(string(release)) {
		t.Errorf("kernel %q, the kernel says %q", e.Kernel, release)
	}
	if e.Netdelta != "v1" || e.Arch == "" || e.CPU.Count == 0 || len(e.Boot) != 36 || e.Memory <= 0 || !strings.HasPrefix(e.GoVersion, "go") {
		t.Errorf("the description lacks something: %+v", e)
	}
}

// Two ends that spin on one processor in turn never give it up under a real-time policy: that is refused.
func TestRealTimeIsRefused(t *testing.T) {
	if err := CheckScheduling(); err != nil {
		t.Fatal(err)
	}
	refused := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with its policy
		if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0); err != nil {
			refused <- fmt.Errorf("take a real-time policy: %w", err)
			return
		}
		refused <- CheckScheduling()
	}()
	if err := <-refused; err == nil || !strings.Contains(err.Error(), "start it without chrt") {
		t.Errorf("a program under a real-time policy: %v", err)
	}
}

func TestConfineTakesEveryThread(t *testing.T) {
	all, err := AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Confine(all); err != nil {
			t.Error(err)
		}
	})
	one := all[len(all)-1:]
	if err := Confine(one); err != nil {
		t.Fatal(err)
	}
	// Goroutines started from here on may run on any thread, old or new: all must be confined.
	got := make(chan []int)
	for range 8 {
		go func() {
			cpus, err := AllowedCPUs()
			if err != nil {
				t.Error(err)
			}
			got <- cpus
		}()
	}
	for range 8 {
		if cpus := <-got; !slices.Equal(cpus, one) {
			t.Errorf("a thread may run on processors %v, want %v", cpus, one)
		}
	}
}

func TestConfineToNowhere(t *testing.T) {
	if err := Confine(nil); err == nil {
		t.Error("confined to no processor without an error")
	}
}

func TestOSName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "os-release")
	if err := os.WriteFile(path, []byte("ID=x\nPRETTY_NAME=\"Some Linux 12\"\nVERSION=1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := osName(path); got != "Some Linux 12" {
		t.Errorf("got %q", got)
	}
	if got := osName(path + ".missing"); got != "" {
		t.Errorf("got %q from a missing file", got)
	}
}

func TestHypervisor(t *testing.T) {
	if got := hypervisor([]procfs.CPUInfo{{Flags: []string{"fpu", "sse"}}}); got != "" {
		t.Errorf("bare metal is called %q", got)
	}
	if got := hypervisor([]procfs.CPUInfo{{Flags: []string{"fpu", "hypervisor"}}}); got == "" {
		t.Error("a virtual machine was taken for bare metal")
	}
}

// The deepest idle state is the allowed one that takes longest to wake from.
func TestDeepestIdleState(t *testing.T) {
	dir := t.TempDir()
	for state, facts := range map[string][3]string{"state0": {"POLL", "0", "0"}, "state1": {"C1E", "10", "0"}, "state2": {"C6", "133", "0"}, "state3": {"C8", "200", "1"}} {
		if err := os.Mkdir(filepath.Join(dir, state), 0o755); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"name", "latency", "disable"} {
			if err := os.WriteFile(filepath.Join(dir, state, name), []byte(facts[i]+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := deepest(dir); got != "C6, 133 µs" {
		t.Errorf("the deepest state is %q", got)
	}
	if got := deepest(filepath.Join(dir, "none")); got != "" {
		t.Errorf("without states: %q", got)
	}
}
