package network

import (
	"fmt"
	"net/netip"
	"strings"
)

// Balance resolves virtual addresses in the namespace of a client by eBPF programs (tcx) at its device: what leaves for a
// virtual address goes to its backend, and what comes back from there comes from the virtual address. Ports stay.
type Balance struct {
	Device
	Services []VirtualAddress
}

// VirtualAddress is an address that no device has, and the one that stands behind it.
type VirtualAddress struct{ Virtual, Backend netip.Addr }

func (Balance) isOp() {}

// String renders the step. Of a long table it shows the first entries.
func (o Balance) String() string {
	const shown = 4
	var b strings.Builder
	fmt.Fprintf(&b, "%s: eBPF translation of %d virtual addresses", o.Device, len(o.Services))
	for i, s := range o.Services {
		if i == shown {
			b.WriteString("\n  ...")
			break
		}
		fmt.Fprintf(&b, "\n  %s to %s", s.Virtual, s.Backend)
	}
	return b.String()
}
