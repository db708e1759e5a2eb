package datapath

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"netdelta/internal/require"
	"netdelta/testbed"
)

// A program that the verifier refuses is unsupported, and the end of the log says why.
func TestRefusedByVerifier(t *testing.T) {
	require.Namespaces(t)
	spec := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"wild": {
		Name: "wild", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{
			asm.LoadMem(asm.R0, asm.R1, 0, asm.Word),
			asm.LoadMem(asm.R0, asm.R0, 0, asm.DWord), // what the packet's length points to
			asm.Return(),
		},
	}}}
	a := load(func() (*ebpf.CollectionSpec, error) { return spec, nil }, nil, nil)
	_, err := a.done()
	var unsupported *testbed.UnsupportedError
	if !errors.As(err, &unsupported) {
		t.Fatalf("got error %v, want an UnsupportedError", err)
	}
	for _, want := range []string{"verifier", "R0 invalid mem access"} {
		if !strings.Contains(unsupported.Need, want) {
			t.Errorf("the need %q does not say %q", unsupported.Need, want)
		}
	}
	if unsupported.Fix == "" {
		t.Error("the error does not say what to do")
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		err             error
		unsupported     bool
		need, fix, says string
	}{
		{unix.EPERM, true, "CAP_BPF", "run it as root", ""},
		{fmt.Errorf("map create: %w (MEMLOCK may be too low)", unix.EPERM), true, "CAP_BPF", "run it as root", ""},
		{fmt.Errorf("tcx: %w", ebpf.ErrNotSupported), true, "can attach", "Linux 6.6", ""},
		{unix.EOPNOTSUPP, true, "can attach", "Linux 6.6", ""},
		{unix.ENOMEM, false, "", "", "attach: cannot allocate memory"},
	} {
		err := refusal("attach", c.err)
		var u *testbed.UnsupportedError
		switch {
		case errors.As(err, &u) != c.unsupported:
			t.Errorf("%v: got error %v", c.err, err)
		case c.unsupported && (!strings.Contains(u.Need, c.need) || !strings.Contains(u.Fix, c.fix)):
			t.Errorf("%v: got %+v", c.err, u)
		case !c.unsupported && err.Error() != c.says:
			t.Errorf("%v: got error %q, want %q", c.err, err, c.says)
		}
	}
}

// Addresses and prefixes of the two families differ, and prefix lengths count from the front of the mapped address.
func TestWords(t *testing.T) {
	if words(netip.MustParseAddr("198.19.0.10")) != words(netip.MustParseAddr("::ffff:198.19.0.10")) {
		t.Error("an address of IPv4 is not the one that is mapped into IPv6")
	}
	for prefix, want := range map[string]uint32{"198.19.0.0/16": 112, "198.19.0.10/32": 128, "0.0.0.0/0": 96, "2001:2::/56": 56, "::/0": 0} {
		if got := bits(netip.MustParsePrefix(prefix)); got != want {
			t.Errorf("%s has %d bits, want %d", prefix, got, want)
		}
	}
}
