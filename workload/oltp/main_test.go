package oltp_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/leak"
	"netdelta/internal/require"
	"netdelta/probe/probetest"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
	"netdelta/workload/oltp"
)

// The test binary is its own agent.
func TestMain(m *testing.M) {
	if agent.Asked() {
		agent.Become([]workload.Workload{oltp.Workload()})
	}
	os.Exit(leak.Main(m))
}

// nodes is how many pods the cluster has; one more is the client's.
const nodes = 3

// patience is how long a start may take on a busy machine, and making the first database before it.
const patience = 3 * time.Minute

// recovery is how long nodes may take to notice what has become of others.
const recovery = time.Minute

// cluster is a cluster in a lab, with a pod on a node of its own for each database and one for the client.
type cluster struct {
	testbed.Testbed
	agents   []*agent.Agent // the client's is the last
	peers    []netip.Addr
	services []int // sessions of the databases
	session  int   // of the client
}

// needed skips the test where a program of the workload is missing.
func needed(t testing.TB) {
	t.Helper()
	require.Namespaces(t)
	for _, p := range oltp.Workload().Demands(result.Params{}).Programs {
		_, err := daemon.Look(p.Name)
		require.Need(t, p.Name+" (package "+p.Package+")", err == nil)
	}
}

// laid lays out a lab with agents in its pods.
func laid(t testing.TB, spec testbed.Spec) *cluster {
	t.Helper()
	needed(t)
	spec.Nodes, spec.PodsPerNode, spec.PodsOutlive, spec.Link.MTU = nodes+1, 1, true, 1500
	tb, agents := probetest.Lab(t, spec)
	c := &cluster{Testbed: tb, agents: agents}
	for _, pod := range tb.Pods()[:nodes] {
		c.peers = append(c.peers, pod.Address())
	}
	return c
}

// start starts a cluster with a client.
func start(t testing.TB, spec testbed.Spec, p result.Params) *cluster {
	t.Helper()
	c := laid(t, spec)
	if err := c.serve(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	c.dial(t, p)
	return c
}

// serve starts all databases: the first one, then the others at once.
func (c *cluster) serve(ctx context.Context, p result.Params) error {
	c.services = make([]int, nodes)
	one := func(pod int) (err error) {
		c.services[pod], err = c.agents[pod].ServeCluster(ctx, "oltp", p, workload.Member{Pod: pod, Peers: c.peers, CPU: -1}, patience)
		return err
	}
	if err := one(0); err != nil {
		return err
	}
	return each(1, one)
}

// each calls f for all pods from the first one at once.
func each(first int, f func(pod int) error) error {
	errs := make([]error, nodes)
	var all sync.WaitGroup
	for pod := first; pod < nodes; pod++ {
		all.Go(func() { errs[pod] = f(pod) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (c *cluster) dial(t testing.TB, p result.Params) {
	t.Helper()
	var err error
	if c.session, err = c.agents[nodes].DialCluster(t.Context(), "oltp", p, workload.Member{Pod: -1, Peers: c.peers, CPU: -1}, patience); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) burst(t testing.TB, spec engine.BurstSpec) engine.Burst {
	t.Helper()
	if spec.Deadline == 0 {
		spec.Deadline = patience
	}
	b, err := c.agents[nodes].Burst(t.Context(), c.session, spec)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (c *cluster) collect(t testing.TB) engine.Totals {
	t.Helper()
	totals, err := c.agents[nodes].Collect(t.Context(), c.session, false)
	if err != nil {
		t.Fatal(err)
	}
	return totals
}

func (c *cluster) health(t testing.TB, pod int) workload.Health {
	t.Helper()
	h, err := c.agents[pod].Health(t.Context(), c.services[pod], 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// well waits until all databases are well.
func (c *cluster) well(t testing.TB) {
	t.Helper()
	require.NoError(t, require.Await(recovery, "all databases are well", func() error {
		var ails []error
		for pod := range nodes {
			if h := c.health(t, pod); h.Unwell != "" {
				ails = append(ails, fmt.Errorf("node %d: %s", pod, h.Unwell))
			}
		}
		return errors.Join(ails...)
	}))
}
