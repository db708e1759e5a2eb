package cpu

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/internal/require"
	"netdelta/probe/probetest"
	"netdelta/result"
	"netdelta/workload"
	"netdelta/workload/catalogue"
)

// open arms a workload between two pods of a lab, both ends on one processor.
func open(t *testing.T, name string, cpu int) probetest.Connection {
	t.Helper()
	w := workload.Find(catalogue.Workloads(), name)
	return probetest.Connect(t, name, w.Defaults, cpu)
}

// follow has the meter follow both ends.
func follow(t *testing.T, p probetest.Connection, m *Meter) {
	t.Helper()
	for end, threads := range p.Threads(t) {
		m.Follow(end, threads)
	}
	_, err := os.Stat("/proc/self/schedstat")
	require.Need(t, "a kernel that counts what threads wait (CONFIG_SCHED_INFO)", err == nil)
	if !m.Delays() {
		t.Fatalf("what the ends wait for a processor is not known: %q", m.Lacks())
	}
}

// measured is a burst of 100 ms, and what it took.
func measured(t *testing.T, p probetest.Connection, m *Meter) (engine.Burst, Spent) {
	t.Helper()
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	b, err := p.Client.Burst(t.Context(), p.Session, engine.BurstSpec{Duration: 100 * time.Millisecond, Deadline: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	spent, err := m.Stop(b)
	if err != nil {
		t.Fatal(err)
	}
	return b, spent
}

// told is what the server's agent says that the server has used.
func told(t *testing.T, p probetest.Connection) time.Duration {
	t.Helper()
	spent, err := p.Server.Spent(t.Context(), p.Service)
	if err != nil || !spent.Alone {
		t.Fatalf("the server tells %+v, %v", spent, err)
	}
	return spent.CPU
}

// TestDelayIsOfTheProcessor: others on the processor delay both ends, a network that lets nothing through does not.
func TestDelayIsOfTheProcessor(t *testing.T) {
	require.Namespaces(t)
	program := require.Tool(t, "nft")
	cpu, k := allowed(t)
	p := open(t, "tcp-rr", cpu)
	m := k.Meter(p.Server, []int{cpu})
	follow(t, p, m)
	share := func() float64 {
		t.Helper()
		b, spent := measured(t, p, m)
		t.Logf("%v: client %v, server %v, delayed %v", b.Span, spent.Client, spent.Server, spent.Delayed)
		return float64(spent.Delayed) / float64(b.Span)
	}
	share()
	lift, err := probetest.Deafen(t.Context(), p.Server.Pod(), program)
	if err != nil {
		t.Fatal(err)
	}
	lifted := time.AfterFunc(600*time.Millisecond, func() {
		if err := lift(); err != nil {
			t.Error(err)
		}
	})
	defer lifted.Stop()
	stalled := share()
	for range 3 {
		start(t, "forever", cpu)
	}
	crowded := share()
	if stalled > 0.3 || crowded < 0.4 || crowded < 2*stalled {
		t.Errorf("delayed for %.2f of the time by a network that stalls, %.2f by three neighbours", stalled, crowded)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// threads is the processor time that each thread of a process has used, exact for those that don't run now.
func threads(t *testing.T, pid int) map[string]time.Duration {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]time.Duration{}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			continue // it has ended
		}
		var used time.Duration
		_, err = fmt.Fscan(bufio.NewReader(f), &used)
		if f.Close() == nil && err == nil {
			all[name] = used
		}
	}
	return all
}

// TestWorkloadsInALab holds the figures of bursts against what the kernel says elsewhere: the server's is the figure of the thread
// that serves, and both ends together, on one processor, use no more of it than there is.
func TestWorkloadsInALab(t *testing.T) {
	require.Namespaces(t)
	cpu, k := allowed(t)
	for _, name := range []string{"tcp-rr", "udp-rr", "tcp-stream", "udp-stream", "tcp-crr"} {
		t.Run(name, func(t *testing.T) {
			p := open(t, name, cpu)
			m := k.Meter(p.Server, []int{cpu})
			follow(t, p, m)
			defer m.Close()
			if lacks := m.Lacks(); len(lacks) > 0 && k.Lacks() == "" {
				t.Fatalf("a lab on this machine lacks %q", lacks)
			}
			var columns result.Bursts
			var sum Spent
			var wall time.Duration
			before, toldBefore := threads(t, p.Server.PID()), told(t, p)
			for range 40 {
				if err := m.Start(); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				b, err := p.Client.Burst(t.Context(), p.Session, engine.BurstSpec{
					Duration: 5 * time.Millisecond, Warmup: time.Millisecond, Deadline: 20 * time.Second,
				})
				if err != nil {
					t.Fatal(err)
				}
				spent, err := m.Stop(b)
				if err != nil {
					t.Fatal(err)
				}
				wall += time.Since(began)
				m.Record(&columns, b, spent)
				sum.Client, sum.Server, sum.Kernel = sum.Client+spent.Client, sum.Server+spent.Server, sum.Kernel+spent.Kernel
			}
			var thread time.Duration // the busiest one
			says := told(t, p) - toldBefore
			for name, used := range threads(t, p.Server.PID()) {
				thread = max(thread, used-before[name])
			}
			var work int64
			for _, w := range columns.Work {
				work += w
			}
			t.Logf("%d transactions in %v: client %v, server %v (its busiest thread %v, itself %v), kernel %v", work, wall, sum.Client, sum.Server, thread, says, sum.Kernel)
			if sum.Client+sum.Server > wall*21/20 {
				t.Errorf("both ends used %v of one processor in %v", sum.Client+sum.Server, wall)
			}
			// A transaction is two calls into the kernel at the least.
			if least := time.Duration(work) * 200; sum.Client < least || sum.Server < least {
				t.Errorf("client %v, server %v for %d transactions", sum.Client, sum.Server, work)
			}
			if _, err := os.Stat("/proc/self/schedstat"); err == nil && (sum.Server < thread*9/10 || sum.Server > thread*11/10+time.Millisecond) {
				t.Errorf("the server's process used %v, the thread that serves %v", sum.Server, thread)
			}
			if says < sum.Server*9/10-time.Millisecond || says > sum.Server*11/10+time.Millisecond {
				t.Errorf("the server's process used %v as read from here, and %v as it says itself", sum.Server, says)
			}
		})
	}
}
