package experiment_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/internal/netns"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/probe/probetest"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

// far is a lab that is taken for machines elsewhere: its processes have numbers that mean nothing here, and its devices can't be seen.
type far struct{ *lab.Driver }

func (far) Kind() string { return "elsewhere" }

func (d far) Capabilities() testbed.Capabilities {
	return testbed.Capabilities{
		Networks: d.Driver.Capabilities().Networks,
		Costs: &testbed.Costs{
			Start: 3 * time.Second, Build: 6 * time.Second, Cell: 30 * time.Millisecond, Exchange: 4 * time.Millisecond, Opens: 16, Ground: "the cluster",
		},
		Describe: func(_ context.Context, e result.Environment) (result.Environment, []string, error) {
			e.Cluster = &result.Cluster{Name: "test", Version: "v1.2.3", Nodes: []result.ClusterNode{{Name: "node0", Kubelet: "v1.2.2"}, {Name: "idle"}}}
			return e, []string{"the rest is silence"}, nil
		},
	}
}

func (d far) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	tb, err := d.Driver.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &farTestbed{Testbed: tb}, nil
}

// farTestbed reaches its servers by ways that are opened a while after the servers have started, like a Service's.
type farTestbed struct {
	testbed.Testbed
	mu    sync.Mutex
	doors []net.Listener
}

func (*farTestbed) Instruments() testbed.Instruments { return testbed.Instruments{} }

type farPod struct{ testbed.Pod }

type farProcess struct{ testbed.Process }

func (farProcess) PID() int { return 0 }

func (p farPod) Start(ctx context.Context, c testbed.Command) (testbed.Process, error) {
	started, err := p.Pod.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	return farProcess{started}, nil
}

func (t *farTestbed) Pods() []testbed.Pod {
	var all []testbed.Pod
	for _, p := range t.Testbed.Pods() {
		all = append(all, farPod{p})
	}
	return all
}

const (
	doorOpens  = 700 * time.Millisecond
	doorBehind = 1000 // ports
)

func (t *farTestbed) Endpoint(from, to testbed.Pod, port uint16) netip.AddrPort {
	server := to.(farPod).Pod
	at := t.Testbed.Endpoint(from.(farPod).Pod, server, port)
	door := netip.AddrPortFrom(at.Addr(), at.Port()+doorBehind)
	time.AfterFunc(doorOpens, func() { t.open(server.Name(), door, at) })
	return door
}

// open forwards from a door to a server, inside the server's pod.
func (t *farTestbed) open(pod string, door, to netip.AddrPort) {
	inside := func(f func() error) error {
		return t.Testbed.Instruments().Within(pod, func(fd int) error { return netns.Within(fd, f) })
	}
	var l net.Listener
	err := inside(func() (err error) { l, err = net.Listen("tcp", door.String()); return err })
	if err != nil {
		return // the testbed is gone; who waits for the door will say so
	}
	t.mu.Lock()
	t.doors = append(t.doors, l)
	t.mu.Unlock()
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		var server net.Conn
		if inside(func() (err error) { server, err = net.Dial("tcp", to.String()); return err }) != nil {
			_ = client.Close()
			continue
		}
		pass := func(a, b net.Conn) {
			_, _ = io.Copy(a, b)
			_ = a.Close()
		}
		go pass(client, server)
		go pass(server, client)
	}
}

func (t *farTestbed) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.doors {
		_ = l.Close() // it may be closed already
	}
	return t.Testbed.Close()
}

// setUpFar prepares a run on machines that are taken to be elsewhere.
func setUpFar(t *testing.T, networks []string, builds int) experiment.Config {
	t.Helper()
	require.Namespaces(t)
	s := small(networks)
	s.Testbed.Kind = "elsewhere"
	driver := far{lab.NewDriver(network.Catalogue())}
	p, err := experiment.Prepare(t.Context(), s, driver, workloads())
	if err != nil {
		t.Fatal(err)
	}
	p.Rules.MaxBuilds = builds
	c, err := experiment.Assemble(t.Context(), s, p, driver, workloads())
	if err != nil {
		t.Fatal(err)
	}
	folder, err := result.Create(t.TempDir()+"/run", []byte("study: small\n"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	})
	c.Program = probetest.Ahead(c.Program)
	c.Folder, c.Progress, c.Judge = folder, &watcher{}, words.NewJudge(c.Workloads)
	return c
}

// A run elsewhere records nothing of this machine, waits for ways that are opened late, and has deltas as any other.
func TestRunElsewhere(t *testing.T) {
	c := setUpFar(t, []string{"host", "bridge"}, 2)
	run := mustRun(t, c)
	trials := journal(t, c)
	checkTrials(t, run.Cells, trials, 0, 2, 3)
	if len(run.Deltas) == 0 || len(run.Null) == 0 {
		t.Errorf("%d deltas and %d null checks came out", len(run.Deltas), len(run.Null))
	}
	for _, tr := range trials {
		if tr.ClientCPU != -1 || tr.ServerCPU != -1 {
			t.Errorf("%s ran on processors %d and %d of this machine", tr.ID(), tr.ClientCPU, tr.ServerCPU)
		}
		if len(tr.Bursts.KernelCPU) > 0 {
			t.Errorf("%s has processor time that was read here", tr.ID())
		}
		// Both ends of a round trip do much the same, though the server is reached by a program in between.
		if spent := insight.Spent(tr); spent.Server < spent.Client/10 || spent.Server > 10*spent.Client || slices.Contains(tr.Bursts.ServerCPU, 0) {
			t.Errorf("%s: its client used %d ns, and its server %d ns: %v", tr.ID(), spent.Client, spent.Server, tr.Bursts.ServerCPU)
		}
	}
	if !slices.ContainsFunc(run.Deltas, func(d result.Delta) bool { return d.Metric == "cpu" && d.Ratio > 0 }) {
		t.Error("there is no delta of the processor time")
	}
	e := run.Environment
	if e.Hostname != "" || len(e.Measuring)+len(e.Controlling) > 0 || e.SoftirqTime != "" {
		t.Errorf("the environment is this machine's: %+v", e)
	}
	if e.Cluster == nil || len(e.Cluster.Nodes) != 2 || e.Cluster.Version != "v1.2.3" {
		t.Fatalf("cluster %+v", e.Cluster)
	}
	for i, name := range []string{"node0", "node1"} {
		n := e.Cluster.Nodes[i]
		if n.Name != name || n.Kernel == "" || n.CPU.Count == 0 || n.Memory == 0 || (n.Kubelet != "") != (i == 0) {
			t.Errorf("node %d is %+v", i, n)
		}
	}
	if e.Kernel != e.Cluster.Nodes[0].Kernel || e.CPU.Count != e.Cluster.Nodes[0].CPU.Count {
		t.Errorf("kernel %q, %d processors; the nodes have %+v", e.Kernel, e.CPU.Count, e.Cluster.Nodes[0])
	}
	if !slices.Contains(run.Notes, "the rest is silence") {
		t.Errorf("notes %q", run.Notes)
	}
	for _, known := range []string{"what disturbed node", "processor time of the server"} {
		if slices.ContainsFunc(run.Notes, func(n string) bool { return strings.Contains(n, known) }) {
			t.Errorf("%s is not known: %q", known, run.Notes)
		}
	}
}

// What can only be had of this machine is unsupported elsewhere, and says what to do.
func TestOnlyHere(t *testing.T) {
	require.Namespaces(t)
	s := small([]string{"host", "bridge"}, result.CrossNode)
	s.Workloads[0].Levels = study.Levels{"cpu": {"any", "two"}}
	driver := far{lab.NewDriver(network.Catalogue())}
	p, err := experiment.Prepare(t.Context(), s, driver, workloads())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Cells {
		two := c.Params.CPU == "two"
		if got := strings.Contains(c.Unsupported, "regime=waking is unsupported on testbed elsewhere"); got != two {
			t.Errorf("%s: %q", c.ID, c.Unsupported)
		}
	}
}
