package procstat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"pgregory.net/rapid"

	"netdelta/internal/leak"
	"netdelta/internal/procfile"
	"netdelta/internal/property"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

func TestParse(t *testing.T) {
	const machine = "cpu  9 9 9 9 9 9 9 9 9 9\n" +
		"cpu0 10 0 20 3000 5 6 70 8 0 0\n" +
		"cpu3 10 0 20 3000 5 6 100 1 0 0\n" +
		"intr 5 0 0\nprocs_running 4\nprocs_blocked 1\nsoftirq 1 2 3\n"
	for _, c := range []struct {
		name string
		text string
		cpus []int
		want Times
	}{
		{"all", machine, nil, Times{Softirq: 1700 * time.Millisecond, Steal: 90 * time.Millisecond, Busy: 2510 * time.Millisecond, Idle: 60100 * time.Millisecond, Processors: 2, Running: 4}},
		{"one", machine, []int{3}, Times{Softirq: time.Second, Steal: 10 * time.Millisecond, Busy: 1370 * time.Millisecond, Idle: 30050 * time.Millisecond, Processors: 1, Running: 4}},
		{"one that is not there", machine, []int{1}, Times{Running: 4}},
		{"an old kernel", "cpu0 1 2 3 4\n", nil, Times{Busy: 60 * time.Millisecond, Idle: 40 * time.Millisecond, Processors: 1}},
		{"no end of line", "cpu0 1 2 3 4 5 6 7", nil, Times{Softirq: 70 * time.Millisecond, Busy: 190 * time.Millisecond, Idle: 90 * time.Millisecond, Processors: 1}},
		{"nothing", "", nil, Times{}},
	} {
		if got, err := Parse([]byte(c.text), c.cpus); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
	for _, text := range []string{
		"cpux 1 2\n", "cpu0 1 2 3 4 5 6 -7\n", "cpu0 1 2 3 4 5 6 99999999999999999999\n", "procs_running many\n", "cpu0 1 9223372036854775807\n",
	} {
		if got, err := Parse([]byte(text), nil); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

// FuzzParse: whatever the file says, the answer is an error, or one in which no processor has more than all have.
func FuzzParse(f *testing.F) {
	f.Add("cpu  1 2 3\ncpu0 1 2 3 4 5 6 7 8 9 10\nprocs_running 2\n", 0)
	f.Add("cpu1  7", 1)
	f.Add("cpu18446744073709551616 1\n", 3)
	f.Fuzz(func(t *testing.T, text string, cpu int) {
		all, err := Parse([]byte(text), nil)
		one, oneErr := Parse([]byte(text), []int{cpu})
		if err != nil {
			return
		}
		if oneErr != nil {
			t.Fatalf("a part of it is an error, the whole is not: %v", oneErr)
		}
		if one.Softirq > all.Softirq && all.Softirq >= 0 || one.Processors > all.Processors || one.Running != all.Running || all.Running < 0 {
			t.Fatalf("processor %d has %+v of %+v", cpu, one, all)
		}
	})
}

// TestReadIsWhatOthersRead holds this machine's file against another reader of it.
func TestReadIsWhatOthersRead(t *testing.T) {
	r, err := Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	proc, err := procfs.NewFS("/proc")
	if err != nil {
		t.Fatal(err)
	}
	before, err := proc.Stat()
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err := proc.Stat()
	if err != nil {
		t.Fatal(err)
	}
	softirq := func(s procfs.Stat) (sum float64) {
		for _, c := range s.CPU {
			sum += c.SoftIRQ
		}
		return sum
	}
	const rounding = 1e-6
	if s := got.Softirq.Seconds(); s < softirq(before)-rounding || s > softirq(after)+rounding {
		t.Errorf("%g s of soft interrupts, others read %g to %g s", s, softirq(before), softirq(after))
	}
	if got.Processors != len(after.CPU) || got.Running < 1 {
		t.Errorf("%+v, want %d processors and at least this thread running", got, len(after.CPU))
	}
}

// TestSumsAreRight: single differences are coarse, but over many spans of a few milliseconds, at any distance, the sum of
// what the kernel counted is the sum of what there was.
func TestSumsAreRight(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		read := func(softirq time.Duration) time.Duration {
			times, err := Parse(fmt.Appendf(nil, "cpu0 0 0 0 0 0 0 %d 0 0 0\n", softirq/procfile.Tick), []int{0})
			if err != nil {
				t.Fatal(err)
			}
			return times.Softirq
		}
		share := rapid.Float64Range(0.01, 0.9).Draw(t, "share")
		gap := time.Duration(rapid.IntRange(1, 50).Draw(t, "gap in ms")) * time.Millisecond
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var total, truth, counted time.Duration
		for range 200 {
			other := gap + time.Duration(rng.Int64N(int64(20*time.Millisecond))) // other cells had their turn
			total += time.Duration(float64(other) * share)
			before := read(total)
			used := time.Duration(share * float64(5*time.Millisecond))
			total += used
			truth += used
			counted += read(total) - before
		}
		// Each burst adds 0 or 1 tick with the right mean: the sum of 200 is within 6 standard deviations, of at most half a tick each.
		if off := math.Abs(float64(counted - truth)); off > 6*math.Sqrt(200)*float64(procfile.Tick)/2 {
			t.Fatalf("%v counted of %v", counted, truth)
		}
	})
}

func TestManyProcessors(t *testing.T) {
	root := t.TempDir()
	var text strings.Builder
	for i := range 1024 {
		fmt.Fprintf(&text, "cpu%d 1 1 1 1 1 1 1 1 1 1\n", i)
	}
	if err := os.WriteFile(filepath.Join(root, "stat"), []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := r.Read(nil); err != nil || got.Processors != 1024 || got.Softirq != 1024*procfile.Tick {
		t.Errorf("%+v, %v", got, err)
	}
}

func BenchmarkRead(b *testing.B) {
	r, err := Open("/proc")
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Read([]int{0}); err != nil {
			b.Fatal(err)
		}
	}
}
