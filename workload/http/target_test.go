package http

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/result"
	"netdelta/workload"
)

// server is one of another kind than nginx.
func server(t *testing.T) netip.AddrPort {
	t.Helper()
	count := 0
	mux := http.NewServeMux()
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "web.shop.svc:"+r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()[len("127.0.0.1:"):] || r.URL.RawQuery != "a=b%20c" {
			http.Error(w, "asked otherwise", http.StatusTeapot)
			return
		}
		_, _ = fmt.Fprint(w, strings.Repeat("x", 1234))
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/file", http.StatusFound) })
	mux.HandleFunc("/empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/zero", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/stream", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "a")
		w.(http.Flusher).Flush()
		_, _ = fmt.Fprint(w, "b")
	})
	mux.HandleFunc("/grows", func(w http.ResponseWriter, _ *http.Request) {
		count++
		_, _ = fmt.Fprint(w, strings.Repeat("x", count))
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// to is a target at an address, by another name.
func to(at netip.AddrPort, path string) workload.Target {
	return workload.Target{Scheme: workload.SchemeHTTP, Host: "web.shop.svc", Port: at.Port(), Path: path, Address: at.Addr()}
}

func TestTarget(t *testing.T) {
	target := to(server(t), "/file?a=b%20c")
	h, err := hold(t.Context(), result.Params{}, target)
	if err != nil {
		t.Fatal(err)
	}
	if target.Length = h.Found().Length; target.Length != 1234 || !strings.Contains(h.Found().Says, " 200 ") || !strings.Contains(h.Found().Says, " 1234 bytes") {
		t.Errorf("found %+v", h.Found())
	}
	for _, p := range []result.Params{{}, {Connections: 3}, {Reconnect: true}, {RequestRate: 200}} {
		p.Target = target.String()
		c, err := dialTarget(t.Context(), p, target, -1)
		if err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		b, err := c.Burst(engine.BurstSpec{Duration: 100 * time.Millisecond, Deadline: 20 * time.Second})
		if err != nil || b.Transactions == 0 || b.Errors > 0 {
			t.Errorf("%+v: got %+v, %v", p, b, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	// One that does not answer as it did before is found out.
	target.Length++
	if c, err := dialTarget(t.Context(), result.Params{Target: target.String()}, target, -1); err == nil {
		_ = c.Close()
		t.Error("an answer that is too short was taken")
	}
}

func TestTargetWrong(t *testing.T) {
	at := server(t)
	for path, says := range map[string]string{
		"/broken": "it answers 500", "/moved": `leads elsewhere, to "/file"`, "/empty": "204 without a body", "/nothing": "it answers 404",
		"/stream": "no Content-Length", "/grows": "it answered with 1 bytes, and then with 2",
	} {
		if _, err := hold(t.Context(), result.Params{}, to(at, path)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %s", path, err, says)
		}
	}
	if _, err := hold(t.Context(), result.Params{}, to(at, "/zero")); err != nil {
		t.Errorf("a body of no bytes: %v", err)
	}
	if _, err := hold(t.Context(), result.Params{}, to(netip.AddrPortFrom(at.Addr(), 1), "/")); err == nil || !strings.Contains(err.Error(), "nothing listens") {
		t.Errorf("no server there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := hold(ctx, result.Params{}, to(at, "/file")); err == nil {
		t.Error("it was asked after the end")
	}
	if err := unanswered(fmt.Errorf("read: %w", context.DeadlineExceeded)); !strings.Contains(err.Error(), "NetworkPolicy") {
		t.Errorf("got %v", err)
	}
	for _, p := range []result.Params{{Target: "http://web/", Engine: "wrk"}, {Target: "http://web/", File: 100}, {Target: "mysql://u@db/x"}} {
		if Workload().Check(p) == nil {
			t.Errorf("%+v was taken", p)
		}
	}
}
