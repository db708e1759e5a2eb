package foreign

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/latency"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
)

// Client runs an engine's client for each burst.
type Client struct {
	workload.ProgramClient
	Params result.Params
	Server netip.AddrPort
	cpus   []int
}

// dial makes a client. Nothing is connected yet: the program does that in each burst, before what it measures.
func (e Engine) dial(ctx context.Context, name string, p result.Params, to netip.AddrPort, cpu int) (engine.Client, error) {
	c := &Client{Params: p, Server: to, cpus: daemon.Pin(cpu)}
	c.Name = fmt.Sprintf("%s: load by %s to %v", name, e.Name, to)
	c.Tally.Opened = time.Now()
	if !to.IsValid() || to.Port() == 0 || to.Addr().IsUnspecified() {
		return nil, fmt.Errorf("%s: this is no server's address", c.Name)
	}
	c.Run = func(ctx context.Context, spec engine.BurstSpec) (engine.Burst, engine.More, error) {
		if spec.Duration == 0 {
			return engine.Burst{}, engine.More{}, errors.New("it takes a duration: the program runs for a time, not for a number of transactions")
		}
		// The program counts in whole seconds: a burst is at least as long as was asked for.
		spec.Duration, spec.Warmup = whole(spec.Duration), whole(spec.Warmup)
		return e.Measure(ctx, c, spec)
	}
	var err error
	if c.Home, err = daemon.Open(room); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	if e.Connect != nil {
		if err := e.Connect(ctx, c); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", c.Name, err), c.Close())
		}
	}
	return c, nil
}

// whole is a time in whole seconds, rounded up.
func whole(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

// Execute runs a program, pinned, and returns what it printed, also when it failed.
func (c *Client) Execute(ctx context.Context, program string, args []string) (daemon.Ran, error) {
	return c.Home.Measure(ctx, daemon.Spec{Path: program, Args: args, CPUs: c.cpus})
}

// take reads a file of the home and removes it.
func (c *Client) take(name string) (text []byte, err error) {
	err = c.Home.Do(func() error {
		full := c.Home.Path(name)
		if text, err = os.ReadFile(full); err != nil {
			return fmt.Errorf("read what it measured: %w", err)
		}
		return os.Remove(full)
	})
	return text, err
}

// tcp adds what TCP said of the connections to the totals: the last word counts, and all retransmits.
func tcp(info result.TCPInfo) func(*engine.Totals) {
	return func(t *engine.Totals) {
		if t.TCP != nil {
			info.Retransmits += t.TCP.Retransmits
		}
		t.TCP = &info
	}
}

// recorder records round trips in nanoseconds.
func recorder(all []float64) func(*latency.Histogram) {
	return func(h *latency.Histogram) {
		for _, ns := range all {
			h.Record(int64(ns), 1)
		}
	}
}

// filled are parameters with a workload's defaults in place of what is not given. A pod without rights may not choose every congestion
// control (net.ipv4.tcp_allowed_congestion_control): there a default is left to the kernel, as netdelta's own loops do.
func filled(p, defaults result.Params) result.Params {
	all := engine.Fill(p, defaults)
	if p.CongestionControl == "" && !permitted(all.CongestionControl) {
		all.CongestionControl = ""
	}
	return all
}

// permitted says whether this process may choose a congestion control. Any other error is reported by the program that uses it.
func permitted(name string) bool {
	if name == "" {
		return true
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer func() { _ = unix.Close(fd) }() // it was never connected
	return !errors.Is(unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name), unix.EPERM)
}

// room is how much a home holds for the programs' logs.
const room = 64 * unit.MiB
