// Command engine holds netdelta's own loops against what users would compare them with: a plain C loop, sockperf, iperf3 and wrk. All of
// them run in the same two pods of a lab, on a bridge, in turn and pinned alike. It prints ratios with their spread, and
// fails when one of them surely misses its target.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"time"

	"netdelta/engine"
	"netdelta/extras/bench/harness"
	"netdelta/internal/clock"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

// options are the command line.
type options struct {
	builds, turns, pairs int
	burst                time.Duration
	size                 int
}

func main() {
	var o options
	flag.IntVar(&o.builds, "builds", 4, "how often the lab and all programs are made anew")
	flag.IntVar(&o.turns, "turns", 48, "bursts of the C loop, and of netdelta's, in each build")
	flag.IntVar(&o.pairs, "pairs", 3, "bursts of a second of each other program, and of netdelta's loop, in each build")
	flag.DurationVar(&o.burst, "burst", 20*time.Millisecond, "length of a burst against the C loop")
	flag.IntVar(&o.size, "size", 64, "bytes of a request and of its response")
	harness.Main("engine", func(ctx context.Context) error { return run(ctx, o) })
}

func run(ctx context.Context, o options) error {
	cpu, others, err := harness.Spare()
	if err != nil {
		return err
	}
	c := clock.System()
	fmt.Printf("both ends on processor %d, %d-byte messages, %d builds, clock %v\n", cpu, o.size, o.builds, &c)
	folder, err := os.MkdirTemp("", "netdelta-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	reference, err := compile(folder)
	if err != nil {
		return err
	}
	s := newSheet(o.size)
	for build := range o.builds {
		fmt.Fprintf(os.Stderr, "build %d of %d\n", build+1, o.builds)
		if err := measureBuild(ctx, o, reference, cpu, others, s); err != nil {
			return err
		}
	}
	recording(s)
	if missed := s.print(os.Stdout); missed > 0 {
		return fmt.Errorf("%d targets missed", missed)
	}
	return nil
}

// measureBuild measures all comparisons in a lab of their own.
func measureBuild(ctx context.Context, o options, reference string, cpu int, others []int, s *sheet) (err error) {
	e, err := open(ctx, cpu, others)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	for _, protocol := range []string{"tcp", "udp"} {
		if err := e.againstLoop(ctx, o, reference, protocol, s); err != nil {
			return fmt.Errorf("%s against the C loop: %w", protocol, err)
		}
	}
	for _, c := range contests(o.size) {
		if err := e.againstProgram(ctx, c, o.pairs, s); err != nil {
			return fmt.Errorf("%s against %s: %w", c.name, c.program, err)
		}
	}
	return nil
}

// patience is how long a burst may take beyond its length.
const patience = 30 * time.Second

// ends are the client's pod and the server's, with netdelta's agents in them.
type ends struct {
	harness.Pair
	tb    testbed.Testbed
	cpu   int    // that both ends of everything are pinned to
	ports uint16 // of the server's pod that are taken
}

func open(ctx context.Context, cpu int, others []int) (*ends, error) {
	tb, err := lab.NewDriver(network.Catalogue()).Open(ctx, testbed.Spec{Nodes: 1, PodsPerNode: 2, Network: "bridge", Link: testbed.Link{MTU: 1500}})
	if err != nil {
		return nil, err
	}
	e := &ends{tb: tb, cpu: cpu}
	if e.Pair, err = harness.Start(ctx, tb.Pods()[0], tb.Pods()[1], others); err != nil {
		return nil, errors.Join(err, tb.Close())
	}
	return e, nil
}

func (e *ends) close() error { return errors.Join(e.Close(), e.tb.Close()) }

// nextPort is a port of the server's pod that nothing has, and where the client reaches it.
func (e *ends) nextPort() (port uint16, to netip.AddrPort) {
	first, _ := e.Server.Pod().Ports()
	port = first + e.ports
	e.ports++
	return port, e.tb.Endpoint(e.Client.Pod(), e.Server.Pod(), port)
}

// connect opens a workload between the ends and returns the client's session.
func (e *ends) connect(ctx context.Context, workload string, p result.Params) (session int, err error) {
	port, to := e.nextPort()
	all := netip.IPv4Unspecified()
	session, _, err = e.Connect(ctx, workload, p, harness.Link{Listen: netip.AddrPortFrom(all, port), From: netip.AddrPortFrom(all, 0), To: to}, e.cpu)
	return session, err
}

func (e *ends) burst(ctx context.Context, session int, length time.Duration) (engine.Burst, error) {
	return e.Client.Burst(ctx, session, engine.BurstSpec{Duration: length, Warmup: length / 50, Deadline: length + patience})
}
