package block_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"netdelta/engine"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/block"
	"netdelta/workload/workloadtest"
)

func TestMain(m *testing.M) { os.Exit(workloadtest.Main(m, block.Workload())) }

// programs skips the test where the programs of the store nbd are missing.
func programs(t testing.TB) {
	t.Helper()
	require.Namespaces(t)
	require.Tool(t, "fio")
	require.Tool(t, "nbd-server")
}

const patience = time.Minute

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// port is a free port at an address.
func port(t testing.TB, address string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	require.Need(t, "the address "+address, err == nil)
	defer l.Close()
	return netip.MustParseAddrPort(l.Addr().String())
}

func serve(t testing.TB, p result.Params, at netip.AddrPort) workload.DaemonServer {
	t.Helper()
	s, err := block.Workload().Serve(within(t), p, at, -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if left := processes(t, at); len(left) > 0 {
			t.Errorf("processes %v of nbd-server are left", left)
		}
	})
	return s.(workload.DaemonServer)
}

func dial(t testing.TB, p result.Params, at netip.AddrPort) engine.Client {
	t.Helper()
	c, err := block.Workload().Dial(within(t), p, netip.AddrPort{}, at, -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func burst(t testing.TB, c engine.Client, spec engine.BurstSpec) engine.Burst {
	t.Helper()
	spec.Deadline = patience
	b, err := c.Burst(spec)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const short = 100 * time.Millisecond

func TestBursts(t *testing.T) {
	t.Parallel()
	programs(t)
	at := port(t, "127.0.0.1")
	s := serve(t, result.Params{}, at)
	c := dial(t, result.Params{}, at)
	var kept engine.Burst
	for i := range 3 {
		b := burst(t, c, engine.BurstSpec{Duration: short, Warmup: short / 5, DropLast: i == 1})
		check(t, b, 4*unit.KiB)
		if b.Work < b.Transactions || b.Moved < b.Bytes || b.Span < b.Duration || b.Duration < short || time.Since(b.Start) > patience || b.CPU < 0 {
			t.Errorf("the burst is %+v", b)
		}
		if i > 0 {
			kept.Transactions += b.Transactions
			kept.Bytes += b.Bytes
		}
	}
	totals, err := c.Collect(false)
	if err != nil {
		t.Fatal(err)
	}
	if totals.Transactions != kept.Transactions || totals.Bytes != kept.Bytes || len(totals.Series) != 2 {
		t.Errorf("totals %+v, want two bursts' totals: %+v", totals, kept)
	}
	h, err := hdrhistogram.Decode([]byte(totals.Histogram))
	if err != nil {
		t.Fatal(err)
	}
	// An operation that was under way when the warm-up ended is counted by one and not by the other.
	if off := h.TotalCount() - totals.Transactions; off < -2 || off > 2 {
		t.Errorf("the histogram has %d latencies of %d operations", h.TotalCount(), totals.Transactions)
	}
	if b := burst(t, c, engine.BurstSpec{Transactions: 10, Warmup: short}); b.Transactions != 10 || b.Bytes != 40960 {
		t.Errorf("ten operations are %+v", b)
	}
	if totals, err := c.Collect(true); err != nil || totals.Transactions != 0 || totals.Histogram != "" {
		t.Errorf("after the only burst was dropped: %+v, %v", totals, err)
	}
	for _, spec := range []engine.BurstSpec{{}, {Duration: -1}, {Transactions: -1}, {Duration: 1, Warmup: -1}, {Duration: 1, Deadline: -1}} {
		if _, err := c.Burst(spec); err == nil {
			t.Errorf("a burst of %+v was run", spec)
		}
	}
	d := s.Totals().Disk
	if d == nil || d.Rate <= 0 || d.Throughput <= 0 || d.P50 <= 0 || d.P99 < d.P50 {
		t.Errorf("the storage without a network: %+v", d)
	}
	health := s.Health(within(t))
	if health.Unwell != "" || health.Ended || len(health.Services) != 1 {
		t.Fatalf("the server's health: %+v", health)
	}
	if v := health.Services[0]; v.Name != "nbd-server" || v.Version == "" || v.Memory < 100*unit.KiB || v.Memory > unit.GiB {
		t.Errorf("the server is %+v", v)
	}
}

// check holds a burst against itself.
func check(t *testing.T, b engine.Burst, size unit.Bytes) {
	t.Helper()
	if b.Transactions < 1 || b.Errors != 0 || b.Lost != 0 {
		t.Errorf("the burst is %+v", b)
	}
	// See above: one more or less, for each operation that may be under way.
	if off := b.Bytes/int64(size) - b.Transactions; off < -16 || off > 16 {
		t.Errorf("%d operations of %v are %d bytes", b.Transactions, size, b.Bytes)
	}
	if !slices.IsSorted([]float64{1, b.Min, b.P50, b.P90, b.P99, b.Max}) || b.Mean < b.Min || b.Mean > b.Max {
		t.Errorf("latencies are not in order: %+v", b)
	}
	if want := float64(b.Bytes) * 8 / b.Duration.Seconds(); math.Abs(b.Throughput/want-1) > 1e-6 {
		t.Errorf("throughput %v, want %v", b.Throughput, want)
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	programs(t)
	for _, p := range []result.Params{
		{Own: result.OwnOf("operation", "randwrite", "block", 4*unit.KiB)},
		{Own: result.OwnOf("operation", "read", "block", unit.MiB, "depth", 4)},
		{Own: result.OwnOf("operation", "write", "block", 8*unit.MiB, "depth", 2)},
		{Own: result.OwnOf("operation", "randrw", "block", 4*unit.KiB, "depth", 4, "reads", 0.7, "fsync", 8)},
		{Own: result.OwnOf("operation", "rw", "block", 64*unit.KiB)},
		{Own: result.OwnOf("store", "nbd", "operation", "randread", "block", unit.Bytes(512), "depth", 4), Clients: 3},
	} {
		t.Run(fmt.Sprintf("%s-%d", p.Own.Word("operation"), p.Own.Size("block")), func(t *testing.T) {
			t.Parallel()
			at := port(t, "127.0.0.1")
			s := serve(t, p, at)
			check(t, burst(t, dial(t, p, at), engine.BurstSpec{Duration: short}), p.Own.Size("block"))
			if d := s.Totals().Disk; d.Rate <= 0 {
				t.Errorf("the storage without a network: %+v", d)
			}
		})
	}
}

func TestOverIPv6(t *testing.T) {
	t.Parallel()
	programs(t)
	everywhere := port(t, "::") // nbd-server listens under IPv4, too
	serve(t, result.Params{}, everywhere)
	at := netip.AddrPortFrom(netip.IPv6Loopback(), everywhere.Port())
	check(t, burst(t, dial(t, result.Params{}, at), engine.BurstSpec{Duration: short}), 4*unit.KiB)
}

func TestDescribesItself(t *testing.T) {
	w := block.Workload()
	if err := errors.Join(w.Check(result.Params{}), w.Check(w.Defaults)); err != nil {
		t.Error(err)
	}
	d := w.Demands(w.Defaults)
	if !d.Opaque || d.Burst <= 0 || d.Memory < 64*unit.MiB || d.Cluster != nil {
		t.Errorf("it demands %+v", d)
	}
	for _, want := range []string{"fio", "nbd-server"} {
		if !slices.Contains(d.Programs, workload.Program{Name: want, Package: want}) {
			t.Errorf("it demands %+v, without %s", d.Programs, want)
		}
	}
	if got := w.Demands(result.Params{Own: result.OwnOf("block", 16*unit.MiB)}).Memory; got < 256*unit.MiB {
		t.Errorf("blocks of 16 MiB are to choose among %v", got)
	}
}

func TestRefusesParameters(t *testing.T) {
	w := block.Workload()
	for want, p := range map[string]result.Params{
		"message":            {Message: 1},
		"connections":        {Connections: 1},
		"rate":               {Rate: 1},
		"request rate":       {RequestRate: 1},
		"rate: search":       {Search: true},
		"busy poll":          {BusyPoll: 1},
		"congestion control": {CongestionControl: "bbr"},
		"nagle":              {Nagle: true},
		"cpu":                {CPU: "both"},
		"file":               {File: 1},
		"engine":             {Engine: "wrk"},
		"store":              {Own: result.OwnOf("store", "nfs")},
		"operation":          {Own: result.OwnOf("operation", "trim")},
		"block 511":          {Own: result.OwnOf("block", unit.Bytes(511))},
		"block 513":          {Own: result.OwnOf("block", unit.Bytes(513))},
		"block 32MiB":        {Own: result.OwnOf("block", 32*unit.MiB)},
		"depth":              {Own: result.OwnOf("depth", 257)},
		"reads 0.5":          {Own: result.OwnOf("operation", "randread", "reads", 0.5)},
		"reads 1":            {Own: result.OwnOf("operation", "rw", "reads", 1.0)},
		"fsync 1 ":           {Own: result.OwnOf("operation", "read", "fsync", 1)},
		"fsync 1025":         {Own: result.OwnOf("operation", "write", "fsync", 1025)},
		"clients":            {Clients: 17},
	} {
		err := w.Check(p)
		if err == nil || !strings.HasPrefix(err.Error(), "block: "+want) {
			t.Errorf("check of %+v: %v, want an error that names %s", p, err, want)
		}
		if _, err := w.Serve(within(t), p, netip.MustParseAddrPort("127.0.0.1:1"), -1); err == nil {
			t.Errorf("serve takes %+v", p)
		}
		if _, err := w.Dial(within(t), p, netip.AddrPort{}, netip.MustParseAddrPort("127.0.0.1:1"), -1); err == nil {
			t.Errorf("dial takes %+v", p)
		}
	}
}

// Clients in several pods share one store, and have longer bursts, since their programs start at different times.
func TestClientPods(t *testing.T) {
	w := block.Workload()
	own := func(pods int) result.Params {
		return result.Params{Own: result.OwnOf("store", "ceph", "osds", 2, "client_pods", pods)}
	}
	one, three := w.Demands(result.Params{Own: result.OwnOf("store", "ceph", "osds", 2)}), w.Demands(own(3))
	if one.Clients > 1 || three.Clients != 3 || one.Cluster.Key != three.Cluster.Key || three.Cluster.Pods != 2 {
		t.Errorf("one %+v, three %+v", one.Cluster, three.Cluster)
	}
	if three.Burst < 2*time.Second || one.Burst >= three.Burst {
		t.Errorf("bursts of %v and %v", one.Burst, three.Burst)
	}
	if err := w.Check(own(17)); err == nil || !strings.Contains(err.Error(), "client_pods") {
		t.Errorf("17 pods: %v", err)
	}
	if d := w.Demands(result.Params{StorageClass: "fast", Own: result.OwnOf("client_pods", 3)}); d.Clients != 3 || d.Volume == 0 || d.Cluster != nil {
		t.Errorf("three volumes: %+v", d)
	}
}

// TestSharedServer: clients in several pods use one server of NBD, whatever size their blocks have, and know what storage does without a network.
func TestSharedServer(t *testing.T) {
	programs(t)
	small := result.Params{Own: result.OwnOf("client_pods", 2)}
	large := result.Params{Own: result.OwnOf("client_pods", 2, "block", 16*unit.MiB, "operation", "write", "fsync", 1)}
	w := block.Workload()
	k, other := w.Demands(small).Cluster, w.Demands(large).Cluster
	if k == nil || other == nil || k.Key != other.Key || k.Pods != 1 || len(k.Ports) != 1 || w.Demands(w.Defaults).Cluster != nil {
		t.Fatalf("%+v and %+v", k, other)
	}
	at := workload.Member{Peers: []netip.Addr{netip.MustParseAddr("127.0.77.1")}, CPU: -1}
	server, err := k.Serve(within(t), small, at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	at.Pod = -1
	var clients sync.WaitGroup
	for _, p := range []result.Params{small, large} {
		c, err := k.Dial(within(t), p, at)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		clients.Go(func() {
			b, err := c.Burst(engine.BurstSpec{Duration: 500 * time.Millisecond, Deadline: patience})
			if err != nil || b.Transactions == 0 {
				t.Errorf("%+v: %+v, %v", p, b, err)
			}
			if totals, err := c.Collect(false); err != nil || totals.Disk == nil || totals.Disk.Rate == 0 {
				t.Errorf("%+v: %+v, %v", p, totals.Disk, err)
			}
		})
	}
	clients.Wait()
	if h := server.(workload.DaemonServer).Health(within(t)); h.Unwell != "" {
		t.Error(h.Unwell)
	}
}

// TestSeveralServers: one client uses the blocks of several servers at once, and is refused where one of them is not there.
func TestSeveralServers(t *testing.T) {
	programs(t)
	w := block.Workload()
	p := result.Params{Clients: 2, Own: result.OwnOf("servers", 2, "depth", 2)}
	d := w.Demands(p)
	if one := w.Demands(result.Params{Own: result.OwnOf("servers", 1)}); d.Cluster == nil || d.Cluster.Pods != 2 || one.Cluster.Pods != 1 || one.Cluster.Key == d.Cluster.Key || 2*one.Memory != d.Memory {
		t.Fatalf("one: %+v, two: %+v", one, d)
	}
	at := workload.Member{Peers: []netip.Addr{netip.MustParseAddr("127.0.78.1"), netip.MustParseAddr("127.0.78.2")}, CPU: -1}
	for at.Pod = range at.Peers {
		if at.Pod > 0 {
			client := at
			client.Pod = -1
			if c, err := d.Cluster.Dial(within(t), p, client); err == nil || !strings.Contains(err.Error(), "127.0.78.2") {
				t.Errorf("without a server: %v, %v", c, err)
			}
		}
		server, err := d.Cluster.Serve(within(t), p, at)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = server.Close() }()
	}
	at.Pod = -1
	c, err := d.Cluster.Dial(within(t), p, at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	b, err := c.Burst(engine.BurstSpec{Transactions: 400, Deadline: patience})
	if err != nil || b.Transactions != 400 { // 100 of each of two clients of two servers
		t.Errorf("400 operations: %+v, %v", b, err)
	}
	for name, bad := range map[string]result.Params{"17": {Own: result.OwnOf("servers", 17)}, "a volume's": {StorageClass: "fast", Own: result.OwnOf("servers", 2)}} {
		if err := w.Check(bad); err == nil {
			t.Errorf("%s servers are taken", name)
		}
	}
}
