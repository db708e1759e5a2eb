package servers

import (
	"context"
	"net"
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
