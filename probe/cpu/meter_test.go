package cpu

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netdelta/engine"
	"netdelta/internal/procfile"
	"netdelta/internal/property"
	"netdelta/internal/softirq"
	"netdelta/probe/pressure"
	"netdelta/result"
)

// process is a server that may be on another machine.
type process struct {
	pid   int
	local bool
}

func (p process) PID() int    { return p.pid }
func (p process) Local() bool { return p.local }

// clocks are processes' times that the test sets.
type clocks map[int]time.Duration

func (c clocks) read(pid int) (time.Duration, error) {
	now, found := c[pid]
	if !found {
		return 0, errors.New("no such process")
	}
	return now, nil
}

// TestBurstsAddUp: whatever runs when, each burst has what was used between its start and its stop, and nothing else.
func TestBurstsAddUp(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		const server, other = 50, 60
		c := clocks{server: 0, other: 0, 10: 0, 11: 0, 12: 0}
		k := &Kernel{clock: c.read, threads: map[int]int{0: 10, 1: 11, 2: 12}}
		cpus := rapid.SampledFrom([][]int{nil, {0}, {2}, {0, 2}, {1, 1}}).Draw(t, "processors")
		m := k.Meter(process{server, true}, cpus)
		pass := func(label string) (wantServer, wantKernel time.Duration) {
			for _, pid := range []int{server, other, 10, 11, 12} {
				used := time.Duration(rapid.Int64Range(0, 1e7).Draw(t, label))
				c[pid] += used
				switch {
				case pid == server:
					wantServer += used
				case pid < server && (len(cpus) == 0 || slices.Contains(cpus, pid-10)):
					wantKernel += used
				}
			}
			return wantServer, wantKernel
		}
		var columns result.Bursts
		var wantServer, wantKernel, wantClient time.Duration
		bursts := rapid.IntRange(1, 20).Draw(t, "bursts")
		for range bursts {
			pass("between bursts")
			if err := m.Start(); err != nil {
				t.Fatal(err)
			}
			s, k := pass("in a burst")
			wantServer, wantKernel = wantServer+s, wantKernel+k
			b := engine.Burst{CPU: time.Duration(rapid.Int64Range(0, 1e7).Draw(t, "client")), Work: 3, Moved: 300}
			wantClient += b.CPU
			spent, err := m.Stop(b)
			if err != nil {
				t.Fatal(err)
			}
			m.Record(&columns, b, spent)
		}
		sum := func(column []int64) (total time.Duration) {
			if len(column) != bursts {
				t.Fatalf("%d rows of %d bursts", len(column), bursts)
			}
			for _, v := range column {
				total += time.Duration(v)
			}
			return total
		}
		if got := sum(columns.ServerCPU); got != wantServer {
			t.Fatalf("server: %v, want %v", got, wantServer)
		}
		if got := sum(columns.KernelCPU); got != wantKernel {
			t.Fatalf("kernel: %v, want %v", got, wantKernel)
		}
		if got := sum(columns.ClientCPU); got != wantClient {
			t.Fatalf("client: %v, want %v", got, wantClient)
		}
		if sum(columns.Work) != time.Duration(3*bursts) || sum(columns.Moved) != time.Duration(300*bursts) {
			t.Fatalf("work %v, moved %v", columns.Work, columns.Moved)
		}
	})
}

// TestWhatIsLackingStaysEmpty: a figure that can't be had is no zero.
func TestWhatIsLackingStaysEmpty(t *testing.T) {
	c := clocks{10: time.Second}
	here := &Kernel{clock: c.read, threads: map[int]int{0: 10}}
	container := &Kernel{clock: c.read, lacks: "processor time of the kernel in no thread's name: hidden"}
	told := here.Meter(process{10, false}, []int{0})
	told.Told(true)
	for _, test := range []struct {
		name           string
		meter          *Meter
		server, kernel bool
		lacks          []string
	}{
		{"a server of another machine", here.Meter(process{10, false}, []int{0}), false, true, []string{"of the server"}},
		{"a server of another machine that tells", told, true, false, []string{"on other machines"}},
		{"a container", container.Meter(process{10, true}, []int{0}), true, false, []string{"hidden"}},
		{"a processor without ksoftirqd", here.Meter(process{10, true}, []int{0, 5}), true, false, []string{"[0 5]"}},
		{"both", container.Meter(process{10, false}, nil), false, false, []string{"of the server", "hidden"}},
		{"nothing", here.Meter(process{10, true}, nil), true, true, nil},
	} {
		if err := test.meter.Start(); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		spent, err := test.meter.Stop(engine.Burst{CPU: 7})
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		var columns result.Bursts
		test.meter.Record(&columns, engine.Burst{}, spent)
		if len(columns.ClientCPU) != 1 || columns.ClientCPU[0] != 7 || len(columns.ServerCPU) == 1 != test.server || len(columns.KernelCPU) == 1 != test.kernel {
			t.Errorf("%s: columns %+v", test.name, columns)
		}
		lacks := test.meter.Lacks()
		if len(lacks) != len(test.lacks) {
			t.Errorf("%s: lacks %q, want %d", test.name, lacks, len(test.lacks))
			continue
		}
		for i, want := range test.lacks {
			if !strings.Contains(lacks[i], want) {
				t.Errorf("%s: lacks %q, want one about %q", test.name, lacks[i], want)
			}
		}
	}
}

func TestFollow(t *testing.T) {
	root := t.TempDir()
	set := func(thread, text string) {
		dir := filepath.Join(root, "50", "task", thread)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "schedstat"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set("51", "100 1000 3\n")
	set("52", "100 2000 3\n")
	set("53", "0 0 0\n")
	set("54", "garbage\n")
	k := &Kernel{root: root, clock: clocks{50: 0}.read}
	here := process{50, true}
	m := k.Meter(here, nil)
	m.Follow(here, []int{51})
	if m.Delays() {
		t.Error("one end is enough")
	}
	m.Follow(here, []int{52})
	if !m.Delays() {
		t.Errorf("lacks %q", m.Lacks())
	}
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	set("51", "300 1500 4\n")
	set("52", "300 2700 4\n")
	if spent, err := m.Stop(engine.Burst{}); err != nil || spent.Delayed != 1200 {
		t.Errorf("%+v, %v; want a delay of 1.2 us", spent, err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	for name, follow := range map[string]func(m *Meter){
		"another machine":           func(m *Meter) { m.Follow(process{50, false}, []int{51}) },
		"unknown":                   func(m *Meter) { m.Follow(here, nil) },
		"a kernel that counts none": func(m *Meter) { m.Follow(here, []int{53}) },
		"garbage":                   func(m *Meter) { m.Follow(here, []int{54}) },
		"gone":                      func(m *Meter) { m.Follow(here, []int{99}) },
	} {
		m := k.Meter(here, nil)
		before := len(m.Lacks())
		m.Follow(here, []int{51})
		follow(m)
		if m.Delays() || len(m.Lacks()) != before+1 {
			t.Errorf("%s: delays %v, lacks %q", name, m.Delays(), m.Lacks())
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A server that serves by a daemon spends the daemon's time, and waits when the daemon does.
func TestFollowDaemon(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{"50/task/51", "70"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	set := func(folder, text string) {
		if err := os.WriteFile(filepath.Join(root, folder, "schedstat"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set("50/task/51", "100 1000 3\n")
	set("70", "100 2000 3\n")
	used := clocks{50: 10, 70: 1000}
	m := (&Kernel{root: root, clock: used.read}).Meter(process{50, true}, nil)
	m.Follow(process{50, true}, []int{70})
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	used[50], used[70] = 13, 1500
	set("70", "200 2700 4\n")
	if spent, err := m.Stop(engine.Burst{}); err != nil || spent.Server != 503 || spent.Delayed != 700 {
		t.Errorf("%+v, %v; want 503 ns of the server, and a delay of 700 ns", spent, err)
	}
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	delete(used, 70) // it dies
	if spent, err := m.Stop(engine.Burst{}); err != nil || spent.Server != 0 {
		t.Errorf("%+v, %v; want nothing of a server that has died", spent, err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

func TestPreempted(t *testing.T) {
	const ms = time.Millisecond
	// One burst of two ends that take turns on a processor, as it usually is.
	quiet := func() (engine.Burst, Spent) {
		return engine.Burst{Span: 6 * ms}, Spent{Client: 3 * ms, Server: 3 * ms, Delayed: 3 * ms}
	}
	follows := &Meter{kernel: &Kernel{}, server: 50, cpus: []int{1}, followed: ends}
	for _, c := range []struct {
		name  string
		meter *Meter
		span  time.Duration
		s     Spent
		want  bool // after calibration,
		first bool // and as the very first burst
	}{
		{"as usual", follows, 6 * ms, Spent{Client: 3 * ms, Server: 3 * ms, Delayed: 3 * ms}, false, false},
		{"a neighbour took half", follows, 6 * ms, Spent{Client: 2 * ms, Server: 1 * ms, Delayed: 5 * ms}, true, false},
		{"a neighbour took a quarter of a second", follows, 256 * ms, Spent{Client: 3 * ms, Server: 3 * ms, Delayed: 250 * ms}, true, true},
		{"the network stalled", follows, 1000 * ms, Spent{Client: 3 * ms, Server: 3 * ms, Delayed: 3 * ms}, false, false},
		{"the network stalled on a busy machine", follows, 1000 * ms, Spent{Client: 6 * ms, Server: 3 * ms, Delayed: 300 * ms}, false, false},
		{"both, about as long", follows, 1000 * ms, Spent{Client: 3 * ms, Server: 3 * ms, Delayed: 600 * ms}, true, true},
		{"no span", follows, 0, Spent{}, false, false},
		{"half is missing, for unknown reasons", &Meter{kernel: &Kernel{}, server: 50, cpus: []int{1}}, 6 * ms, Spent{Client: 2 * ms, Server: 1 * ms}, true, false},
		{"a second is missing, for unknown reasons", &Meter{kernel: &Kernel{}, server: 50, cpus: []int{1}}, 1000 * ms, Spent{Client: 3 * ms}, false, false},
		{"two processors, for unknown reasons", &Meter{kernel: &Kernel{}, server: 50, cpus: []int{0, 1}}, 6 * ms, Spent{Client: 1 * ms}, false, false},
		{"another machine", &Meter{kernel: &Kernel{}, cpus: []int{1}}, 6 * ms, Spent{Client: 1 * ms}, false, false},
	} {
		if got := c.meter.Preempted(engine.Burst{Span: c.span}, c.s, &pressure.Share{}, 0); got != c.first {
			t.Errorf("%s, as the first: %v, want %v", c.name, got, c.first)
		}
		var usual pressure.Share
		for range 20 {
			if b, s := quiet(); c.meter.Preempted(b, s, &usual, 0) {
				t.Fatalf("%s: a usual burst counts as preempted", c.name)
			}
		}
		if got := c.meter.Preempted(engine.Burst{Span: c.span}, c.s, &usual, 0); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func FuzzParseDelay(f *testing.F) {
	f.Add("1 2 3\n")
	f.Add("-1 2 3")
	f.Fuzz(func(t *testing.T, text string) {
		if used, waited, err := parseDelay(text); err == nil && (used < 0 || waited < 0) {
			t.Errorf("%q: ran %v, waited %v", text, used, waited)
		}
	})
}

func TestMeterOfAServerThatIsGone(t *testing.T) {
	m := (&Kernel{clock: clocks{}.read}).Meter(process{50, true}, nil)
	if err := m.Start(); err == nil {
		t.Error("the clock of no process was read")
	}
	if _, err := m.Stop(engine.Burst{}); err == nil {
		t.Error("a burst was measured from nowhere")
	}
}

// TestApartCountsTicks: where soft interrupts are counted separately, they are the burst's processors' in /proc/stat.
func TestApartCountsTicks(t *testing.T) {
	root := t.TempDir()
	set := func(text string) {
		if err := os.WriteFile(filepath.Join(root, "stat"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set("cpu0 0 0 0 0 0 0 7 0\ncpu1 0 0 0 0 0 0 7 0\n")
	k, err := OpenKernel(root, softirq.Separate)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	m := k.Meter(process{local: false}, []int{1})
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	set("cpu0 0 0 0 0 0 0 9 0\ncpu1 0 0 0 0 0 0 8 0\n")
	if spent, err := m.Stop(engine.Burst{}); err != nil || spent.Kernel != procfile.Tick {
		t.Errorf("%+v, %v; want a tick", spent, err)
	}
}

// softirqOf is softirqThread of a stat as the kernel writes it, which goes on with more figures where it has flags.
func softirqOf(stat string) (cpu int, ok bool) {
	if len(strings.Fields(stat)) > 8 {
		stat += strings.Repeat(" 0", 40)
	}
	name, fields, err := procfile.ParseStat([]byte(stat))
	if err != nil {
		return 0, false
	}
	return softirqThread(name, fields)
}

func TestSoftirqThread(t *testing.T) {
	for _, c := range []struct {
		stat string
		cpu  int
		ok   bool
	}{
		{"22 (ksoftirqd/1) S 2 0 0 0 -1 69238848 0 0 0 0", 1, true},
		{"22 (ksoftirqd/31) S 2 0 0 0 -1 2129984 0 0 0 0", 31, true},
		{"900 (ksoftirqd/1) S 2 0 0 0 -1 4194304 0 0 0 0", 0, false}, // a program of this name
		{"900 (x (ksoftirqd/1) S 2 0 0 0 -1 4194304 0 0", 0, false},
		{"22 (kworker/1:0) S 2 0 0 0 -1 69238848 0 0 0 0", 0, false},
		{"22 (ksoftirqd/x) S 2 0 0 0 -1 69238848 0 0 0 0", 0, false},
		{"22 (ksoftirqd/1) S 2", 0, false}, // too few figures
		{"", 0, false},
	} {
		if cpu, ok := softirqOf(c.stat); cpu != c.cpu && c.ok || ok != c.ok {
			t.Errorf("%q: %d, %v; want %d, %v", c.stat, cpu, ok, c.cpu, c.ok)
		}
	}
}

func FuzzSoftirqThread(f *testing.F) {
	f.Add("22 (ksoftirqd/1) S 2 0 0 0 -1 69238848 0 0 0 0")
	f.Fuzz(func(t *testing.T, stat string) {
		if _, ok := softirqOf(stat); ok && !strings.Contains(stat, "(ksoftirqd/") {
			t.Errorf("%q counts as ksoftirqd", stat)
		}
	})
}
