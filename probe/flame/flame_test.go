package flame_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pprof "github.com/google/pprof/profile"

	"netdelta/internal/leak"
	"netdelta/probe/flame"
	"netdelta/probe/probetest"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// open opens a profiler where this machine has one.
func open(t *testing.T) *flame.Profiler {
	t.Helper()
	p, err := flame.Open()
	probetest.Supported(t, err)
	t.Cleanup(func() {
		for range 2 {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return p
}

// ownSpace is the number of this program's network namespace.
func ownSpace(t *testing.T) uint32 {
	t.Helper()
	var s syscall.Stat_t
	if err := syscall.Stat("/proc/self/ns/net", &s); err != nil {
		t.Fatal(err)
	}
	return uint32(s.Ino)
}

//go:noinline
func burnHere(enough func() bool) (n int) {
	for !enough() {
		for i := range 10_000 {
			n += i
		}
	}
	return n
}

// What burns a processor is found: under its name, in its namespace, for as long as it did. On a busy machine that is not how
// long it took.
func TestProfile(t *testing.T) {
	p := open(t)
	const long = 300 * time.Millisecond
	names := map[uint32]string{ownSpace(t): "pod7"}
	for range 2 { // the second profile holds nothing of the first
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		before := processorTime(t)
		burnHere(func() bool { return processorTime(t)-before >= long })
		used := processorTime(t) - before
		taken, err := p.Stop(t.Context(), names)
		if err != nil {
			t.Fatal(err)
		}
		if taken.Lost != 0 || taken.Processors < runtime.NumCPU() {
			t.Errorf("%d ticks lost, on %d processors", taken.Lost, taken.Processors)
		}
		all := time.Duration(taken.Processors) * taken.Duration
		if total := taken.Total(); total < all*9/10 || total > all*11/10 {
			t.Errorf("ticks of %v in %v of all processors", total, all)
		}
		burnt := time.Duration(0)
		for _, u := range taken.Functions() {
			if strings.HasSuffix(u.Function, "flame_test.burnHere") {
				burnt = u.All
			}
		}
		if burnt < used/2 || burnt > used*3/2 {
			t.Errorf("found %v in the function that burnt for %v", burnt, used)
		}
		for _, s := range taken.Samples {
			if s.Space == "pod7" && s.Process == "" {
				t.Errorf("a sample of no thread: %+v", s)
			}
		}
	}
}

// processorTime is how long this program has run so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// sample is a profile as it could be.
func sample() flame.Profile {
	k := func(names ...string) (f []flame.Frame) {
		for _, n := range names {
			f = append(f, flame.Frame{Function: n, Kernel: true})
		}
		return f
	}
	return flame.Profile{
		Event: flame.Clock, Period: time.Millisecond, Duration: 10 * time.Millisecond, Processors: 1,
		Samples: []flame.Sample{
			{Space: "pod0", Process: "netdelta", Stack: append([]flame.Frame{{Function: "main.main"}}, k("do_syscall", "tcp_sendmsg")...), Ticks: 3},
			{Space: "pod0", Process: "netdelta", SoftIRQ: true, Stack: k("do_syscall", "handle_softirqs", "tcp_v4_rcv"), Ticks: 2},
			{Space: flame.Elsewhere, Process: "idle", Idle: true, Stack: k("do_idle"), Ticks: 5},
		},
	}
}

func TestFolded(t *testing.T) {
	var out bytes.Buffer
	if err := sample().WriteFolded(&out); err != nil {
		t.Fatal(err)
	}
	want := "pod0;netdelta;main.main;do_syscall_[k];tcp_sendmsg_[k] 3\n" +
		"pod0;netdelta;do_syscall_[k];handle_softirqs_[k];tcp_v4_rcv_[k] 2\n" +
		"idle;do_idle_[k] 5\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("folded stacks (-want +got):\n%s", d)
	}
}

// The library reads the file back, and so does go tool pprof.
func TestPprof(t *testing.T) {
	file := filepath.Join(t.TempDir(), "profile.pb.gz")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sample().WritePprof(out), out.Close()); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	p, err := pprof.Parse(in)
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, s := range p.Sample {
		sum += s.Value[1]
	}
	if sum != (10 * time.Millisecond).Nanoseconds() {
		t.Errorf("samples of %d ns in all, want 10 ms", sum)
	}
	p.FilterSamplesByTag(func(sample *pprof.Sample) bool { return slices.Contains(sample.Label["context"], "softirq") }, nil)
	if text := p.String(); !strings.Contains(text, "tcp_v4_rcv") {
		t.Errorf("no sample of softirq has its function:\n%s", text)
	}
	for _, s := range p.Sample {
		for _, at := range s.Location {
			for _, line := range at.Line {
				if line.Function.Name == "do_idle" {
					t.Error("a sample of the idle processor is tagged softirq")
				}
			}
		}
	}
}

func TestAdd(t *testing.T) {
	one := sample()
	sum := flame.Add(one, one)
	if sum.Total() != 2*one.Total() || sum.Idle() != 2*one.Idle() || len(sum.Samples) != len(one.Samples) || sum.Duration != 2*one.Duration {
		t.Errorf("twice the same profile: %+v", sum)
	}
	uses := sum.Functions()
	if uses[0].Function != "tcp_sendmsg" || uses[0].Own != 6*time.Millisecond {
		t.Errorf("the first function is %+v", uses[0])
	}
}

// A profiler that was killed leaves nothing in the kernel.
func TestKilled(t *testing.T) {
	open(t) // or this test is skipped
	probetest.Killed(t, "NETDELTA_FLAME_HANG", []string{"tick"}, func() {
		p := open(t)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	})
}

// A profile that is no longer wanted is not read.
func TestStopIsInterrupted(t *testing.T) {
	p := open(t)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	before := processorTime(t)
	burnHere(func() bool { return processorTime(t)-before >= 20*time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if taken, err := p.Stop(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%d samples, error %v; want %v", len(taken.Samples), err, context.Canceled)
	}
}
