package engine_test

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/result"
)

// answered says whether a server of datagrams answers a stranger.
func answered(t *testing.T, at netip.AddrPort, size int) bool {
	t.Helper()
	conn, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)}, net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, err = conn.Read(make([]byte, size))
	return err == nil
}

// A server of datagrams answers its own client alone, so that no stranger has it send to others; unless it is for any number of clients.
func TestDatagramsOfStrangersAreNotAnswered(t *testing.T) {
	w := named(t, "udp-rr")
	for i, connections := range []int{1, 4} {
		for _, shared := range []bool{false, true} {
			t.Run(fmt.Sprint(connections, " connections, shared ", shared), func(t *testing.T) {
				at := loopback(uint16(21900 + i))
				p := result.Params{Message: 300, Connections: connections}
				ctx := t.Context()
				if shared {
					ctx = engine.Shared(ctx)
				}
				s, err := w.Serve(ctx, p, at, -1)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				c, err := w.Dial(t.Context(), p, netip.AddrPort{}, at, -1)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if got := answered(t, at, 300); got != shared {
					t.Errorf("a stranger was answered: %v", got)
				}
				if b, err := c.Burst(engine.BurstSpec{Duration: 20 * time.Millisecond}); err != nil || b.Transactions == 0 {
					t.Errorf("the client has %d transactions: %v", b.Transactions, err)
				}
			})
		}
	}
}
