package lab_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"netdelta/internal/netns"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

func services() []string {
	return []string{result.ServiceIPTables, result.ServiceNFTables, result.ServiceIPVS, result.ServiceEBPF}
}

// No pod has the address that the client calls: the packets arrive with the server's own address, from the client's own.
func TestServiceTranslates(t *testing.T) {
	for _, service := range services() {
		for _, family := range []result.Family{result.IPv4, result.IPv6} {
			for _, name := range []string{"routed", "macvlan"} {
				t.Run(fmt.Sprint(service, "/", family, "/", name), func(t *testing.T) {
					t.Parallel()
					tb := under(t, testbed.Spec{Network: name, Family: family, Conditions: result.Conditions{Service: service}.Plain()})
					for _, to := range []int{1, 2} {
						translates(t, tb, to)
					}
				})
			}
		}
	}
}

func translates(t *testing.T, tb *lab.Testbed, to int) {
	t.Helper()
	from, server := tb.Pods()[0], tb.Pods()[to]
	port, _ := server.Ports()
	at := tb.Endpoint(from, server, port)
	if at.Addr() == server.Address() {
		t.Fatalf("the client is told the server's own address")
	}
	l := listen(t, inside(t, server), server.Address(), port)
	defer l.Close()
	c, err := dial(inside(t, from), at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := addressOf(s.RemoteAddr()); got != from.Address() {
		t.Errorf("the server is called by %s, want %s", got, from.Address())
	}
	if got := addressOf(s.LocalAddr()); got != server.Address() {
		t.Errorf("the server is called at %s, want %s", got, server.Address())
	}
	if got := addressOf(c.RemoteAddr()); got != at.Addr() {
		t.Errorf("the client calls %s, want %s", got, at.Addr())
	}
}

func addressOf(a net.Addr) netip.Addr { return a.(*net.TCPAddr).AddrPort().Addr().Unmap() }

// listen listens inside a namespace, for a minute.
func listen(t *testing.T, ns *netns.Namespace, at netip.Addr, port uint16) *net.TCPListener {
	t.Helper()
	var l *net.TCPListener
	err := ns.Do(func() (err error) {
		l, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(at, port)))
		return err
	})
	if err == nil {
		err = l.SetDeadline(time.Now().Add(time.Minute))
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// dial connects from inside a namespace.
func dial(ns *netns.Namespace, to netip.AddrPort) (c *net.TCPConn, err error) {
	err = ns.Do(func() error {
		c, err = net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(to))
		return err
	})
	return c, err
}

// Thousands of services cost a new connection more where they are looked through one after the other, and hardly more where
// one look finds the right one.
func TestServiceCostWhenQuiet(t *testing.T) {
	require.Quiet(t)
	ratios := map[string]float64{}
	for _, service := range services() {
		t.Run(service, func(t *testing.T) {
			many := 8000
			if service == result.ServiceIPVS {
				many = 2000 // which takes the emulated machine on which it runs as long
			}
			ratios[service] = ofConnections(t, result.Conditions{Service: service, Services: 10}, result.Conditions{Service: service, Services: many})
			t.Logf("%d services cost %.2f times what 10 do", many, ratios[service])
		})
	}
	linear, known := ratios[result.ServiceIPTables]
	require.Need(t, "iptables", known)
	if linear < 1.1 {
		t.Errorf("thousands of services in iptables cost %.2f times what 10 do, want a difference", linear)
	}
	for _, service := range []string{result.ServiceNFTables, result.ServiceIPVS, result.ServiceEBPF} {
		if r, known := ratios[service]; known && r-1 > (linear-1)/2 {
			t.Errorf("thousands of services cost %.2f times what 10 do with %s, and %.2f times with iptables: want much less", r, service, linear)
		}
	}
}

// ofConnections is how many times longer it takes to connect under the second conditions.
func ofConnections(t *testing.T, a, b result.Conditions) float64 {
	t.Helper()
	var clients [2]*netns.Namespace
	var at [2]netip.AddrPort
	for i, c := range []result.Conditions{a, b} {
		tb := under(t, testbed.Spec{Network: "bridge", PodsPerNode: 1, Conditions: c})
		from, to := tb.Pods()[0], tb.Pods()[1]
		port, _ := to.Ports()
		clients[i], at[i] = inside(t, from), tb.Endpoint(from, to, port)
		l := listen(t, inside(t, to), to.Address(), port)
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_ = c.Close()
			}
		}()
	}
	return ratioOfTurns(t, func(i int) error {
		return clients[i].Do(func() error {
			for range 50 {
				c, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(at[i]))
				if err == nil {
					// No connection is left to wait for its last packets: their number would grow with each turn.
					err = errors.Join(c.SetLinger(0), c.Close())
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// After a swap virtual addresses lead on, also to a pod that is now reached by its node, and also those that were called before.
func TestServiceUnderSwap(t *testing.T) {
	t.Parallel()
	for _, service := range []string{result.ServiceIPTables, result.ServiceNFTables, result.ServiceIPVS} {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			tb := under(t, testbed.Spec{Network: "bridge", PodsOutlive: true, Conditions: result.Conditions{Service: service}.Plain()})
			from, to := tb.Pods()[0], tb.Pods()[2]
			client, server := inside(t, from), inside(t, to)
			port, _ := to.Ports()
			l := listen(t, server, netip.IPv4Unspecified(), port)
			defer l.Close()
			for _, next := range []string{"bridge-nat", "routed", "bridge"} {
				if !calls(t, client, server, tb.Endpoint(from, to, port), port) {
					t.Fatalf("a datagram does not arrive in network %s", tb.Plan().Network)
				}
				c, err := dial(client, tb.Endpoint(from, to, port))
				if err != nil {
					t.Fatalf("in network %s: %v", tb.Plan().Network, err)
				}
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				if err := tb.Swap(t.Context(), next); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// calls tells whether a datagram from always the same port gets to a server.
func calls(t *testing.T, client, server *netns.Namespace, at netip.AddrPort, port uint16) bool {
	t.Helper()
	var in, out *net.UDPConn
	err := errors.Join(server.Do(func() (err error) {
		in, err = net.ListenUDP("udp4", &net.UDPAddr{Port: int(port)})
		return err
	}), client.Do(func() (err error) {
		out, err = net.DialUDP("udp4", &net.UDPAddr{Port: 4000}, net.UDPAddrFromAddrPort(at))
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	const attempts = 10
	for range attempts {
		if _, err := out.Write([]byte("call")); err != nil {
			t.Fatal(err)
		}
		if err := in.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		var b [16]byte
		if _, _, err := in.ReadFromUDPAddrPort(b[:]); err == nil {
			return true
		}
	}
	return false
}
