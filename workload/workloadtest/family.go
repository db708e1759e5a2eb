package workloadtest

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/internal/require"
	"netdelta/workload"
)

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
