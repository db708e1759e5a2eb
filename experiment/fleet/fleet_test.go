package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"netdelta/agent"
	"netdelta/experiment/fleet"
	"netdelta/experiment/record"
	"netdelta/insight"
	"netdelta/internal/leak"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/testbedtest"
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

func program(t *testing.T) agent.Program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return agent.Program{Path: self}
}

// inLab opens labs of two nodes with a few pods each, which clients share.
func inLab(pods int) func(context.Context, string, int, int) (testbed.Fleet, error) {
	driver := lab.NewDriver(network.Catalogue())
	return func(ctx context.Context, name string, clients, servers int) (testbed.Fleet, error) {
		tb, err := driver.Open(ctx, testbed.Spec{Nodes: 2, PodsPerNode: pods, Network: name})
		if err != nil {
			return nil, err
		}
		return fleet.On(tb, clients, servers)
	}
}

// run carries a fleet out in memory.
func run(ctx context.Context, c fleet.Config) (fleet.Outcome, error) {
	rec, err := record.Conduct(ctx, c.Head(), nil, nil, c.Measure)
	o, ofErr := fleet.Of(rec.Run, rec.Trials)
	return o, errors.Join(err, ofErr)
}

func TestFleetInALab(t *testing.T) {
	require.Namespaces(t)
	w := workload.Find(catalogue.Workloads(), "tcp-rr")
	o, err := run(t.Context(), fleet.Config{
		Load: record.Load{Program: program(t), Workload: w, Params: w.Defaults, Networks: []string{"host", "bridge"}, Builds: 2, Burst: 60 * time.Millisecond, Seed: 1},
		Open: inLab(3), Clients: 6, Servers: 2, Bursts: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Networks) != 3 || o.Networks[0].Role != result.RoleBaseline || o.Networks[1].Role != result.RoleControl || o.Networks[2].Network != "bridge" {
		t.Fatalf("networks: %+v", o.Networks)
	}
	for _, n := range o.Networks {
		if n.Failed != 0 || len(n.Builds) != 2 || len(n.Bursts) != 4 {
			t.Fatalf("%s: %d failed (%+v), %d builds, %d bursts", n.Network, n.Failed, n.Failures, len(n.Builds), len(n.Bursts))
		}
		for _, v := range n.Bursts {
			if v.Clients != 6 || v.Rate <= 0 || v.P50 <= 0 || v.P99 < v.P50 {
				t.Errorf("%s: a burst of %+v", n.Network, v)
			}
		}
		for _, b := range n.Builds {
			if b.Clients != 6 || b.Fairness < 1.0/6 || b.Fairness > 1+1e-9 || b.Armed < b.Pods {
				t.Errorf("%s: a build of %+v", n.Network, b)
			}
		}
		h, err := result.DecodeHistogram(n.Histogram)
		if err != nil || h.TotalCount() != n.Transactions {
			t.Errorf("%s: a histogram of %d, %d transactions, %v", n.Network, h.TotalCount(), n.Transactions, err)
		}
		if n.Late == nil || n.Slowest == nil || n.Fastest == nil || n.Slowest.Rate > n.Fastest.Rate {
			t.Errorf("%s: late %v, slowest %v, fastest %v", n.Network, n.Late, n.Slowest, n.Fastest)
		}
	}
}

// What the record has is not measured again, and its trials give the deltas of any run.
func TestFleetIsResumed(t *testing.T) {
	require.Namespaces(t)
	w := workload.Find(catalogue.Workloads(), "tcp-rr")
	c := fleet.Config{
		Load: record.Load{Program: program(t), Workload: w, Params: w.Defaults, Networks: []string{"host", "bridge"}, Burst: 60 * time.Millisecond, Seed: 1},
		Open: inLab(2), Clients: 2, Servers: 1, Bursts: 2,
	}
	rec := &record.Record{Run: c.Head()}
	rec.Run.Started = time.Now().Add(-time.Hour)
	for _, builds := range []int{1, 2, 2} {
		c.Builds = builds
		err := c.Measure(t.Context(), rec)
		o, ofErr := fleet.Of(rec.Run, rec.Trials)
		if err := errors.Join(err, ofErr); err != nil || len(rec.Trials) != 3*builds || len(o.Networks) != 3 || len(o.Networks[2].Bursts) != 2*builds {
			t.Fatalf("%d trials after %d builds, networks %+v: %v", len(rec.Trials), builds, o.Networks, err)
		}
	}
	for _, t0 := range rec.Trials[3:] { // bursts are told by the time of the run, as in every strategy
		if first := rec.Trials[0].Bursts.Start; first[0] < time.Hour.Nanoseconds() || t0.Bursts.Start[0] <= first[len(first)-1] {
			t.Errorf("build 2 of %s began at %v of the run, build 1 at %v", t0.Cell, t0.Bursts.Start, first)
		}
	}
	run := rec.Run
	insight.NewJudge(catalogue.Workloads()).Conclude(&run, insight.Summarize(result.List(rec.Trials)))
	if len(run.Deltas) == 0 || len(run.Null) == 0 || run.Deltas[0].Network != "bridge" || run.Deltas[0].Metric != "p50" || run.Deltas[0].Rounds != 4 || run.Deltas[0].Params.Clients != 2 {
		t.Errorf("%d deltas, %d of the null check, the first is %+v", len(run.Deltas), len(run.Null), run.Deltas)
	}
}

func TestStreamsOfAFleet(t *testing.T) {
	require.Namespaces(t)
	w := workload.Find(catalogue.Workloads(), "tcp-stream")
	o, err := run(t.Context(), fleet.Config{
		Load: record.Load{Program: program(t), Workload: w, Params: w.Defaults, Networks: []string{"bridge"}, Builds: 1, Burst: 200 * time.Millisecond, Seed: 1},
		Open: inLab(2), Clients: 2, Servers: 1, Bursts: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	n := o.Networks[0]
	if len(o.Networks) != 1 || n.Latency != nil || len(n.Bursts) != 1 || n.Bursts[0].Throughput <= 0 {
		t.Errorf("%+v", o.Networks)
	}
}

// ground is pods of this machine, without a network of their own.
type ground struct {
	clients, servers []testbed.Pod
	missing          map[string]string
}

func (g ground) Clients() []testbed.Pod     { return g.clients }
func (g ground) Servers() []testbed.Pod     { return g.servers }
func (g ground) Missing() map[string]string { return g.missing }
func (g ground) Close() error               { return nil }
func (g ground) Endpoint(_, _ testbed.Pod, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)
}

// pod is one of this machine. Its process is not started at all where refused, and killed as it is to fire for the second time
// where it dies.
type pod struct {
	name          string
	refused, dies bool
	port          uint16
}

func (p pod) Name() string            { return p.name }
func (p pod) Node() string            { return "here" }
func (p pod) Address() netip.Addr     { return netip.MustParseAddr("127.0.0.1") }
func (p pod) Ports() (uint16, uint16) { return p.port, p.port + 9 }
func (p pod) Start(_ context.Context, c testbed.Command) (testbed.Process, error) {
	if p.refused {
		return nil, errors.New("evicted: no room on the node")
	}
	q, err := testbedtest.StartLocal(c, nil)
	return &process{Local: q, dies: p.dies}, err
}

// server is a pod whose port is free.
func server(t *testing.T) testbed.Pod {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return pod{name: "server", port: uint16(port)}
}

// process is an agent of this machine.
type process struct {
	*testbedtest.Local
	dies   bool
	bursts int
}

// Write hands a request on; the one that kills the process is never read.
func (p *process) Write(b []byte) (int, error) {
	if p.dies && bytes.Contains(b, []byte(`"op":"burst-at"`)) {
		if p.bursts++; p.bursts == 2 {
			_ = p.Kill()
			_ = p.Wait()
		}
	}
	return p.Local.Write(b)
}

// One failed pod costs its own part: one that never starts, of clients or servers, one that dies between bursts, and one that was never there.
func TestFailedPodsCostTheirOwnPart(t *testing.T) {
	g := ground{servers: []testbed.Pod{pod{name: "broken server", refused: true}, server(t)}, missing: map[string]string{"absent": "unschedulable: 0/3 nodes"}}
	for _, name := range []string{"a", "b", "c"} {
		g.clients = append(g.clients, pod{name: name})
	}
	g.clients = append(g.clients, pod{name: "evicted", refused: true}, pod{name: "killed", dies: true})
	w := workload.Find(catalogue.Workloads(), "tcp-rr")
	o, err := run(t.Context(), fleet.Config{
		Load: record.Load{Program: program(t), Workload: w, Params: w.Defaults, Networks: []string{"loopback"}, Builds: 1, Burst: 100 * time.Millisecond, Seed: 1},
		Open: func(context.Context, string, int, int) (testbed.Fleet, error) { return g, nil }, Clients: 6, Servers: 2, Bursts: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	n := o.Networks[0]
	why := map[string]string{}
	for _, f := range n.Failures {
		why[f.Pod] = f.Why
	}
	if !strings.Contains(why["broken server"], "no room") {
		t.Errorf("a server that never starts: %v", why)
	}
	if n.Failed != 4 || !strings.Contains(why["absent"], "0/3 nodes") || !strings.Contains(why["evicted"], "no room") || !strings.Contains(why["killed"], "gone") {
		t.Errorf("%d failed: %v", n.Failed, why)
	}
	// On a busy machine a burst may be fired again, and the client is killed in the first of them.
	if len(n.Bursts) != 3 || n.Bursts[0].Clients < 3 || n.Bursts[0].Clients > 4 || n.Bursts[2].Clients != 3 {
		t.Errorf("%d bursts: %+v", len(n.Bursts), n.Bursts)
	}
	if n.Builds[0].Clients != 3 {
		t.Errorf("%d clients fired to the end", n.Builds[0].Clients)
	}
}

func TestNobodyIsLeft(t *testing.T) {
	g := ground{servers: []testbed.Pod{server(t)}, clients: []testbed.Pod{pod{name: "evicted", refused: true}}}
	w := workload.Find(catalogue.Workloads(), "tcp-rr")
	_, err := run(t.Context(), fleet.Config{
		Load: record.Load{Program: program(t), Workload: w, Params: w.Defaults, Networks: []string{"loopback"}, Builds: 1, Burst: time.Second},
		Open: func(context.Context, string, int, int) (testbed.Fleet, error) { return g, nil }, Clients: 1, Servers: 1, Bursts: 1,
	})
	if !errors.Is(err, record.ErrNothing) || !strings.Contains(err.Error(), "no room on the node") {
		t.Error(err)
	}
}

// What was measured before an interruption is kept.
func TestInterruption(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g := ground{servers: []testbed.Pod{server(t)}, clients: []testbed.Pod{pod{name: "a"}}}
	w := workload.Find(catalogue.Workloads(), "tcp-rr")
	bursts := 0
	o, err := run(ctx, fleet.Config{
		Load: record.Load{Program: program(t), Workload: w, Params: w.Defaults, Networks: []string{"loopback"}, Builds: 2, Burst: 50 * time.Millisecond},
		Open: func(context.Context, string, int, int) (testbed.Fleet, error) {
			if bursts++; bursts > 1 {
				cancel()
				return nil, ctx.Err()
			}
			return g, nil
		}, Clients: 1, Servers: 1, Bursts: 1,
	})
	if err != nil || len(o.Networks) != 1 || len(o.Networks[0].Bursts) != 1 || o.Networks[0].Failed != 0 {
		t.Errorf("%v: %+v", err, o.Networks)
	}
}

func TestJain(t *testing.T) {
	for _, c := range []struct {
		shares []float64
		want   float64
	}{
		{[]float64{3, 3, 3}, 1},
		{[]float64{5, 0, 0, 0}, 0.25},
		{[]float64{1, 3}, 0.8},
		{nil, 0},
		{[]float64{0, 0}, 0},
	} {
		if got := fleet.Jain(c.shares); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("the fairness of %v is %v, want %v", c.shares, got, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	good := fleet.Config{
		Load:    record.Load{Workload: workload.Find(catalogue.Workloads(), "tcp-rr"), Params: workload.Find(catalogue.Workloads(), "tcp-rr").Defaults, Networks: []string{"host"}, Builds: 1, Burst: time.Second},
		Clients: 2, Servers: 1, Bursts: 1,
	}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*fleet.Config){
		"name a network":  func(c *fleet.Config) { c.Networks = nil },
		"0 clients":       func(c *fleet.Config) { c.Clients = 0 },
		"3 servers":       func(c *fleet.Config) { c.Servers = 3 },
		"at least 1":      func(c *fleet.Config) { c.Bursts = 0 },
		"a burst of 1ms":  func(c *fleet.Config) { c.Burst = time.Millisecond },
		"after -1s":       func(c *fleet.Config) { c.Warmup = -time.Second },
		"workload oltp n": func(c *fleet.Config) { c.Workload = workload.Find(catalogue.Workloads(), "oltp") },
		"workload http":   func(c *fleet.Config) { c.Workload = workload.Find(catalogue.Workloads(), "http") },
	} {
		bad := good
		spoil(&bad)
		if err := bad.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
