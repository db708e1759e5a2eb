package http_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/http"
)

// patience is how long anything may take on a busy machine.
const patience = 30 * time.Second

// needs skips the test where programs lack.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	require.Namespaces(t)
	for _, p := range programs {
		_, err := daemon.Look(p)
		require.Need(t, "the program "+p, err == nil)
	}
}

// free is an address of loopback with no listener.
func free(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return netip.MustParseAddrPort(l.Addr().String())
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func serve(t *testing.T, p result.Params) (workload.DaemonServer, netip.AddrPort) {
	t.Helper()
	at := free(t)
	s, err := http.Workload().Serve(within(t), p, at, -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.(workload.DaemonServer), at
}

func dial(t *testing.T, p result.Params, to netip.AddrPort) engine.Client {
	t.Helper()
	c, err := http.Workload().Dial(within(t), p, netip.MustParseAddrPort("127.0.0.1:0"), to, -1)
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

// TestForms asks for files of all sizes in all the ways there are.
func TestForms(t *testing.T) {
	needs(t, "nginx")
	for _, file := range []unit.Bytes{1, 600, 100_000, 10_000_000, 500_000_000} {
		for _, connections := range []int{1, 3} {
			for _, reconnect := range []bool{false, true} {
				for _, rate := range []float64{0, 200} {
					p := result.Params{File: file, Connections: connections, Reconnect: reconnect, RequestRate: rate}
					many := int64(60)
					if file > unit.MiB {
						many = 3
					}
					if file > 100*unit.MiB && (connections > 1 || rate > 0) {
						continue // the same code, and much to copy
					}
					t.Run(fmt.Sprintf("%d bytes, %d connections, %v, at %v", int64(file), connections, reconnect, rate), func(t *testing.T) {
						_, at := serve(t, p)
						b, err := dial(t, p, at).Burst(engine.BurstSpec{Transactions: many, Deadline: patience})
						if err != nil {
							t.Fatal(err)
						}
						request := int64(len("GET / HTTP/1.1\r\nHost: \r\n\r\n")) + int64(len(at.String())) + int64(len(fmt.Sprint(int64(file))))
						if reconnect {
							request += int64(len("Connection: close\r\n"))
						}
						// The head of a response of nginx is some 250 bytes.
						least := many * (request + int64(file) + 150)
						if b.Transactions != many || b.Errors != 0 || b.Bytes < least || b.Bytes > least+many*250 || b.Moved != b.Bytes {
							t.Errorf("%d transactions, %d errors, %d bytes, %d moved; want %d and at least %d", b.Transactions, b.Errors, b.Bytes, b.Moved, many, least)
						}
						if rate > 0 && b.Duration < time.Duration(float64(many-1)/rate*1e9) {
							t.Errorf("%d requests at %v a second took %v", many, rate, b.Duration)
						}
					})
				}
			}
		}
	}
}

func TestManyConnections(t *testing.T) {
	needs(t, "nginx")
	for _, reconnect := range []bool{false, true} {
		p := result.Params{Connections: 1024, Reconnect: reconnect}
		_, at := serve(t, p)
		b, err := dial(t, p, at).Burst(engine.BurstSpec{Transactions: 5000, Deadline: patience})
		if err != nil || b.Transactions != 5000 || b.Errors != 0 {
			t.Errorf("reconnect %v: %d transactions, %d errors, %v", reconnect, b.Transactions, b.Errors, err)
		}
	}
}

func TestHealthAndRestart(t *testing.T) {
	needs(t, "nginx")
	s, at := serve(t, result.Params{})
	h := s.Health(within(t))
	if h.Unwell != "" || len(h.Services) != 1 || h.Services[0].Name != "nginx" || h.Services[0].Version == "" || h.Services[0].Memory < 100*unit.KiB {
		t.Errorf("a server that runs: %+v", h)
	}
	c := dial(t, result.Params{}, at)
	if _, err := c.Burst(engine.BurstSpec{Transactions: 10, Deadline: patience}); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(within(t)); err != nil {
		t.Errorf("a restart of one that is well: %v", err)
	}
	if _, err := c.Burst(engine.BurstSpec{Transactions: 10, Deadline: patience}); err != nil {
		t.Errorf("a server that is well was restarted: %v", err)
	}
	pids := s.(interface{ Threads() []int }).Threads()
	if len(pids) != 1 {
		t.Fatalf("threads %v", pids)
	}
	if used, err := s.(interface{ CPU() (time.Duration, error) }).CPU(); used <= 0 || err != nil {
		t.Errorf("nginx has used %v, %v", used, err)
	}
	if err := unix.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	require.Eventually(t, patience, "its death is noticed", func() bool { return s.Health(within(t)).Ended })
	if h := s.Health(within(t)); !strings.Contains(h.Unwell, "killed") {
		t.Errorf("a server that was killed: %+v", h)
	}
	if _, err := c.Burst(engine.BurstSpec{Duration: time.Second, Deadline: patience}); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a burst without a server: %v", err)
	}
	if err := s.Restart(within(t)); err != nil {
		t.Fatal(err)
	}
	if h := s.Health(within(t)); h.Unwell != "" || h.Ended {
		t.Errorf("after its restart: %+v", h)
	}
	if _, err := dial(t, result.Params{}, at).Burst(engine.BurstSpec{Transactions: 10, Deadline: patience}); err != nil {
		t.Error(err)
	}
}

// TestErrorsOfServing: what keeps nginx from starting is named, with what to do.
func TestErrorsOfServing(t *testing.T) {
	needs(t, "nginx")
	w := http.Workload()
	_, at := serve(t, result.Params{})
	if _, err := w.Serve(within(t), result.Params{}, at, -1); !errors.Is(err, unix.EADDRINUSE) || !strings.Contains(err.Error(), fmt.Sprint(at.Port())) {
		t.Errorf("a port in use: %v", err)
	}
	old := t.TempDir()
	if err := os.WriteFile(filepath.Join(old, "nginx"), []byte("#!/bin/sh\necho 'nginx version: nginx/1.9.15' >&2\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", old)
	if _, err := w.Serve(within(t), result.Params{}, free(t), -1); err == nil || !strings.Contains(err.Error(), "1.9.15") || !strings.Contains(err.Error(), "1.19.10") {
		t.Errorf("an old version: %v", err)
	}
	if err := os.WriteFile(filepath.Join(old, "nginx"), []byte("#!/bin/sh\n[ \"$1\" = -V ] && echo 'nginx version: nginx/1.30.0' && exit\necho no luck today >&2; exit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Serve(within(t), result.Params{}, free(t), -1); err == nil || !strings.Contains(err.Error(), "no luck today") {
		t.Errorf("one that does not start: %v", err)
	}
	if err := os.WriteFile(filepath.Join(old, "nginx"), []byte("#!/bin/sh\necho what\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Serve(within(t), result.Params{}, free(t), -1); err == nil || !strings.Contains(err.Error(), `it says "what`) {
		t.Errorf("one that is another program: %v", err)
	}
}

func TestWrk(t *testing.T) {
	needs(t, "nginx", "wrk")
	p := result.Params{Engine: "wrk", Connections: 300, CPU: "any", Own: result.OwnOf("threads", 2)}
	s, at := serve(t, p)
	c := dial(t, p, at)
	var sum int64
	for range 2 {
		b, err := c.Burst(engine.BurstSpec{Duration: 20 * time.Millisecond, Deadline: patience})
		if err != nil {
			t.Fatal(err)
		}
		inOrder := b.Min > 0 && b.Min <= b.P50 && b.P50 <= b.P90 && b.P90 <= b.P99 && b.P99 <= b.Max && b.Mean > b.Min
		if b.Transactions < 10 || b.Errors != 0 || b.Duration < time.Second || b.Span < b.Duration || b.CPU <= 0 || !inOrder ||
			b.Bytes < 800*b.Transactions || b.Throughput <= 0 {
			t.Errorf("%+v", b)
		}
		sum += b.Transactions
	}
	totals, err := c.Collect(false)
	if err != nil || totals.Transactions != sum || totals.Histogram == "" || len(totals.Series) != 2 {
		t.Errorf("%+v, %v; want %d transactions", totals, err, sum)
	}
	if served := s.Totals().Transactions; served < sum {
		t.Errorf("the server saw %d requests of %d", served, sum)
	}
	for _, q := range []result.Params{{RequestRate: 10}, {Nagle: true}, {CongestionControl: "reno"}} {
		q.Engine = "wrk"
		if err := http.Workload().Check(q); err == nil || !strings.Contains(err.Error(), "can't be had of it") {
			t.Errorf("%+v: %v", q, err)
		}
	}
	for _, q := range []result.Params{{Own: result.OwnOf("threads", 2)}, {Engine: "wrk", Own: result.OwnOf("threads", 2)}} {
		if err := http.Workload().Check(q); err == nil || !strings.Contains(err.Error(), "threads") {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if err := http.Workload().Check(result.Params{Engine: "iperf3"}); err == nil {
		t.Error("iperf3 speaks HTTP")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Burst(engine.BurstSpec{Duration: time.Second, Deadline: patience}); err == nil || !strings.Contains(err.Error(), "unable to connect") {
		t.Errorf("wrk without a server: %v", err)
	}
}

func TestDemand(t *testing.T) {
	w := http.Workload()
	if d := w.Demands(result.Params{}); d.Burst != 0 || d.Opaque || len(d.Programs) != 1 || d.Memory < 10*unit.MiB || d.Memory > 64*unit.MiB {
		t.Errorf("%+v", d)
	}
	if d := w.Demands(result.Params{Engine: "wrk", File: 500_000_000}); d.Burst != time.Second || !d.Opaque || len(d.Programs) != 2 || d.Memory > 64*unit.MiB {
		t.Errorf("%+v", d)
	}
	slow := result.Params{File: 10_000_000, Connections: 2, Conditions: result.Conditions{LinkRate: 100e6}}
	if d := w.Demands(slow); d.Burst != 0 || d.Transaction != 1600*time.Millisecond {
		t.Errorf("two files of 80 Mbit at 100 Mbit/s: bursts of %v, transactions of %v", d.Burst, d.Transaction)
	}
}
