package pressure

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// counted is a proc file system whose counters the test sets.
type counted struct {
	t    *testing.T
	root string
	now  time.Time
}

func newMachine(t *testing.T) *counted {
	m := &counted{t: t, root: t.TempDir(), now: time.Unix(1000, 0)}
	if err := os.Mkdir(filepath.Join(m.root, "pressure"), 0o755); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *counted) write(name, content string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.root, name), []byte(content), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// set writes the counters: per processor the hundredths of a second of softirq and steal, and the microseconds of waiting.
func (m *counted) set(softirq, steal [2]int, waiting int) {
	stat := "cpu  0 0 0 0 0 0 0 0 0 0\n"
	for i := range 2 {
		stat += fmt.Sprintf("cpu%d 100 0 100 1000 0 0 %d %d 0 0\n", i, softirq[i], steal[i])
	}
	m.write("stat", stat+"intr 0\nctxt 1\nbtime 1\nprocesses 1\nprocs_running 1\nprocs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n")
	m.write("pressure/cpu", fmt.Sprintf("some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n", waiting))
}

func (m *counted) reader(cpus ...int) *Reader {
	m.t.Helper()
	r, err := NewReader(m.root, cpus)
	if err != nil {
		m.t.Fatal(err)
	}
	r.now = func() time.Time { return m.now }
	return r
}

func (m *counted) read(r *Reader) Sample {
	m.t.Helper()
	s, err := r.Read()
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

func TestLoadIsOfTheWatchedProcessors(t *testing.T) {
	m := newMachine(t)
	m.set([2]int{0, 0}, [2]int{0, 0}, 0)
	one, all := m.reader(1), m.reader()
	first, firstAll := m.read(one), m.read(all)
	m.now = m.now.Add(2 * time.Second)
	m.set([2]int{200, 50}, [2]int{0, 100}, 500_000)

	for _, c := range []struct {
		name string
		got  Load
		want Load
	}{
		{"processor 1", m.read(one).Since(first), Load{Waiting: 0.25, Steal: 0.5, Softirq: 0.25}},
		{"both", m.read(all).Since(firstAll), Load{Waiting: 0.25, Steal: 0.25, Softirq: 0.625}},
		{"no time passed", first.Since(first), Load{}},
	} {
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
		if !near(c.got.Waiting, c.want.Waiting) || !near(c.got.Steal, c.want.Steal) || !near(c.got.Softirq, c.want.Softirq) {
			t.Errorf("%s: got %+v, want %+v", c.name, c.got, c.want)
		}
	}
}

// Where nothing is measured, a pinned workload's processors are busy with what others run there; one that is not pinned is kept
// waiting only as others are.
func TestOthers(t *testing.T) {
	m := newMachine(t)
	stat := func(user int) {
		m.write("stat", fmt.Sprintf("cpu0 %d 0 100 1000 0 0 0 0 0 0\nprocs_running 1\n", user))
	}
	stat(100)
	m.write("pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
	r := m.reader(0)
	first := m.read(r)
	m.now = m.now.Add(time.Second)
	stat(175)
	m.write("pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=100000\n")
	load := m.read(r).Since(first)
	if got := load.Others(true); math.Abs(got-0.75) > 1e-9 {
		t.Errorf("others keep a pinned workload from %g of the time, want 0.75", got)
	}
	if got := load.Others(false); math.Abs(got-0.1) > 1e-9 {
		t.Errorf("others keep a workload that is not pinned from %g of the time, want 0.1", got)
	}
	if worst := Worst([]Load{{Busy: 0.1}, load, {}}); worst.Busy != load.Busy {
		t.Errorf("the busiest machine is busy for %g of the time, want %g", worst.Busy, load.Busy)
	}
}

// queues writes what tasks have waited on each of the two processors, in nanoseconds.
func (m *counted) queues(waited [2]int) {
	text := "version 15\ntimestamp 4294892\n"
	for i, w := range waited {
		text += fmt.Sprintf("cpu%d 0 0 0 0 0 0 900 %d 77\ndomain0 00000000,00000003 1 2 3\n", i, w)
	}
	m.write("schedstat", text)
}

func TestQueuesOfTheWatchedProcessors(t *testing.T) {
	m := newMachine(t)
	m.set([2]int{}, [2]int{}, 0)
	m.queues([2]int{1e9, 5e9})
	one, all := m.reader(1), m.reader()
	first, firstAll := m.read(one), m.read(all)
	m.now = m.now.Add(2 * time.Second)
	m.queues([2]int{1e9, 8e9})
	if got := m.read(one).Since(first); got.Queue != 1.5 || got.Ready != 0 {
		t.Errorf("%+v, want 1.5 tasks in the queue of processor 1", got)
	}
	if got := m.read(all).Since(firstAll).Queue; got != 0.75 {
		t.Errorf("%g tasks in the queue of each processor, want 0.75", got)
	}
}

// TestReadyThreads: their number counts where the kernel tells nothing better.
func TestReadyThreads(t *testing.T) {
	for _, c := range []struct {
		name          string
		psi, schedule bool
		want          float64
	}{{"neither", false, false, 2}, {"pressure", true, false, 0}, {"queues", false, true, 0}} {
		m := newMachine(t)
		m.set([2]int{}, [2]int{}, 0)
		m.queues([2]int{})
		for name, kept := range map[string]bool{"pressure": c.psi, "schedstat": c.schedule} {
			if !kept {
				if err := os.RemoveAll(filepath.Join(m.root, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		r := m.reader()
		first := m.read(r)
		m.now = m.now.Add(time.Second)
		m.write("stat", "cpu0 1 2 3 4 5 6 7 8\nprocs_running 3\n")
		if got := m.read(r).Since(first).Ready; got != c.want {
			t.Errorf("%s: %g threads ready, want %g", c.name, got, c.want)
		}
	}
}

// limit puts this process of the machine into a control group below another, both with a limit.
func (m *counted) limit(version int) (inner, outer string) {
	m.t.Helper()
	top := filepath.Join(m.root, "groups")
	inner = filepath.Join(top, "outer", "inner")
	for _, dir := range []string{inner, filepath.Join(m.root, "77")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			m.t.Fatal(err)
		}
	}
	if err := os.Symlink("77", filepath.Join(m.root, "self")); err != nil {
		m.t.Fatal(err)
	}
	group, mount := "0::/outer/inner", "- cgroup2 cgroup2 rw"
	if version == 1 {
		group, mount = "3:cpuset:/elsewhere\n2:cpu,cpuacct:/outer/inner\n0::/", "- cgroup cgroup rw,cpu,cpuacct"
	}
	m.write("77/cgroup", group+"\n")
	m.write("77/mountinfo", "25 20 0:22 / "+top+" rw,nosuid "+mount+"\n26 20 0:23 / /nowhere rw - cgroup cgroup rw,cpuset\n")
	m.write("groups/cpu.stat", "usage_usec 5\n") // the top has no limit
	m.throttle(version, "groups/outer", 0, 0)
	m.throttle(version, "groups/outer/inner", 0, 0)
	return "groups/outer/inner", "groups/outer"
}

func (m *counted) throttle(version int, group string, times int, long time.Duration) {
	text := fmt.Sprintf("usage_usec 9\nnr_periods 7\nnr_throttled %d\nthrottled_usec %d\n", times, long.Microseconds())
	if version == 1 {
		text = fmt.Sprintf("nr_periods 7\nnr_throttled %d\nthrottled_time %d\n", times, long.Nanoseconds())
	}
	m.write(group+"/cpu.stat", text)
}

func TestThrottling(t *testing.T) {
	for _, version := range []int{1, 2} {
		m := newMachine(t)
		m.set([2]int{}, [2]int{}, 0)
		inner, outer := m.limit(version)
		r := m.reader()
		if len(r.groups) != 2 {
			t.Fatalf("version %d: %d groups, want 2", version, len(r.groups))
		}
		first := m.read(r)
		m.now = m.now.Add(time.Second)
		m.throttle(version, inner, 3, 200*time.Millisecond)
		m.throttle(version, outer, 1, 50*time.Millisecond)
		got := m.read(r).Since(first)
		if got.Throttles != 4 || got.Throttled != 0.25 {
			t.Errorf("version %d: %+v, want 4 throttles for a quarter of the time", version, got)
		}
		if reason := Calibrate(make([]Load, 5)).Disturbed(got); reason != ReasonThrottled {
			t.Errorf("version %d: %q", version, reason)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestKernelWithoutPressureInformation(t *testing.T) {
	m := newMachine(t)
	m.set([2]int{}, [2]int{}, 0)
	if err := os.RemoveAll(filepath.Join(m.root, "pressure")); err != nil {
		t.Fatal(err)
	}
	if s := m.read(m.reader()); s.hasPSI {
		t.Error("pressure information came from nowhere")
	}
}

func TestThresholds(t *testing.T) {
	quiet := []Load{{Waiting: 0.30}, {Waiting: 0.31}, {Waiting: 0.29}, {Waiting: 0.30}, {Waiting: 0.30}}
	th := Calibrate(quiet)
	for _, c := range []struct {
		load Load
		want string
	}{
		{Load{Waiting: 0.30}, ""},
		{Load{Waiting: 0.39}, ""},
		{Load{Waiting: 0.60}, ReasonPressure},
		{Load{Waiting: 0.30, Steal: 0.05}, ReasonSteal},
		{Load{Waiting: 0.30, Softirq: 0.20}, ReasonSoftirq},
		{Load{Waiting: 0.30, Softirq: 1, Samples: 1}, ""}, // the one tick of a short round
		{Load{Waiting: 0.30, Softirq: 0.20, Samples: 100}, ""},
		{Load{Waiting: 0.30, Softirq: 0.40, Samples: 100}, ReasonSoftirq},
		{Load{Waiting: 0.30, Queue: 0.2, Ready: 0.9}, ""},
		{Load{Waiting: 0.30, Queue: 0.3}, ReasonRunQueue},
		{Load{Waiting: 0.30, Ready: 1.5}, ReasonRunQueue},
		{Load{Waiting: 0.30, Throttles: 1}, ReasonThrottled},
		{Load{Waiting: 0.60, Throttled: 0.02}, ReasonThrottled},
	} {
		if got := th.Disturbed(c.load); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.load, got, c.want)
		}
	}
}

// Ends that take turns in another way from some build on are measured in it, and one that others keep from the processor for some bursts is
// not: these are left out, and what follows is judged as before.
func TestShareThatLasts(t *testing.T) {
	var s Share
	lost := func(share float64, bursts int) (n int) {
		for range bursts {
			if s.Disturbed(share, 0) {
				n++
			}
		}
		return n
	}
	if n := lost(0.95, 30); n != 0 {
		t.Errorf("%d of 30 usual bursts are left out", n)
	}
	if n := lost(0.5, 7); n != 7 {
		t.Errorf("%d of 7 disturbed bursts are left out", n)
	}
	if n := lost(0.95, 3); n != 0 {
		t.Errorf("%d of 3 usual bursts are left out", n)
	}
	if n := lost(0.5, 40); n != calibrationBursts {
		t.Errorf("%d of 40 bursts are left out where their ends take turns in another way, want %d", n, calibrationBursts)
	}
	if n := lost(0.3, 3) + lost(0.95, 3); n != 3 {
		t.Errorf("%d of 6 are left out afterwards, of which 3 are disturbed", n)
	}
}

func TestShare(t *testing.T) {
	var s Share
	for i := range calibrationBursts {
		if s.Disturbed(0.95, 0) {
			t.Fatalf("calibrating burst %d was called disturbed", i)
		}
	}
	if s.Disturbed(0.94, 0) || s.Disturbed(0.99, 0) {
		t.Error("a usual burst was called disturbed")
	}
	if !s.Disturbed(0.5, 0) {
		t.Error("a burst that lost half its processor was not noticed")
	}
}
