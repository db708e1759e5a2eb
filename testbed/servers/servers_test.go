package servers

import (
	"context"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"netdelta/testbed/joined"
	"netdelta/testbed/rpc"
	"netdelta/testbed/servers/server"
)

// TestAsksTheSilent: a machine that is spoken to is not asked whether it is there, as while bursts are measured; one that is not is asked.
func TestAsksTheSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		var asked atomic.Int64
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = rpc.NewConn(there, false).Serve(func(stream *rpc.Stream, r rpc.Request) {
				asked.Add(1)
				stream.Answer(r, rpc.Greet(), nil)
			}, nil)
		}()
		m, err := joined.Connect(t.Context(), here)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			ask(ctx, m, 40*time.Second)
			close(ended)
		}()
		spoken := asked.Load()
		for range 60 {
			time.Sleep(time.Second)
			if err := m.Ping(ctx); err != nil { // as anything that is said
				t.Fatal(err)
			}
			spoken++
		}
		if n := asked.Load(); n != spoken {
			t.Errorf("it was asked %d times while it was spoken to", n-spoken)
		}
		time.Sleep(31 * time.Second)
		if n := asked.Load() - spoken; n != 3 {
			t.Errorf("it was asked %d times in 31 s of silence, want each 10 s", n)
		}
		stop()
		<-ended
		_ = m.Close()
		<-served
	})
}

// TestHosts: a machine is known by the host that the user named, without user and port, by its own name and by the addresses of its cards.
func TestHosts(t *testing.T) {
	r := server.Report{Host: "web1", Cards: []server.CardReport{{Addresses: []string{"10.0.0.1/24", "fd00::1/64"}}}}
	for name, host := range map[string]string{"a": "a", "me@a": "a", "me@a:2222": "a", "[fd00::9]:22": "fd00::9", "me@fd00::9": "fd00::9", "10.1.1.1:22": "10.1.1.1"} {
		all := hosts(name, r)
		for _, want := range []string{host, "web1", "10.0.0.1", "fd00::1"} {
			if !slices.Contains(all, want) {
				t.Errorf("%s is known as %q, without %s", name, all, want)
			}
		}
		if all[0] != name {
			t.Errorf("%s is called %s", name, all[0])
		}
	}
}

// TestReachable: the way to a card is looked at by an address of IPv4 where it has one, and never by one that says nothing without its card.
func TestReachable(t *testing.T) {
	for want, addresses := range map[string][]string{
		"10.0.0.1": {"fe80::1/64", "fd00::1/64", "10.0.0.1/24"}, "fd00::1": {"fe80::1/64", "fd00::1/64"}, "": {"fe80::1/64"},
	} {
		if got := reachable(server.CardReport{Addresses: addresses}); got != want {
			t.Errorf("%q are reached at %q, want %q", addresses, got, want)
		}
	}
}
