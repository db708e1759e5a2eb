package stalls

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/internal/leak"
	"netdelta/internal/require"
	"netdelta/internal/softirq"
	"netdelta/probe/cpu"
	"netdelta/probe/pressure"
	"netdelta/probe/probetest"
	"netdelta/result"
	"netdelta/workload"
	"netdelta/workload/catalogue"
)

// The test binary is its own agent.
func TestMain(m *testing.M) {
	if agent.Asked() {
		agent.Become(catalogue.Workloads())
	}
	os.Exit(leak.Main(m))
}

// cell is a workload armed on a network of its own.
type cell struct {
	probetest.Connection
	meter *cpu.Meter
	share pressure.Share
	trial result.Trial
}

func open(t *testing.T, w string, p result.Params) *cell {
	t.Helper()
	c := &cell{Connection: probetest.Connect(t, w, p, -1, probetest.Ahead)}
	k, err := cpu.OpenKernel("/proc", softirq.Unknown)
	if err != nil {
		t.Fatal(err)
	}
	c.meter = k.Meter(c.Server, nil)
	t.Cleanup(func() {
		if err := errors.Join(c.meter.Close(), k.Close()); err != nil {
			t.Error(err)
		}
	})
	for end, threads := range c.Threads(t) {
		c.meter.Follow(end, threads)
	}
	return c
}

// burst runs a burst that begins now and adds it to the trial.
func (c *cell) burst(t *testing.T, run time.Time) {
	t.Helper()
	if err := c.meter.Start(); err != nil {
		t.Fatal(err)
	}
	start := time.Since(run)
	b, err := c.Client.Burst(t.Context(), c.Session, engine.BurstSpec{
		Duration: 5 * time.Millisecond, Warmup: time.Millisecond, Deadline: 20 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	add(&c.trial.Bursts, start.Nanoseconds(), b.Duration.Nanoseconds(), b.Span.Nanoseconds(), b.Transactions, b.P50)
	last := len(c.trial.Bursts.Round) - 1
	c.trial.Bursts.Throughput[last], c.trial.Bursts.Max[last] = b.Throughput, b.Max
	spent, err := c.meter.Stop(b)
	if err != nil {
		t.Fatal(err)
	}
	// Others on the processor are no stall of the network, and must not be taken for one.
	if c.meter.Preempted(b, spent, &c.share, 0) {
		c.trial.Bursts.Disturbed[last] = pressure.ReasonPreempted
	}
}

// TestStallingNetworkWhenQuiet has two networks measured in turn, while one of them drops everything for a second.
func TestStallingNetworkWhenQuiet(t *testing.T) {
	require.Namespaces(t)
	program := require.Tool(t, "nft")
	for _, name := range []string{"tcp-stream", "tcp-rr", "udp-rr"} {
		t.Run(name, func(t *testing.T) {
			w := workload.Find(catalogue.Workloads(), name)
			stalling, steady := open(t, name, w.Defaults), open(t, name, w.Defaults)

			run := time.Now()
			began, ended := make(chan time.Duration, 1), make(chan time.Duration, 1)
			go func() {
				time.Sleep(300 * time.Millisecond)
				began <- time.Since(run)
				lift, err := probetest.Deafen(t.Context(), stalling.Server.Pod(), program)
				if err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
				if err := lift(); err != nil {
					t.Error(err)
				}
				ended <- time.Since(run)
			}()
			var end time.Duration
			for more := 20; more > 0; more-- {
				stalling.burst(t, run)
				steady.burst(t, run)
				select {
				case end = <-ended:
				default:
					if end == 0 {
						more++
					}
				}
			}
			begin := <-began
			if strings.HasSuffix(name, "stream") {
				stalling.trial, steady.trial = stream(stalling.trial), stream(steady.trial)
			}
			found := Find(stalling.trial)
			t.Logf("dropped from %v to %v: %v", begin, end, found)
			total := time.Duration(0)
			for _, s := range found {
				// TCP tries again at ever longer intervals, and so goes on later than the network does.
				if s.At < begin-50*time.Millisecond && s.At+s.Length < begin || s.At > end+2*time.Second {
					t.Errorf("%v lies outside of the stall", s)
				}
				total += s.Length
			}
			if total < 700*time.Millisecond {
				t.Errorf("the stall of a second was found as %v", found)
			}
			if found := Find(steady.trial); len(found) > 0 {
				t.Errorf("the steady network stalls: %v", found)
			}
		})
	}
}
