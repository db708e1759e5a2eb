// Package workloadtest is the conformance suite of workloads: what every workload's client and server must do, tried over real
// sockets on loopback, with the server in a process of its own where it is to be stopped or killed.
package workloadtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/workload"
)

// test is one of the suite.
type test struct {
	name string
	run  func(*testing.T, workload.Workload)
}

// Run runs the suite. The test's TestMain must call Main with the same workload. A workload that a cluster serves is put to the part
// that needs no other server than the cluster, which is started once.
func Run(t *testing.T, w workload.Workload) {
	needed(t, w)
	tests := []test{
		{"describes itself", describes},
		{"refuses bad parameters", refusesParameters},
		{"counts add up", countsAddUp},
		{"does what it is told", exactTransactions},
		{"drops the last burst", dropsLast},
		{"opens several connections", severalConnections},
		{"refuses bad bursts", refusesBursts},
		{"closes at any time", closes},
	}
	if w.Serve == nil {
		w = clustered(t, w)
	} else {
		tests = append(tests, []test{
			{"discards the warm-up", discardsWarmup},
			{"runs large messages", largeMessages},
			{"runs over IPv6", overIPv6},
			{"does not allocate in the loop", allocatesNothing},
			{"costs nothing when idle", idlesFree},
			{"counts from the intended start", countsFromIntendedStart},
			{"checks parameters of a search", checksSearch},
			{"ends a search early", searchEnds},
			{"names a server that hangs", namesHang},
			{"names a server that dies", namesDeath},
			{"refuses bad addresses", refusesAddresses},
			{"serves again on the same ports", servesAgain},
			{"leaks nothing", leaksNothing},
		}...)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, w) })
	}
}

// needed skips the test where a program that the workload needs is missing.
func needed(t *testing.T, w workload.Workload) {
	t.Helper()
	for _, p := range w.Demands(w.Defaults).Programs {
		_, err := daemon.Look(p.Name)
		require.Need(t, "the program "+p.Name, err == nil)
		require.Namespaces(t)
	}
}

// clustered starts the workload's cluster on addresses of loopback, and gives the workload the constructors of one that it serves.
func clustered(t *testing.T, w workload.Workload) workload.Workload {
	t.Helper()
	c := w.Demands(w.Defaults).Cluster
	peers := make([]netip.Addr, c.Pods)
	for i := range peers {
		peers[i] = netip.AddrFrom4([4]byte{127, 0, 0, byte(i + 1)})
	}
	servers, errs := make([]engine.Server, c.Pods), make([]error, c.Pods)
	start := func(pod int) {
		servers[pod], errs[pod] = c.Serve(within(t, starting), w.Defaults, workload.Member{Pod: pod, Peers: peers, CPU: -1})
	}
	start(0)
	var others sync.WaitGroup
	for pod := 1; pod < c.Pods && errs[0] == nil; pod++ {
		others.Go(func() { start(pod) })
	}
	others.Wait()
	t.Cleanup(func() {
		for _, s := range servers {
			if s != nil {
				mustClose(t, s)
			}
		}
	})
	require.NoError(t, errors.Join(errs...))
	w.Serve = func(ctx context.Context, p result.Params, _ netip.AddrPort, cpu int) (engine.Server, error) {
		if w.Check(p) != nil {
			return c.Serve(ctx, p, workload.Member{Peers: peers, CPU: cpu})
		}
		return shared{servers[0]}, nil
	}
	w.Dial = func(ctx context.Context, p result.Params, _, _ netip.AddrPort, cpu int) (engine.Client, error) {
		return c.Dial(ctx, p, workload.Member{Pod: -1, Peers: peers, CPU: cpu})
	}
	return w
}

// shared is a server that serves other tests too.
type shared struct{ engine.Server }

// Close leaves it running.
func (shared) Close() error { return nil }

// pair is a client and its server.
type pair struct {
	client engine.Client
	server engine.Server
}

const patience = 20 * time.Second

// starting is how long a server or a client may take to start: daemons on a busy machine take their time.
const starting = time.Minute

func loopback(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
}

// freePort is a port on which n ports in a row are free for TCP and UDP just now.
func freePort(t testing.TB, n int) uint16 {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		require.NoError(t, err)
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if allFree(port, n) {
			return uint16(port)
		}
	}
	t.Fatalf("no %d ports in a row are free", n)
	return 0
}

func allFree(first, n int) bool {
	for port := first; port < first+n; port++ {
		if port > 65535 {
			return false
		}
		// All addresses, of both versions of IP: a connection from here to elsewhere has the port too.
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			return false
		}
		_ = l.Close()
		u, err := net.ListenPacket("udp", fmt.Sprintf(":%d", port))
		if err != nil {
			return false
		}
		_ = u.Close()
	}
	return true
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// open starts a server and arms a client, both unpinned. They are closed with the test.
func open(t testing.TB, w workload.Workload, p result.Params) *pair {
	t.Helper()
	ports := freePort(t, 1+w.SourcePorts(p))
	return openOn(t, w, p, loopback(ports+1), loopback(ports))
}

func openOn(t testing.TB, w workload.Workload, p result.Params, local, remote netip.AddrPort) *pair {
	t.Helper()
	server, err := w.Serve(within(t, starting), p, remote, -1)
	if err != nil {
		t.Fatalf("serve: %v", err)
	}
	t.Cleanup(func() { mustClose(t, server) })
	client, err := w.Dial(within(t, starting), p, local, remote, -1)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { mustClose(t, client) })
	return &pair{client, server}
}

func mustClose(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func burst(t testing.TB, c engine.Client, spec engine.BurstSpec) engine.Burst {
	t.Helper()
	spec.Deadline = cmp.Or(spec.Deadline, patience)
	b, err := c.Burst(spec)
	if err != nil {
		t.Fatalf("burst: %v", err)
	}
	return b
}

func collect(t testing.TB, c engine.Client, dropLast bool) engine.Totals {
	t.Helper()
	totals, err := c.Collect(dropLast)
	if err != nil {
		t.Fatalf("collect: %v", err)
	}
	return totals
}

// histogramCount is how many latencies an encoded histogram holds.
func histogramCount(t testing.TB, encoded string) int64 {
	t.Helper()
	if encoded == "" {
		return 0
	}
	h, err := hdrhistogram.Decode([]byte(encoded))
	if err != nil {
		t.Fatalf("decode the histogram: %v", err)
	}
	return h.TotalCount()
}

// clusters says whether a cluster serves the workload, whose clients leave their ports to the kernel.
func clusters(w workload.Workload) bool { return w.Demands(w.Defaults).Cluster != nil }

// foreign says whether other programs make the workload's load, which take their time to begin.
func foreign(w workload.Workload) bool { return w.Demands(w.Defaults).Burst > 0 }

// latencies says whether the workload measures latencies.
func latencies(w workload.Workload) bool { return measures(w, "p50") }

// measures says whether the workload has a metric.
func measures(w workload.Workload, metric string) bool {
	return slices.ContainsFunc(w.Metrics, func(m workload.Metric) bool { return m.Name == metric })
}

func describes(t *testing.T, w workload.Workload) {
	if w.Name == "" || w.Summary == "" || w.UsedBy == "" || strings.Contains(w.Summary, "\n") {
		t.Errorf("name %q, summary %q and users %q must be one line each", w.Name, w.Summary, w.UsedBy)
	}
	for _, m := range w.Metrics {
		if m.Better != "lower" && m.Better != "higher" {
			t.Errorf("metric %s: better is %q", m.Name, m.Better)
		}
	}
	if !measures(w, w.Headline) {
		t.Errorf("the headline %q is not among the metrics", w.Headline)
	}
	for _, p := range []result.Params{{}, w.Defaults} {
		if err := w.Check(p); err != nil {
			t.Errorf("check of %+v: %v", p, err)
		}
		if n := w.SourcePorts(p); n < 1 && !clusters(w) {
			t.Errorf("source ports of %+v: %d", p, n)
		}
	}
}

func refusesParameters(t *testing.T, w workload.Workload) {
	tests := []struct {
		names string
		set   func(*result.Params)
	}{
		{"message", func(p *result.Params) { p.Message = -1 }},
		{"message", func(p *result.Params) { p.Message = 1 << 50 }},
		{"connections", func(p *result.Params) { p.Connections = -1 }},
		{"connections", func(p *result.Params) { p.Connections = 1 << 30 }},
		{"rate", func(p *result.Params) { p.Rate = -1 }},
		{"rate", func(p *result.Params) { p.Rate = 1e30 }},
		{"request rate", func(p *result.Params) { p.RequestRate = -1 }},
		{"request rate", func(p *result.Params) { p.RequestRate = 1e12 }},
		{"cpu", func(p *result.Params) { p.CPU = "both" }},
		{"busy poll", func(p *result.Params) { p.BusyPoll = -time.Second }},
		{"busy poll", func(p *result.Params) { p.BusyPoll = time.Hour }},
		{"congestion control", func(p *result.Params) { p.CongestionControl = "cubic; rm" }},
	}
	for _, test := range tests {
		p := w.Defaults
		test.set(&p)
		err := w.Check(p)
		if err == nil || !strings.Contains(err.Error(), test.names) || !strings.HasPrefix(err.Error(), w.Name) {
			t.Errorf("check of %+v: %v, want an error of %s that names %s", p, err, w.Name, test.names)
		}
		if _, err := w.Serve(within(t, starting), p, loopback(1), -1); err == nil {
			t.Errorf("serve takes %+v", p)
		}
		if _, err := w.Dial(within(t, starting), p, loopback(0), loopback(1), -1); err == nil {
			t.Errorf("dial takes %+v", p)
		}
	}
}

func refusesAddresses(t *testing.T, w workload.Workload) {
	if _, err := w.Serve(within(t, starting), w.Defaults, loopback(0), -1); err == nil || !strings.Contains(err.Error(), "port") {
		t.Errorf("serve on port 0: %v", err)
	}
	port := freePort(t, 1)
	if _, err := w.Serve(within(t, starting), w.Defaults, loopback(port), 100_000); err == nil || !strings.Contains(err.Error(), "processor 100000") {
		t.Errorf("serve on processor 100000: %v", err)
	}
	server, err := w.Serve(within(t, starting), w.Defaults, loopback(port), -1)
	require.NoError(t, err)
	_, err = w.Serve(within(t, starting), w.Defaults, loopback(port), -1)
	if !errors.Is(err, unix.EADDRINUSE) || !strings.Contains(err.Error(), loopback(port).String()) {
		t.Errorf("serve on a port in use: %v", err)
	}
	mustClose(t, server)
	begin := time.Now()
	_, err = w.Dial(within(t, time.Second), w.Defaults, loopback(0), loopback(port), -1)
	refused := errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, context.DeadlineExceeded)
	if !refused || !strings.Contains(err.Error(), w.Name) || !strings.Contains(err.Error(), loopback(port).String()) {
		t.Errorf("dial where nothing listens: %v", err)
	}
	if spent := time.Since(begin); spent > patience/2 {
		t.Errorf("dial where nothing listens took %v", spent)
	}
}

// inUse counts this process's files and threads.
func inUse(t testing.TB) (files, threads int) {
	t.Helper()
	for _, what := range []struct {
		folder string
		n      *int
	}{{"/proc/self/fd", &files}, {"/proc/self/task", &threads}} {
		entries, err := os.ReadDir(what.folder)
		require.NoError(t, err)
		*what.n = len(entries)
	}
	return files, threads
}
