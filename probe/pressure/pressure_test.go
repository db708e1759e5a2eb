package pressure

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// machine is a proc file system whose counters the test sets.
type machine struct {
	t    *testing.T
	root string
	now  time.Time
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, root: t.TempDir(), now: time.Unix(1000, 0)}
	if err := os.Mkdir(filepath.Join(m.root, "pressure"), 0o755); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) write(name, content string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.root, name), []byte(content), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// set writes the counters: per processor the hundredths of a second of softirq and steal, and the microseconds of waiting.
func (m *machine) set(softirq, steal [2]int, waiting int) {
	stat := "cpu  0 0 0 0 0 0 0 0 0 0\n"
	for i := range 2 {
		stat += fmt.Sprintf("cpu%d 100 0 100 1000 0 0 %d %d 0 0\n", i, softirq[i], steal[i])
	}
	m.write("stat", stat+"intr 0\nctxt 1\nbtime 1\nprocesses 1\nprocs_running 1\nprocs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n")
	m.write("pressure/cpu", fmt.Sprintf("some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n", waiting))
}

func (m *machine) reader(cpus ...int) *Reader {
	m.t.Helper()
	r, err := NewReader(m.root, cpus)
	if err != nil {
		m.t.Fatal(err)
	}
	r.now = func() time.Time { return m.now }
	return r
}

func (m *machine) read(r *Reader) Sample {
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
	} {
		if got := th.Disturbed(c.load); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.load, got, c.want)
		}
	}
}

func TestShare(t *testing.T) {
	var s Share
	for i := range calibrationBursts {
		if s.Disturbed(0.95) {
			t.Fatalf("calibrating burst %d was called disturbed", i)
		}
	}
	if s.Disturbed(0.94) || s.Disturbed(0.99) {
		t.Error("a usual burst was called disturbed")
	}
	if !s.Disturbed(0.5) {
		t.Error("a burst that lost half its processor was not noticed")
	}
}

// The clock of this very process must agree with what it really used, and run on while it works.
func TestProcessCPU(t *testing.T) {
	before, err := ProcessCPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for x, deadline := 0, time.Now().Add(time.Minute); time.Now().Before(deadline); x++ {
		now, err := ProcessCPU(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if now-before > 5*time.Millisecond {
			return
		}
	}
	t.Error("a minute of work took no processor time")
}

func TestProcessCPUOfNobody(t *testing.T) {
	for _, pid := range []int{-1, 0, 1 << 22, 1 << 29} {
		if _, err := ProcessCPU(pid); err == nil {
			t.Errorf("process %d, which can't exist, has a processor time", pid)
		}
	}
}
