// Package foreign has other programs make the load of a workload in place of netdelta's own loops: iperf3, sockperf and netperf.
// Each burst is a run of the program's client, pinned like the loop that it stands for, against a server that stays; what it
// measured is read from its own output. So a study can hold both against each other in one run.
package foreign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/latency"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
)

// Engine is a program that makes the load of one workload.
type Engine struct {
	Name     string // as in result.Params.Engine
	Programs []workload.Program
	// Check names a parameter that the program can't do, of those that the workload has.
	Check func(p result.Params) error
	// Server is the program that serves; nil where the workload's own server does. Reached is the protocol that it listens with.
	Server  func(p result.Params, listen netip.AddrPort) daemon.Spec
	Reached network.Protocol
	// Prepare sets in the pod of either end what the program can't be told; nil where there is nothing.
	Prepare func(p, defaults result.Params) error
	// Connect readies a client; nil where there is nothing to do.
	Connect func(ctx context.Context, c *Client) error
	// Measure runs the client once, for whole seconds.
	Measure func(ctx context.Context, c *Client, spec engine.BurstSpec) (engine.Burst, engine.More, error)
}

// burst is the shortest that these programs take: they count in whole seconds.
const burst = time.Second

// engineOf is the engine that a workload's parameters ask for.
func engineOf(own workload.Workload, engines []Engine, p result.Params) (Engine, error) {
	var names []string
	for _, e := range engines {
		if e.Name == p.Engine {
			return e, e.usable(own, p)
		}
		names = append(names, e.Name)
	}
	return Engine{}, fmt.Errorf("%s: engine %q can't make its load: netdelta, %s", own.Name, p.Engine, strings.Join(names, " or "))
}

// With offers engines as alternatives to a workload's own loop.
func With(own workload.Workload, engines ...Engine) workload.Workload {
	w := own
	find := func(p result.Params) (Engine, error) { return engineOf(own, engines, p) }
	w.Check = func(p result.Params) error {
		if p.Engine == "" {
			return own.Check(p)
		}
		_, err := find(p)
		return err
	}
	w.SourcePorts = func(p result.Params) int {
		if p.Engine == "" {
			return own.SourcePorts(p)
		}
		return 0 // these programs take any, and another one for each burst
	}
	w.Demand = func(p result.Params) workload.Demand {
		e, err := find(p)
		if p.Engine == "" || err != nil {
			return own.Demands(p)
		}
		d := workload.Demand{}
		if e.Server == nil {
			d = own.Demands(p)
		}
		// What is under way when a program ends is lost: its bursts are as long as a transaction.
		d.Burst, d.Transaction = max(d.Burst, d.Transaction, burst), 0
		d.Programs, d.Opaque = append(d.Programs, e.Programs...), true
		return d
	}
	w.Serve = func(ctx context.Context, p result.Params, listen netip.AddrPort, cpu int) (engine.Server, error) {
		if p.Engine == "" {
			return own.Serve(ctx, p, listen, cpu)
		}
		e, err := find(p)
		if err != nil {
			return nil, err
		}
		if e.Server == nil {
			p.Engine = ""
			return own.Serve(ctx, p, listen, cpu)
		}
		if err := e.prepare(p, own.Defaults); err != nil {
			return nil, fmt.Errorf("%s: serve by %s: %w", own.Name, e.Name, err)
		}
		return e.serve(ctx, own.Name, engine.Fill(p, own.Defaults), listen, cpu)
	}
	w.Dial = func(ctx context.Context, p result.Params, local, server netip.AddrPort, cpu int) (engine.Client, error) {
		if p.Engine == "" {
			return own.Dial(ctx, p, local, server, cpu)
		}
		e, err := find(p)
		if err != nil {
			return nil, err
		}
		if err := e.prepare(p, own.Defaults); err != nil {
			return nil, fmt.Errorf("%s: load by %s: %w", own.Name, e.Name, err)
		}
		return e.dial(ctx, own.Name, filled(p, own.Defaults), server, cpu)
	}
	if own.Exact != nil {
		w.Exact = func(ctx context.Context, spec engine.ExactSpec, cpu int) (engine.ExactPair, error) {
			if spec.Params.Engine != "" {
				return nil, fmt.Errorf("%s: instructions are counted of netdelta's own loops alone; leave engine %s out", own.Name, spec.Params.Engine)
			}
			return own.Exact(ctx, spec, cpu)
		}
	}
	return w
}

// usable names the first parameter that the workload does not have, or that this engine can't do.
func (e Engine) usable(own workload.Workload, p result.Params) error {
	p.Engine = ""
	if err := own.Check(p); err != nil {
		return err
	}
	if err := cmp.Or(Lacks(map[string]bool{"iterations": p.Own.Count("iterations") > 0}), e.Check(engine.Fill(p, own.Defaults))); err != nil {
		return fmt.Errorf("%s: engine %s: %w; leave it out, or the engine", own.Name, e.Name, err)
	}
	return nil
}

// prepare prepares the pod.
func (e Engine) prepare(p, defaults result.Params) error {
	if e.Prepare == nil {
		return nil
	}
	return e.Prepare(p, defaults)
}

// Lacks is the error of the parameters of these names that are set.
func Lacks(set map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if set[name] {
			return errors.New(name + " can't be had of it")
		}
	}
	return nil
}

// only refuses a number of connections above what an engine makes.
func only(p result.Params, most int) error {
	if p.Connections > most {
		return fmt.Errorf("connections %d are more than the %d that it makes", p.Connections, most)
	}
	return nil
}

// within refuses a message that an engine does not send.
func within(p result.Params, least, most unit.Bytes) error {
	if p.Message < least || p.Message > most {
		return fmt.Errorf("message %d bytes is out of its range: %d to %d bytes", int64(p.Message), int64(least), int64(most))
	}
	return nil
}

// server is a program that serves. What it saw, its client tells.
type server struct{ home *daemon.Sandbox }

// errTaken is the error of a port that is in use.
var errTaken = errors.New("address already in use; end what listens there")

// lookAgain is how long to wait before looking again whether a server listens.
const lookAgain = 5 * time.Millisecond

// serve starts the program and returns when it listens. It is looked for in the kernel's list, since a connection would be taken for
// a client.
func (e Engine) serve(ctx context.Context, name string, p result.Params, listen netip.AddrPort, cpu int) (_ engine.Server, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: serve by %s on %v: %w", name, e.Name, listen, err)
		}
	}()
	if listen.Port() == 0 {
		return nil, errors.New("a server needs a port between 1 and 65535, so that it is the same in every network")
	}
	if taken, err := listening(e.Reached, listen); taken || err != nil {
		return nil, cmp.Or(err, errTaken) // what listens already would be taken for this one
	}
	home, err := daemon.Open(room)
	if err != nil {
		return nil, err
	}
	spec := e.Server(p, listen)
	spec.CPUs = daemon.Pin(cpu)
	program, err := home.Start(spec)
	if err == nil {
		err = daemon.Until(ctx, program, lookAgain, func(context.Context) error {
			there, err := listening(e.Reached, listen)
			switch {
			case err != nil:
				return daemon.FinalError{Err: err}
			case !there:
				return errors.New("it does not listen; is the port in use?")
			}
			return nil
		})
	}
	if err != nil {
		return nil, errors.Join(err, home.Close())
	}
	return &server{home}, nil
}

// stateListens is TCP_LISTEN, as /proc/net/tcp has it.
const stateListens = "0A"

// listening says whether a port is listened on in this network namespace, by the kernel's list: a line has a number, the local
// address, the remote one and the state.
func listening(protocol network.Protocol, at netip.AddrPort) (bool, error) {
	file := "/proc/net/tcp"
	if protocol == network.UDP {
		file = "/proc/net/udp"
	}
	if at.Addr().Unmap().Is6() {
		file += "6"
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return false, fmt.Errorf("ask the kernel who listens: %w", err)
	}
	port := fmt.Sprintf(":%04X", at.Port())
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasSuffix(f[1], port) && (protocol == network.UDP || f[3] == stateListens) {
			return true, nil
		}
	}
	return false, nil
}

// Totals implements engine.Server.
func (s *server) Totals() engine.Totals { return engine.Totals{} }

// Close implements engine.Server.
func (s *server) Close() error { return s.home.Close() }

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
