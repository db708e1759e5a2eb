package network

import (
	"fmt"
	"net/netip"
	"strings"
)

// Guard lets packets in through devices of one namespace by an eBPF program (tcx) that looks their source address up in one
// table of prefixes. What serves IPv6 itself (RFC 4861) always passes, and so does what is not IP.
type Guard struct {
	In Space
	// Devices are those whose incoming packets are looked at.
	Devices []string
	// Entries are the table: of those that match, the longest prefix counts. A packet that matches none is dropped.
	Entries []GuardEntry
}

// GuardEntry is what becomes of packets from a range of addresses: Accept or Drop.
type GuardEntry struct {
	From netip.Prefix
	Do   Verdict
}

func (Guard) isOp() {}

// String renders the step. Of a long table it shows the last entries, those that something may match.
func (o Guard) String() string {
	const shown = 4
	var b strings.Builder
	fmt.Fprintf(&b, "%s: eBPF guard on what comes in through %s, %d entries", o.In, strings.Join(o.Devices, ", "), len(o.Entries))
	from := max(0, len(o.Entries)-shown)
	if from > 0 {
		b.WriteString(", the last")
	}
	for _, e := range o.Entries[from:] {
		verb := "accept"
		if e.Do == Drop {
			verb = "drop"
		}
		fmt.Fprintf(&b, "\n  %s %s", e.From, verb)
	}
	return b.String()
}
