package path_test

import (
	"context"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube"
	"netdelta/unit"
)

// clustered is a driver for the cluster of the tests, in whose pods netdelta itself runs.
func clustered(t *testing.T, nodes bool) (*kube.Driver, agent.Program) {
	t.Helper()
	kubeconfig := require.Cluster(t)
	program := filepath.Join(t.TempDir(), "netdelta")
	require.Program(t, "netdelta-agent", program)
	cluster, err := kube.Connect(kube.Config{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	d, err := kube.NewDriver(cluster, kube.Options{BaseImage: "localhost/netdelta/base:1", Binary: program, NodeAgent: nodes, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := d.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return d, agent.Program{Path: program}
}

// roundTrips is a client in one pod of a cluster that exchanges messages with a server in another.
type roundTrips struct {
	tb             testbed.Testbed
	client, server *agent.Agent
	port           uint16
}

// newRoundTrips starts agents in two pods, the server on a port of its pod that counts from the first.
func newRoundTrips(t *testing.T, tb testbed.Testbed, p agent.Program, from, to int, port uint16) *roundTrips {
	t.Helper()
	r := &roundTrips{tb: tb}
	var group errgroup.Group
	for at, a := range map[int]**agent.Agent{from: &r.client, to: &r.server} {
		group.Go(func() (err error) {
			*a, err = agent.Start(t.Context(), tb.Pods()[at], p)
			return err
		})
	}
	err := group.Wait()
	t.Cleanup(func() {
		for _, a := range []*agent.Agent{r.client, r.server} {
			if a != nil {
				_ = a.Close()
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	first, _ := r.server.Pod().Ports()
	r.port = first + port
	if _, err := r.server.Serve(t.Context(), "tcp-rr", result.Params{Message: 512}, netip.AddrPortFrom(netip.IPv4Unspecified(), r.port), -1); err != nil {
		t.Fatal(err)
	}
	return r
}

// load connects in the testbed's present network, and is a burst of round trips.
func (r *roundTrips) load(t *testing.T) func(context.Context) (path.Load, error) {
	t.Helper()
	at := r.tb.Endpoint(r.client.Pod(), r.server.Pod(), r.port)
	session, err := r.client.Dial(t.Context(), "tcp-rr", result.Params{Message: 512}, netip.AddrPortFrom(netip.IPv4Unspecified(), 0), at, -1)
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) (path.Load, error) {
		b, err := r.client.Burst(ctx, session, engine.BurstSpec{Duration: 5 * time.Millisecond, Deadline: 5 * time.Second})
		half := unit.Bytes(b.Moved / 2)
		return path.Load{Protocol: network.TCP, Server: at, Requests: half, Responses: half}, err
	}
}

// prove proves the way and audits one more load.
func (r *roundTrips) prove(t *testing.T, prover path.Prover) result.Path {
	t.Helper()
	load := r.load(t)
	from, to := r.client.Pod(), r.server.Pod()
	began := time.Now()
	proof, err := prover.Prove(t.Context(), from, to, network.TCP, load)
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began).Round(time.Millisecond)
	if err := prover.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	audit, err := prover.End(t.Context(), []path.Moved{{From: from, To: to, Protocol: network.TCP, Requests: l.Requests, Responses: l.Responses}})
	if err != nil || len(audit.Findings) > 0 {
		t.Errorf("the audit: %v %q", err, audit.Findings)
	}
	t.Logf("%s, %s to %s, %s: OK %v, %s +%d, %d packets, findings %q, weak %q, notes %q", r.tb.Spec().Network, from.Node(), to.Node(), took,
		proof.OK, proof.Encapsulation, int64(proof.Overhead), proof.Sampled, proof.Findings, proof.Weak, proof.Notes)
	for _, h := range proof.Hops {
		t.Logf("  %s (%s) sends %v, wrapped %v: %d packets, %d bytes", h.Device, h.Role, h.Sends, h.Encapsulated, h.Packets, h.Bytes)
	}
	return proof
}

// opened is a testbed on two nodes.
func opened(t *testing.T, d *kube.Driver, networkName string) testbed.Testbed {
	t.Helper()
	tb, err := d.Open(t.Context(), testbed.Spec{Network: networkName, Nodes: 2, PodsPerNode: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	})
	return tb
}

// wrapOf is what the cluster's own network is said to wrap packets in: as its nodes have a tunnel of Flannel or not.
func wrapOf(t *testing.T, d *kube.Driver, node string) testbed.Encapsulation {
	t.Helper()
	a, err := d.NodeAgent(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	devices, err := a.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(devices, func(i testbed.Interface) bool { return i.Kind == "vxlan" }) {
		return testbed.InVXLAN
	}
	return testbed.InClear
}

// On a real cluster the ways of all its networks are proved by agents on the nodes.
func TestObservedOnCluster(t *testing.T) {
	d, p := clustered(t, true)
	check := func(tb testbed.Testbed, prover path.Prover, r *roundTrips, wrap testbed.Encapsulation, notes string) {
		t.Helper()
		found := r.prove(t, prover)
		if !found.OK || len(found.Weak) > 0 || len(found.Hops) == 0 || found.Sampled == 0 || found.Encapsulation != string(wrap) {
			t.Errorf("%s: OK %v, findings %q, weak %q, wrapped in %s, want %s", tb.Spec().Network, found.OK, found.Findings, found.Weak, found.Encapsulation, wrap)
		}
		if !strings.Contains(strings.Join(found.Notes, "\n"), notes) {
			t.Errorf("%s: notes %q lack %q", tb.Spec().Network, found.Notes, notes)
		}
	}
	var tb testbed.Testbed
	var cross *roundTrips
	is := testbed.InClear
	for _, c := range []struct {
		network string
		notes   string
	}{{kube.Host, ""}, {kube.ClusterIP, "(DNAT)"}, {kube.NodePort, "(DNAT)"}, {kube.Pod, ""}} {
		tb = opened(t, d, c.network)
		prover := path.NewProver(tb)
		check(tb, prover, newRoundTrips(t, tb, p, 0, 1, 0), testbed.InClear, c.notes)
		cross = newRoundTrips(t, tb, p, 0, 2, 1)
		is = wrapOf(t, d, cross.client.Pod().Node())
		wrap := is
		if c.network == kube.Host || c.network == kube.NodePort {
			wrap = testbed.InClear // what is called is a node
		}
		check(tb, prover, cross, wrap, c.notes)
	}

	// A change of the cluster that did not take effect is found out.
	watch, err := tb.Instruments().PathObserver.Watch(t.Context(), cross.client.Pod(), cross.server.Pod())
	if err != nil {
		t.Fatal(err)
	}
	load, err := cross.load(t)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen, err := watch.End(t.Context(), load.Server)
	if err != nil {
		t.Fatal(err)
	}
	not := testbed.InVXLAN
	if is == not {
		not = testbed.InClear
	}
	seen.Expect = is
	if found := path.JudgeUnplanned(seen, load); !found.OK {
		t.Errorf("as expected: %q", found.Findings)
	}
	seen.Expect = not
	told(t, path.JudgeUnplanned(seen, load), "the change did not take effect", "where "+string(not)+" is expected")
}

// Without agents on nodes, ordinary pods prove what they can, and what is lost is said.
func TestObservedInsidePodsOnCluster(t *testing.T) {
	d, p := clustered(t, false)
	tb := opened(t, d, kube.ClusterIP)
	found := newRoundTrips(t, tb, p, 0, 2, 0).prove(t, path.NewProver(tb))
	if weak := strings.Join(found.Weak, "\n"); !found.OK || !strings.Contains(weak, "--node-agent") {
		t.Errorf("OK %v, findings %q, weak %q", found.OK, found.Findings, weak)
	}
	if notes := strings.Join(found.Notes, "\n"); !strings.Contains(notes, "the server sees its client's own address") {
		t.Errorf("notes %q", notes)
	}
}
