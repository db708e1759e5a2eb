package experiment_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/catalogue"
)

// echoVerb has the test binary be a daemon: it echoes what it gets on an address.
const echoVerb = "fleet-daemon"

// What a client can have the daemon do, by the first byte of a message.
const (
	order     = 'e'
	orderDie  = 'd'
	orderLose = 'l' // to die, and its pod's agent with it when it is to be started again
	orderGone = 'g' // to end its pod's agent, when its client collects
	orderHang = 'h' // for hangs
	hangs     = 4 * time.Second
)

// lostStatus is the exit status of a daemon whose agent ends with it.
const lostStatus = 4

// echo is the daemon.
func echo(at string) error {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	var awake sync.RWMutex
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			var b [64]byte
			for {
				if _, err := io.ReadFull(c, b[:]); err != nil {
					return
				}
				switch b[0] {
				case orderDie:
					fmt.Fprintln(os.Stderr, "told to die")
					os.Exit(3)
				case orderLose:
					os.Exit(lostStatus)
				case orderGone:
					_ = unix.Kill(os.Getppid(), unix.SIGKILL)
					return
				case orderHang:
					awake.Lock()
					time.Sleep(hangs)
					awake.Unlock()
				}
				awake.RLock()
				_, err := c.Write(b[:])
				awake.RUnlock()
				if err != nil {
					return
				}
			}
		}()
	}
}

// trigger is the variable of an agent's environment with the name of a file that tells its clients what to order in their third
// burst; the first that does removes it.
const trigger = "FLEET_TRIGGER"

// ordered is the order that is due.
func ordered() byte {
	name := os.Getenv(trigger)
	if name == "" {
		return order
	}
	text, err := os.ReadFile(name)
	if err != nil || os.Remove(name) != nil {
		return order
	}
	return text[0]
}

// workloads are the catalogue and these tests' own: "fleet" is served by a cluster of two pods, "lone" by a daemon alone,
// "stillborn" by a cluster whose second pod never starts, "frail" by one whose second pod answers clients, and is lost when it first starts,
// if that is ordered; "lacking" needs a program that there is not, "greedy" memory.
func workloads() []workload.Workload {
	fleet := func(name string, served int, serve func(context.Context, result.Params, workload.Member) (engine.Server, error)) workload.Workload {
		w := echoing(name)
		w.Demand = func(result.Params) workload.Demand {
			return workload.Demand{
				Programs: shell(), Opaque: true, Burst: 20 * time.Millisecond, Memory: unit.MiB,
				Cluster: &workload.Cluster{Key: name, Pods: 2, Serve: serve, Dial: func(_ context.Context, _ result.Params, at workload.Member) (engine.Client, error) {
					return dialEcho(netip.AddrPortFrom(at.Peers[served], fleetPort))
				}},
			}
		}
		return w
	}
	alone := func(name string, d workload.Demand) workload.Workload {
		w := echoing(name)
		w.Demand = func(result.Params) workload.Demand { return d }
		w.Serve = func(_ context.Context, _ result.Params, listen netip.AddrPort, _ int) (engine.Server, error) {
			return serveEcho(listen)
		}
		w.Dial = func(_ context.Context, _ result.Params, _, server netip.AddrPort, _ int) (engine.Client, error) {
			return dialEcho(server)
		}
		return w
	}
	return append(catalogue.Workloads(),
		many(),
		fleet("fleet", 0, serveFleet),
		fleet("stillborn", 0, func(ctx context.Context, p result.Params, at workload.Member) (engine.Server, error) {
			if at.Pod == 0 {
				return serveFleet(ctx, p, at)
			}
			return nil, errors.New("daemon 1: exit status 3; its last words: no luck today")
		}),
		fleet("frail", 1, func(ctx context.Context, p result.Params, at workload.Member) (engine.Server, error) {
			if at.Pod == 1 && ordered() == orderLose {
				os.Exit(1)
			}
			return serveFleet(ctx, p, at)
		}),
		alone("lone", workload.Demand{Programs: shell(), Burst: 2 * time.Millisecond}),
		alone("lacking", workload.Demand{Programs: []workload.Program{{Name: "no-such-daemon", Package: "nothing-of-the-kind"}}}),
		alone("greedy", workload.Demand{Programs: shell(), Memory: 1 << 50}),
	)
}

func shell() []workload.Program { return []workload.Program{{Name: "sh", Package: "dash"}} }

// fleetPort is where the fleet's daemons listen.
const fleetPort = 7000

func echoing(name string) workload.Workload {
	return workload.Workload{
		Name: name, Protocol: network.TCP, Headline: "rate",
		Metrics:     append([]workload.Metric{{Name: "rate", Unit: "1/s", Better: "higher"}}, workload.LatencyMetrics()...),
		SourcePorts: func(result.Params) int { return 1 },
	}
}

func serveFleet(_ context.Context, _ result.Params, at workload.Member) (engine.Server, error) {
	return serveEcho(netip.AddrPortFrom(at.Peers[at.Pod], fleetPort))
}

// echoServer is a daemon in a home.
type echoServer struct {
	at     netip.AddrPort
	home   *daemon.Sandbox
	daemon *daemon.Daemon
}

var _ workload.DaemonServer = (*echoServer)(nil)

func serveEcho(at netip.AddrPort) (engine.Server, error) {
	h, err := daemon.Open(unit.MiB)
	if err != nil {
		return nil, err
	}
	s := &echoServer{at: at, home: h}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return s, nil
}

func (s *echoServer) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if s.daemon, err = s.home.Start(daemon.Spec{Name: "echo", Path: self, Args: []string{s.at.String(), echoVerb}}); err != nil {
		return err
	}
	if err := require.Await(10*time.Second, "it answers", s.ask); err != nil {
		return errors.Join(err, s.daemon.Err())
	}
	return nil
}

// ask has the daemon echo, from its own pod.
func (s *echoServer) ask() error {
	to := s.at
	if to.Addr().IsUnspecified() {
		to = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), to.Port())
	}
	c, err := dialEcho(to)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.exchange(order, time.Second)
	return err
}

func (s *echoServer) Totals() engine.Totals {
	return engine.Totals{Disk: &result.Disk{Rate: float64(s.at.Port())}, Replication: &result.Replication{Samples: 3}}
}

func (s *echoServer) Health(context.Context) workload.Health {
	h := workload.Health{Services: []result.Service{{Name: "echo", Version: "1", Memory: s.daemon.Memory()}}}
	if err := s.daemon.Err(); err != nil {
		h.Unwell, h.Ended = err.Error(), true
	} else if err := s.ask(); err != nil {
		h.Unwell = "echo does not answer: " + err.Error()
	}
	return h
}

func (s *echoServer) Restart(context.Context) error {
	err := s.daemon.Err()
	if err == nil {
		return nil
	}
	if strings.Contains(err.Error(), fmt.Sprintf("exit status %d", lostStatus)) {
		os.Exit(1)
	}
	return s.start()
}

func (s *echoServer) Close() error { return s.home.Close() }

// echoClient plays ping-pong.
type echoClient struct {
	bursts     int
	doomed     bool // by orderGone
	conn       net.Conn
	last, kept int64
}

func dialEcho(at netip.AddrPort) (*echoClient, error) {
	c, err := net.DialTimeout("tcp", at.String(), 2*time.Second)
	if err != nil {
		return nil, err
	}
	return &echoClient{conn: c}, nil
}

func (c *echoClient) exchange(what byte, within time.Duration) (time.Duration, error) {
	start := time.Now()
	if err := c.conn.SetDeadline(start.Add(within)); err != nil {
		return 0, err
	}
	b := [64]byte{what}
	if _, err := c.conn.Write(b[:]); err != nil {
		return 0, err
	}
	_, err := io.ReadFull(c.conn, b[:])
	return time.Since(start), err
}

func (c *echoClient) Burst(spec engine.BurstSpec) (engine.Burst, error) {
	c.settle(spec.DropLast)
	b := engine.Burst{Start: time.Now()}
	c.bursts++
	what := byte(order)
	if c.bursts == 3 {
		what = ordered()
	}
	if what == orderGone {
		c.doomed, what = true, order
	}
	var all []float64
	for time.Since(b.Start) < spec.Duration {
		took, err := c.exchange(what, time.Second)
		if err != nil {
			return b, err
		}
		what = order
		all = append(all, float64(took))
		b.Transactions, b.Bytes = b.Transactions+1, b.Bytes+128
	}
	slices.Sort(all)
	b.Duration, b.Work, b.Moved = time.Since(b.Start), b.Transactions, b.Bytes
	b.Span = b.Duration
	b.Min, b.P50, b.P90, b.P99, b.Mean, b.Max = all[0], all[len(all)/2], all[len(all)*9/10], all[len(all)*99/100], all[len(all)/2], all[len(all)-1]
	b.Throughput = float64(b.Bytes) * 8 / b.Duration.Seconds()
	c.last = b.Transactions
	return b, nil
}

func (c *echoClient) settle(drop bool) {
	if !drop {
		c.kept += c.last
	}
	c.last = 0
}

func (c *echoClient) Collect(drop bool) (engine.Totals, error) {
	c.settle(drop)
	if c.doomed {
		if _, err := c.exchange(orderGone, time.Second); err != nil {
			return engine.Totals{}, err
		}
	}
	t := engine.Totals{Transactions: c.kept, Errors: 1}
	c.kept = 0
	return t, nil
}

func (c *echoClient) Close() error { return c.conn.Close() }

// daemons are the numbers of the echoing daemons that descend from a process.
func daemons(of int) []int {
	entries, _ := os.ReadDir("/proc")
	parents := map[int]int{}
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		parents[pid] = parentOf(pid)
		if slices.Contains(arguments(pid), echoVerb) {
			found = append(found, pid)
		}
	}
	return slices.DeleteFunc(found, func(pid int) bool {
		for p := pid; p > 1; p = parents[p] {
			if p == of {
				return false
			}
		}
		return true
	})
}

// parentOf is the number of a process's parent, 0 for one that has ended.
func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	parent, _ := strconv.Atoi(strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))[1])
	return parent
}

// arguments are the command line of a process.
func arguments(pid int) []string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
}
