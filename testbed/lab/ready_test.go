package lab

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"netdelta/internal/require"
	"netdelta/network"
)

// An IPv6 address counts as ready when the kernel takes packets for it, and not before.
func TestReadyAwaitsAddresses(t *testing.T) {
	require.Namespaces(t)
	s, err := newSpace("node0", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	in := network.InNode(0)
	b := newBuilder(map[network.Space]*space{in: s})
	if err := b.apply(t.Context(), trials(in)[network.NeedIPv6]); err != nil {
		require.Need(t, network.NeedIPv6.String(), !missing(err))
		t.Fatal(err)
	}
	if err := b.ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	given, other := netip.MustParseAddr("2001:2::1"), netip.MustParseAddr("2001:2::2")
	if !b.addressed[in][given] {
		t.Fatalf("nothing waits for %s", given)
	}
	local, err := s.local()
	if err != nil {
		t.Fatal(err)
	}
	if !local[given] || local[other] {
		t.Errorf("the namespace takes packets for %v, want %s and not %s", local, given, other)
	}
	b.addressed[in][other] = true
	if deaf, err := s.firstDeaf(b.addressed[in]); deaf != "address 2001:2::2" || err != nil {
		t.Errorf("got %q and error %v", deaf, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := b.ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ready with an address that no interface has: got error %v", err)
	}
}
