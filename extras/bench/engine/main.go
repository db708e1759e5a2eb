// Command engine holds netdelta's own loops against what users would compare them with: a plain C loop, sockperf, iperf3 and wrk. All of
// them run in the same two pods of a lab, on a bridge, in turn and pinned alike. It prints ratios with their spread, and
// fails when one of them surely misses its target.
package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"netdelta/engine"
	"netdelta/extras/bench/harness"
	"netdelta/internal/clock"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/catalogue"
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

// contest is a workload whose load netdelta's own loop and another program make in turn.
type contest struct {
	name, workload string
	params         result.Params
	program        string // as result.Params.Engine names it
	figures        []figure
}

// figure is what is compared of bursts.
type figure struct {
	name, unit string
	of         func(engine.Burst) float64
	target     float64 // of netdelta's by the other program's; 0 for none
	atLeast    bool    // the target is a lower bound
}

// contests are all comparisons with other programs.
func contests(size int) []contest {
	median := figure{name: "p50", unit: "us", of: func(b engine.Burst) float64 { return b.P50 }}
	trip, throughput := median, figure{"throughput", "Gbit/s", func(b engine.Burst) float64 { return b.Throughput }, 1, true}
	trip.target = 1
	answered := []figure{
		{"requests/s", "k/s", func(b engine.Burst) float64 { return float64(b.Transactions) / b.Duration.Seconds() }, 1, true},
		median,
		{name: "client's CPU per request", unit: "us", of: func(b engine.Burst) float64 { return float64(b.CPU) / float64(b.Work) }},
	}
	var all []contest
	for _, name := range []string{"tcp-rr", "udp-rr"} {
		all = append(all, contest{name, name, result.Params{Message: unit.Bytes(size)}, "sockperf", []figure{trip}})
	}
	// Reno is the congestion control that every kernel lets any pod choose: the system's own may pace what one of the two sends.
	for _, flows := range []int{1, 4} {
		all = append(all, contest{fmt.Sprintf("tcp-stream of %d", flows), "tcp-stream", result.Params{Connections: flows, CongestionControl: "reno"}, "iperf3", []figure{throughput}})
	}
	for _, p := range []result.Params{
		{File: 600, Connections: 1}, {File: 600, Connections: 8}, {File: 600, Connections: 1, Reconnect: true},
		{File: 100_000, Connections: 1}, {File: 10_000_000, Connections: 1},
	} {
		name := fmt.Sprintf("http, %v on %d", p.File, p.Connections)
		if p.Reconnect {
			name += " new each time"
		}
		all = append(all, contest{name, "http", p, "wrk", answered})
	}
	return all
}

// lineName is the name of a comparison in the table.
func (c contest) lineName(f figure) string {
	return fmt.Sprintf("%s %s / %s", c.name, f.name, c.program)
}

// againstProgram compares bursts of a second. Nothing is compared where a program is missing.
func (e *ends) againstProgram(ctx context.Context, c contest, pairs int, s *sheet) error {
	theirs := c.params
	theirs.Engine = c.program
	needs := workload.Find(catalogue.Workloads(), c.workload).Demands(theirs)
	if missing, _, err := workload.Missing(needs.Programs); len(missing) > 0 || err != nil {
		return err
	}
	var sessions [2]int
	for i, p := range []result.Params{c.params, theirs} {
		var err error
		if sessions[i], err = e.connect(ctx, c.workload, p); err != nil {
			return err
		}
	}
	for n := range pairs {
		var bursts [2]engine.Burst
		for i := range bursts {
			which := (i + n) % 2
			var err error
			if bursts[which], err = e.burst(ctx, sessions[which], time.Second); err != nil {
				return err
			}
		}
		for _, f := range c.figures {
			s.add(c.lineName(f), f.of(bursts[0]), f.of(bursts[1]))
		}
	}
	return nil
}

//go:embed reference/pingpong.c
var source []byte

// compile makes the reference loop in a folder.
func compile(folder string) (program string, err error) {
	program = filepath.Join(folder, "pingpong")
	if err := os.WriteFile(program+".c", source, 0o600); err != nil {
		return "", err
	}
	if out, err := exec.Command("gcc", "-O2", "-o", program, program+".c").CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile the reference loop: %w: %s; install gcc", err, out)
	}
	return program, nil
}

// loop is the reference loop, ready between the ends.
type loop struct {
	server, client testbed.Process
	said           *bufio.Reader
}

func (e *ends) openLoop(ctx context.Context, program, protocol string, size int) (_ *loop, err error) {
	number, to := e.nextPort()
	port, bytes, cpu := strconv.Itoa(int(number)), strconv.Itoa(size), strconv.Itoa(e.cpu)
	l := &loop{}
	if l.server, err = e.Server.Pod().Start(ctx, testbed.Command{Path: program, Args: []string{"server", protocol, port, bytes, cpu}}); err != nil {
		return nil, err
	}
	if protocol == "udp" {
		time.Sleep(200 * time.Millisecond) // there is no connecting that could be tried again
	}
	client := testbed.Command{Path: program, Args: []string{"client", protocol, to.Addr().String(), strconv.Itoa(int(to.Port())), bytes, cpu}}
	if l.client, err = e.Client.Pod().Start(ctx, client); err != nil {
		l.close()
		return nil, err
	}
	l.said = bufio.NewReader(l.client)
	return l, nil
}

func (l *loop) close() {
	for _, p := range []testbed.Process{l.client, l.server} {
		if p != nil {
			_ = errors.Join(p.Kill(), p.Close()) // it was killed
		}
	}
}

func (l *loop) p50(span time.Duration) (float64, error) {
	if _, err := fmt.Fprintln(l.client, span.Seconds()*1e3); err != nil {
		return 0, err
	}
	line, err := l.said.ReadString('\n')
	if err != nil {
		return 0, err
	}
	var count, least, median int64
	if _, err := fmt.Sscan(line, &count, &least, &median); err != nil {
		return 0, fmt.Errorf("the reference loop said %q: %w", line, err)
	}
	return float64(median), nil
}

// againstLoop compares the round trips of netdelta's loop and of the reference loop. In each turn both have a burst, in random order.
func (e *ends) againstLoop(ctx context.Context, o options, program, protocol string, s *sheet) error {
	session, err := e.connect(ctx, protocol+"-rr", result.Params{Message: unit.Bytes(o.size)})
	if err != nil {
		return err
	}
	reference, err := e.openLoop(ctx, program, protocol, o.size)
	if err != nil {
		return err
	}
	defer reference.close()
	for range o.turns {
		var medians [2]float64
		for _, i := range rand.Perm(len(medians)) {
			if i == 0 {
				b, err := e.burst(ctx, session, o.burst)
				if err != nil {
					return err
				}
				medians[i] = b.P50
			} else if medians[i], err = reference.p50(o.burst); err != nil {
				return err
			}
		}
		s.add(loopName(protocol), medians[0], medians[1])
	}
	return nil
}
