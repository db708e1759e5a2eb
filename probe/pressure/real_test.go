package pressure

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"netdelta/internal/leak"
	"netdelta/internal/machine"
	"netdelta/internal/require"
)

// The test binary is also a process that works until its control group's limit is used up, and says what it saw of that.
const throttledVariable = "PRESSURE_TEST_THROTTLED"

func TestMain(m *testing.M) {
	if os.Getenv(throttledVariable) != "" {
		if err := beThrottled(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(leak.Main(m))
}

func beThrottled() error {
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadByte(); err != nil { // until it is in its group
		return err
	}
	r, err := NewReader("/proc", nil)
	if err != nil {
		return err
	}
	before, err := r.Read()
	if err != nil {
		return err
	}
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
		continue
	}
	after, err := r.Read()
	if err != nil {
		return err
	}
	l := after.Since(before)
	q := Quota{File: "none"}
	for _, q = range r.Quotas() {
		break // the process's own group comes first
	}
	_, err = fmt.Printf("%g %g %s %g %d\n", l.Throttles, l.Throttled, q.File, q.Processors, q.Times)
	return err
}

// group makes a control group below this process's own, limited to a hundredth of a processor, which it also gets where others want it, and returns its folder.
func group(t *testing.T) string {
	t.Helper()
	self, err := procfs.Self()
	if err != nil {
		t.Fatal(err)
	}
	groups, err := self.Cgroups()
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := self.MountInfo()
	if err != nil {
		t.Fatal(err)
	}
	for _, parent := range machine.ControlGroups(groups, mounts, "cpu") {
		dir := filepath.Join(parent.Dir, fmt.Sprintf("netdelta-pressure-test-%d", os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		})
		for file, limit := range map[string]string{"cpu.max": "1000 100000", "cpu.cfs_quota_us": "1000"} {
			if f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0); err == nil {
				_, err = f.WriteString(limit)
				if f.Close() == nil && err == nil {
					return dir
				}
			}
		}
	}
	require.Need(t, "the right to make control groups with a limit on processor time", false)
	return ""
}

func TestRealThrottling(t *testing.T) {
	dir := group(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), throttledVariable+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(fmt.Sprint(cmd.Process.Pid)), 0o644); err != nil {
		t.Error(err)
	}
	if _, err := in.Write([]byte{1}); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	var times, share, processors float64
	var file string
	var stops int
	if _, err := fmt.Sscan(out.String(), &times, &share, &file, &processors, &stops); err != nil {
		t.Fatalf("%q: %v", out.String(), err)
	}
	if times < 1 || share < 0.3 {
		t.Errorf("a process that may use a hundredth of a processor was throttled %g times, for %.0f%% of the time", times, 100*share)
	}
	if filepath.Dir(file) != dir || processors != 0.01 || stops < 1 {
		t.Errorf("the limit is said to be %g processors in %s, which stopped it %d times", processors, file, stops)
	}
	if reason := Calibrate(make([]Load, 5)).Disturbed(Load{Throttles: times, Throttled: share}); reason != ReasonThrottled {
		t.Errorf("its span counts as %q", reason)
	}
}

// TestThisMachine reads what there is.
func TestThisMachine(t *testing.T) {
	r, err := NewReader("/proc", nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := r.Read()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	second, err := r.Read()
	if err != nil {
		t.Fatal(err)
	}
	l := second.Since(first)
	t.Logf("pressure information %v, queues %v, %d limited groups: %+v", first.hasPSI, first.hasRun, len(r.groups), l)
	for name, share := range map[string]float64{"waiting": l.Waiting, "steal": l.Steal, "softirq": l.Softirq} {
		// Ticks are counted whole.
		if share < 0 || share > 2 {
			t.Errorf("%s: %g", name, share)
		}
	}
	if !first.hasPSI && !first.hasRun && l.Ready < 1 {
		t.Errorf("%g threads are ready, and this one runs", l.Ready)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func BenchmarkRead(b *testing.B) {
	r, err := NewReader("/proc", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Read(); err != nil {
			b.Fatal(err)
		}
	}
}
