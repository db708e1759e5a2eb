package joined_test

import (
	"errors"
	"net/netip"
	"testing"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/joined"
)

// TestShared: nodes have the addresses that were given for their wire, and networks whose packets can't pass a link with one MAC address for all
// wires are refused.
func TestShared(t *testing.T) {
	t.Parallel()
	driver := spaces(t)
	var given [][]netip.Prefix
	for w := range wiresOfSpaces {
		a := netip.MustParsePrefix("10.77.0.1/24").Addr().As4()
		a[3] = byte(1 + 2*w)
		first := netip.AddrFrom4(a)
		given = append(given, []netip.Prefix{netip.PrefixFrom(first, 24), netip.PrefixFrom(first.Next(), 24)})
	}
	driver.ShareLink(joined.Shared{First: 16, OneMAC: true, Addresses: given, MTU: 1500})
	for w := range 2 {
		bed, err := driver.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "vxlan"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := bed.Close(); err != nil {
				t.Error(err)
			}
		}()
		at, pods := bed.Instruments().Observer, bed.Pods()
		for i, got := range at.Plan().Nodes {
			if want := given[w][i].Addr(); got != want {
				t.Errorf("node%d on wire %d has the address %s, want %s", i, w, got, want)
			}
		}
		if err := at.Fit(t.Context(), pods[0], pods[1], at.Plan().PathMTU(0, 1)); err != nil {
			t.Error(err)
		}
	}
	_, refused := errors.AsType[*network.NotPossibleError](driver.Supports(t.Context(), testbed.Spec{Network: "host", Link: testbed.Link{MTU: 1501}}))
	if !refused {
		t.Error("wires over cards of MTU 1500 may have one of 1501")
	}
	for _, c := range []struct {
		network string
		family  result.Family
		refused bool
	}{
		{"routed", result.IPv4, true},
		{"ebpf-routed", result.IPv4, true},
		{"bridge", result.IPv4, true},
		{"host", result.IPv6, true},
		{"host", result.IPv4, false},
	} {
		err := driver.Supports(t.Context(), testbed.Spec{Network: c.network, Family: c.family})
		if _, not := errors.AsType[*network.NotPossibleError](err); not != c.refused {
			t.Errorf("%s over %s: %v", c.network, c.family, err)
		}
	}
}
