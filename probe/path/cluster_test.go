package path_test

import (
	"context"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/internal/agent"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube"
	"netdelta/unit"
	"netdelta/workload"
)

// clustered is a driver for the cluster of the tests, in whose pods netdelta itself runs.
func clustered(t *testing.T, nodes bool) (*kube.Driver, agent.Program) {
	t.Helper()
	kubeconfig := require.Cluster(t)
	program := filepath.Join(t.TempDir(), "netdelta")
	build := exec.Command("go", "build", "-o", program, "netdelta/cmd/netdelta")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if words, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, words)
	}
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

// proveOn proves the way of round trips in a network of the cluster, in both placements.
func proveOn(t *testing.T, d *kube.Driver, p agent.Program, spec testbed.Spec) map[result.Placement]result.Path {
	t.Helper()
	spec.Nodes, spec.PodsPerNode = 2, 2
	tb, err := d.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	}()
	prover := path.NewProof(tb)
	start := func(pod testbed.Pod) *agent.Agent {
		a, err := agent.Start(t.Context(), pod, p)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.Close() })
		return a
	}
	client := start(tb.Pods()[0])
	found := map[result.Placement]result.Path{}
	for i, placement := range map[int]result.Placement{1: result.SameNode, 2: result.CrossNode} {
		server := start(tb.Pods()[i])
		first, _ := server.Pod().Ports()
		params := result.Params{Message: 512}
		const anyCPU = -1
		if _, err := server.Serve(t.Context(), "tcp-rr", params, netip.AddrPortFrom(netip.IPv4Unspecified(), first), anyCPU); err != nil {
			t.Fatal(err)
		}
		at := tb.Endpoint(client.Pod(), server.Pod(), first)
		session, err := client.Dial(t.Context(), "tcp-rr", params, netip.AddrPortFrom(netip.IPv4Unspecified(), 0), at, anyCPU)
		if err != nil {
			t.Fatal(err)
		}
		load := func(ctx context.Context) (path.Load, error) {
			b, err := client.Burst(ctx, session, workload.BurstSpec{Duration: 5 * time.Millisecond, Deadline: 5 * time.Second})
			half := unit.Bytes(b.Moved / 2)
			return path.Load{Protocol: network.TCP, Server: at, Requests: half, Responses: half}, err
		}
		began := time.Now()
		proof, err := prover.Prove(t.Context(), client.Pod(), server.Pod(), network.TCP, load)
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		if err := prover.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		l, err := load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		audit, err := prover.End(t.Context(), []path.Moved{{From: client.Pod(), To: server.Pod(), Protocol: network.TCP, Requests: l.Requests, Responses: l.Responses}})
		if err != nil || len(audit.Findings) > 0 {
			t.Errorf("%s %s: the audit: %v %q", spec.Network, placement, err, audit.Findings)
		}
		found[placement] = proof
		t.Logf("%s %s, %s: OK %v, %s +%d, %d packets, findings %q, weak %q, notes %q, hops %+v", spec.Network, placement, took.Round(time.Millisecond),
			proof.OK, proof.Encapsulation, int64(proof.Overhead), proof.Sampled, proof.Findings, proof.Weak, proof.Notes, proof.Hops)
	}
	return found
}

// wrapOf is what the cluster's own network is said to wrap packets in: as its nodes have a tunnel of Flannel or not.
func wrapOf(t *testing.T, d *kube.Driver, node string) string {
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
		return "vxlan"
	}
	return "none"
}

// On a real cluster the ways of all its networks are proved by agents on the nodes.
func TestWitnessedOnCluster(t *testing.T) {
	d, p := clustered(t, true)
	for _, c := range []struct {
		network string
		notes   string
	}{{kube.Host, ""}, {kube.Pod, ""}, {kube.ClusterIP, "(DNAT)"}, {kube.NodePort, "(DNAT)"}} {
		t.Run(c.network, func(t *testing.T) {
			for placement, found := range proveOn(t, d, p, testbed.Spec{Network: c.network}) {
				if !found.OK || len(found.Weak) > 0 || len(found.Hops) == 0 || found.Sampled == 0 {
					t.Errorf("%s: OK %v, findings %q, weak %q", placement, found.OK, found.Findings, found.Weak)
				}
				want := "none"
				if placement == result.CrossNode && c.network != kube.Host && c.network != kube.NodePort {
					want = wrapOf(t, d, "w1")
				}
				if found.Encapsulation != want {
					t.Errorf("%s: wrapped in %q, want %q", placement, found.Encapsulation, want)
				}
				if !strings.Contains(strings.Join(found.Notes, "\n"), c.notes) {
					t.Errorf("%s: notes %q lack %q", placement, found.Notes, c.notes)
				}
			}
		})
	}
}

// A change of the cluster that did not take effect is found out.
func TestWitnessedChangeOnCluster(t *testing.T) {
	d, p := clustered(t, true)
	tb, err := d.Open(t.Context(), testbed.Spec{Network: kube.Pod, Nodes: 2, PodsPerNode: 1})
	if err != nil {
		t.Fatal(err)
	}
	is := testbed.Encapsulation(wrapOf(t, d, tb.Pods()[0].Node()))
	if err := tb.Close(); err != nil {
		t.Fatal(err)
	}
	not := testbed.InVXLAN
	if is == not {
		not = testbed.InClear
	}
	found := proveOn(t, d, p, testbed.Spec{Network: kube.Pod, Expect: not})
	told(t, found[result.CrossNode], "the change did not take effect", "where "+string(not)+" is expected")
	if same := found[result.SameNode]; !same.OK {
		t.Errorf("on one node nothing is to be seen of it: %q", same.Findings)
	}
	if found := proveOn(t, d, p, testbed.Spec{Network: kube.Pod, Expect: is})[result.CrossNode]; !found.OK {
		t.Errorf("it did take effect: %q", found.Findings)
	}
}

// Without agents on nodes, ordinary pods prove what they can, and what is lost is said.
func TestWitnessedInsidePodsOnCluster(t *testing.T) {
	d, p := clustered(t, false)
	for _, name := range []string{kube.Host, kube.Pod, kube.ClusterIP} {
		found := proveOn(t, d, p, testbed.Spec{Network: name})[result.CrossNode]
		if weak := strings.Join(found.Weak, "\n"); !found.OK || !strings.Contains(weak, "--node-agent") {
			t.Errorf("%s: OK %v, findings %q, weak %q", name, found.OK, found.Findings, weak)
		}
	}
}
