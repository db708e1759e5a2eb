package workloadtest

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/workload"
)

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

func searches(t *testing.T, w workload.Workload) {
	params, can := seeking(t, w)
	if !can {
		return
	}
	both := params
	both.Rate = w.Defaults.Rate
	if err := w.Check(both); err == nil {
		t.Error("a search and a rate are taken together")
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
	var series int64
	for _, s := range totals.Series {
		series += s.Transactions
	}
	if series != b.Transactions {
		t.Errorf("the series has %d of %d transactions", series, b.Transactions)
	}
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
	time.Sleep(50 * time.Millisecond)
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
