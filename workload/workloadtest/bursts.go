package workloadtest

import (
	"context"
	"errors"
	"math"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/engine"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
)

func countsAddUp(t *testing.T, w workload.Workload) {
	p := open(t, w, w.Defaults)
	var sum engine.Burst
	for range several(w) {
		b := burst(t, p.client, engine.BurstSpec{Duration: 20 * time.Millisecond})
		checkBurst(t, w, b)
		sum.Transactions += b.Transactions
		sum.Bytes += b.Bytes
		sum.Sent += b.Sent
		sum.Lost += b.Lost
	}
	totals := collect(t, p.client, false)
	if totals.Transactions != sum.Transactions || totals.Bytes != sum.Bytes || totals.Sent != sum.Sent || totals.Lost != sum.Lost {
		t.Errorf("totals %+v, want the sums of the bursts %+v", totals, sum)
	}
	if latencies(w) {
		if n := histogramCount(t, totals.Histogram); n != sum.Transactions {
			t.Errorf("the histogram has %d latencies of %d transactions", n, sum.Transactions)
		}
	}
	checkSeries(t, totals, sum.Transactions)
	if served := p.server.Totals(); served.Transactions < sum.Transactions && !foreign(w) {
		t.Errorf("the server saw %d transactions, the client counted %d", served.Transactions, sum.Transactions)
	}
	if again := collect(t, p.client, false); again.Transactions != 0 || again.Histogram != "" || len(again.Series) != 0 {
		t.Errorf("a second collect gives %+v, want nothing", again)
	}
}

// several is how many bursts in a row are looked at. Other programs start for each and may run for a second: of theirs there are as few as
// add up.
func several(w workload.Workload) int {
	if foreign(w) {
		return 2
	}
	return 4
}

// checkSeries holds the series of totals against the transactions that there were.
func checkSeries(t *testing.T, totals engine.Totals, transactions int64) {
	t.Helper()
	var series int64
	for _, s := range totals.Series {
		series += s.Transactions
	}
	if series != transactions {
		t.Errorf("the series has %d of %d transactions", series, transactions)
	}
}

// checkBurst holds a burst of 20 ms against itself.
func checkBurst(t *testing.T, w workload.Workload, b engine.Burst) {
	t.Helper()
	if b.Transactions < 1 || measures(w, "throughput") && (b.Bytes < 1 || b.Throughput <= 0) {
		t.Errorf("empty burst: %+v", b)
	}
	if b.Search != nil {
		t.Errorf("a search was made unasked: %+v", b.Search)
	}
	if b.Duration < 19*time.Millisecond {
		t.Errorf("the burst lasted %v, want 20 ms", b.Duration)
	}
	if since := time.Since(b.Start); since < b.Duration/2 || since > patience {
		t.Errorf("the burst began %v ago", since)
	}
	if got, want := b.Throughput, float64(b.Bytes)*8/b.Duration.Seconds(); want > 0 && math.Abs(got/want-1) > 1e-6 {
		t.Errorf("throughput %v, want %v", got, want)
	}
	if b.Sent > 0 && b.Sent != b.Transactions+b.Lost {
		t.Errorf("%d datagrams sent, %d transactions, %d lost", b.Sent, b.Transactions, b.Lost)
	}
	if latencies(w) && (!slices.IsSorted([]float64{1, b.Min, b.P50, b.P90, b.P99}) || b.Mean < b.Min || math.IsNaN(b.Split)) {
		t.Errorf("latencies are not in order: %+v", b)
	}
}

func exactTransactions(t *testing.T, w workload.Workload) {
	p := open(t, w, w.Defaults)
	for _, n := range []int64{1, 2, 100} {
		b := burst(t, p.client, engine.BurstSpec{Transactions: n})
		if got := b.Transactions + b.Lost; got != n && w.Name == "udp-stream" {
			t.Errorf("%d transactions, want %d", got, n)
		} else if w.Name != "udp-stream" && b.Transactions != n {
			t.Errorf("%d transactions, want %d", b.Transactions, n)
		}
	}
	long := burst(t, p.client, engine.BurstSpec{Transactions: 1 << 40, Duration: 20 * time.Millisecond})
	if long.Transactions < 1 || long.Duration > patience/2 {
		t.Errorf("the duration did not end the burst: %+v", long)
	}
}

func discardsWarmup(t *testing.T, w workload.Workload) {
	if foreign(w) {
		t.Log("what other programs do before they measure is not counted: there is nothing to test")
		return
	}
	p := open(t, w, w.Defaults)
	before := p.server.Totals()
	b := burst(t, p.client, engine.BurstSpec{Transactions: 10, Warmup: 50 * time.Millisecond})
	if b.Transactions+b.Lost != 10 {
		t.Errorf("%d transactions, want 10", b.Transactions)
	}
	if totals := collect(t, p.client, false); totals.Transactions != b.Transactions {
		t.Errorf("totals have %d transactions, want %d", totals.Transactions, b.Transactions)
	}
	after := p.server.Totals()
	if w.Name != "udp-stream" && after.Transactions-before.Transactions <= 20 {
		t.Errorf("the server saw %d transactions in all: there was no warm-up", after.Transactions-before.Transactions)
	}
}

func dropsLast(t *testing.T, w workload.Workload) {
	p := open(t, w, w.Defaults)
	for i, n := range []int64{1, 20, 300} {
		burst(t, p.client, engine.BurstSpec{Transactions: n, DropLast: i == 2}) // drops the 20
	}
	totals := collect(t, p.client, false)
	if got := totals.Transactions + totals.Lost; got != 301 {
		t.Errorf("%d transactions, want 301", got)
	}
	burst(t, p.client, engine.BurstSpec{Transactions: 7})
	if totals := collect(t, p.client, true); totals.Transactions != 0 {
		t.Errorf("%d transactions after the only burst was dropped", totals.Transactions)
	}
}

func severalConnections(t *testing.T, w workload.Workload) {
	params := w.Defaults
	params.Connections = 7
	if w.Check(params) != nil {
		t.Log("the workload has one connection: there is nothing to test")
		return
	}
	p := open(t, w, params)
	for range several(w) - 1 {
		checkBurst(t, w, burst(t, p.client, engine.BurstSpec{Duration: 20 * time.Millisecond, Warmup: time.Millisecond}))
	}
	burst(t, p.client, engine.BurstSpec{Transactions: 10})
	if totals := collect(t, p.client, false); latencies(w) && histogramCount(t, totals.Histogram) != totals.Transactions {
		t.Errorf("the histogram has %d latencies of %d transactions", histogramCount(t, totals.Histogram), totals.Transactions)
	}
}

func largeMessages(t *testing.T, w workload.Workload) {
	for _, size := range []unit.Bytes{1 << 20, 60_000, 3_000} {
		for _, connections := range []int{1, 4} {
			params := w.Defaults
			params.Message, params.Connections = size, connections
			if w.Check(params) != nil {
				continue
			}
			p := open(t, w, params)
			b := burst(t, p.client, engine.BurstSpec{Transactions: 20})
			if b.Transactions+b.Lost < 20 || b.Bytes < int64(size)*b.Transactions {
				t.Errorf("%d messages of %d bytes on %d connections: %+v", 20, size, connections, b)
			}
		}
	}
}

func allocatesNothing(t *testing.T, w workload.Workload) {
	if foreign(w) {
		t.Log("the loop is not in this process: there is nothing to test")
		return
	}
	p := open(t, w, w.Defaults)
	allocations := func(n int64) (per uint64) {
		per = math.MaxUint64
		// The rest of the process may allocate meanwhile: the least counts.
		for range 5 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			burst(t, p.client, engine.BurstSpec{Transactions: n})
			runtime.ReadMemStats(&after)
			per = min(per, after.Mallocs-before.Mallocs)
		}
		return per
	}
	allocations(2000) // buffers grow to their size
	if few, many := allocations(100), allocations(2000); many > few+50 {
		t.Errorf("2000 transactions allocate %d times, 100 transactions %d times", many, few)
	}
}

func idlesFree(t *testing.T, w workload.Workload) {
	p := open(t, w, w.Defaults)
	const span = 300 * time.Millisecond
	least := span
	for range 4 {
		burst(t, p.client, engine.BurstSpec{Duration: 5 * time.Millisecond})
		time.Sleep(30 * time.Millisecond) // the scheduler notices that nothing is left to do
		before := processorTime(t)
		time.Sleep(span)
		least = min(least, processorTime(t)-before)
		if least < time.Millisecond {
			return
		}
	}
	t.Errorf("armed and idle, it took %v of processor time in %v", least, span)
}

func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var ts unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts))
	return time.Duration(ts.Nano())
}

func refusesBursts(t *testing.T, w workload.Workload) {
	p := open(t, w, result.Params{})
	for _, spec := range []engine.BurstSpec{
		{}, {Duration: -1}, {Transactions: -1}, {Duration: 1, Warmup: -1}, {Duration: 1, Deadline: -1},
	} {
		if _, err := p.client.Burst(spec); err == nil {
			t.Errorf("a burst of %+v was run", spec)
		}
	}
	burst(t, p.client, engine.BurstSpec{Transactions: 1}) // it is still of use
}

// searchSpan is a burst that holds a search.
const searchSpan = 300 * time.Millisecond

// seeking are parameters that ask for a search. A workload that has none must say so.
func seeking(t *testing.T, w workload.Workload) (result.Params, bool) {
	t.Helper()
	p := w.Defaults
	p.Search, p.Rate = true, 0
	err := w.Check(p)
	if err == nil {
		return p, true
	}
	if !strings.Contains(err.Error(), "search") || !strings.HasPrefix(err.Error(), w.Name) {
		t.Errorf("check of a search: %v, want an error of %s that names it", err, w.Name)
	}
	t.Log("the workload has no search: there is nothing to test")
	return p, false
}

// checksSearch looks at what the workload says of parameters that ask for a search.
func checksSearch(t *testing.T, w workload.Workload) {
	params, can := seeking(t, w)
	if !can {
		return
	}
	params.Rate = w.Defaults.Rate
	if err := w.Check(params); err == nil {
		t.Error("a search and a rate are taken together")
	}
}

// Search has a workload search for the highest rate, which it finds only where the processors do nothing else for a while.
func Search(t *testing.T, w workload.Workload) {
	t.Helper()
	params, can := seeking(t, w)
	if !can {
		t.Fatal("the workload has no search")
	}
	p := open(t, w, params)
	b := burst(t, p.client, engine.BurstSpec{Duration: searchSpan, Warmup: searchSpan / 5})
	// Where the machine does much else, a search may find nothing.
	for n := 0; n < 20 && b.Search != nil && (b.Search.NoDrop == 0 || b.Search.PartialDrop == 0); n++ {
		b = burst(t, p.client, engine.BurstSpec{Duration: searchSpan, DropLast: true})
	}
	s := b.Search
	if s == nil || s.Trials < 2 || s.NoDrop <= 0 || s.PartialDrop < s.NoDrop {
		t.Fatalf("found %+v in %+v", s, b)
	}
	if s.Load10 <= 0 || s.Load50 <= 0 || s.Load90 <= 0 {
		t.Errorf("latencies between two ends with one clock are missing: %+v", s)
	}
	if b.Sent != b.Transactions+b.Lost || b.Transactions < 1 || b.Bytes < b.Transactions || b.Throughput <= 0 || b.Duration <= 0 {
		t.Errorf("the trials don't add up: %+v", b)
	}
	totals := collect(t, p.client, false)
	if totals.Transactions != b.Transactions || totals.Bytes != b.Bytes || totals.Sent != b.Sent || totals.Lost != b.Lost {
		t.Errorf("totals %+v, want the burst's %+v", totals, b)
	}
	checkSeries(t, totals, b.Transactions)
	burst(t, p.client, engine.BurstSpec{Duration: searchSpan})
	if totals := collect(t, p.client, true); totals.Transactions != 0 {
		t.Errorf("%d transactions after the only search was dropped", totals.Transactions)
	}
	for _, short := range []engine.BurstSpec{{Duration: 5 * time.Millisecond}, {Transactions: 20}} {
		if b := burst(t, p.client, short); b.Search != nil || b.Transactions < 1 {
			t.Errorf("a burst of %+v, too short for a search: %+v", short, b)
		}
	}
}

// searchEnds has a search lose its server, and be closed.
func searchEnds(t *testing.T, w workload.Workload) {
	params, can := seeking(t, w)
	if !can {
		return
	}
	process, address := Server(t)
	c := Dial(t, w, params, address)
	require.NoError(t, process.Signal(syscall.SIGSTOP))
	begin := time.Now()
	_, err := c.Burst(engine.BurstSpec{Duration: searchSpan, Deadline: 500 * time.Millisecond})
	checkFault(t, w, address, begin, err)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "500ms") || !strings.Contains(err.Error(), "trial") {
		t.Errorf("error of a search whose server hangs: %v", err)
	}
	p := open(t, w, params)
	ended := make(chan error, 1)
	go func() {
		_, err := p.client.Burst(engine.BurstSpec{Duration: 10 * time.Second, Deadline: time.Minute})
		ended <- err
	}()
	time.Sleep(50 * time.Millisecond) // it searches: nothing can be seen of that
	mustClose(t, p.client)
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a search that was closed succeeds")
		}
	case <-time.After(patience):
		t.Fatal("close did not end the search")
	}
}

// overIPv6 runs over IPv6 with all that names addresses: a server of its own address or of all, clients that give their
// source ports or leave them to the kernel, one connection and several.
func overIPv6(t *testing.T, w workload.Workload) {
	l, err := net.Listen("tcp6", "[::1]:0")
	require.Need(t, "the address ::1 (CONFIG_IPV6)", err == nil)
	_ = l.Close()
	for _, listen := range []netip.Addr{netip.IPv6Loopback(), netip.IPv6Unspecified()} {
		for _, connections := range []int{1, 5} {
			params := w.Defaults
			if connections > 1 {
				if params.Connections = connections; w.Check(params) != nil {
					continue
				}
			}
			t.Run(listen.String(), func(t *testing.T) {
				port := freePort(t, 1+w.SourcePorts(params))
				server, err := w.Serve(within(t, starting), params, netip.AddrPortFrom(listen, port), -1)
				if err != nil {
					t.Fatalf("serve: %v", err)
				}
				defer mustClose(t, server)
				for _, source := range []uint16{port + 1, 0} {
					remote := netip.AddrPortFrom(netip.IPv6Loopback(), port)
					client, err := w.Dial(within(t, starting), params, netip.AddrPortFrom(listen, source), remote, -1)
					if err != nil {
						t.Fatalf("dial from port %d: %v", source, err)
					}
					checkBurst(t, w, burst(t, client, engine.BurstSpec{Duration: 20 * time.Millisecond}))
					sum := burst(t, client, engine.BurstSpec{Transactions: 10})
					if done := sum.Transactions + sum.Lost; done < 10 {
						t.Errorf("%d transactions from port %d, want 10", done, source)
					}
					mustClose(t, client)
				}
			})
		}
	}
}
