package network

import (
	"fmt"
	"strings"

	"netdelta/result"
)

// IPTables hands a table to iptables-restore in one namespace. What the table held before is gone.
type IPTables struct {
	In Space
	// Family is that of the packets that pass the table; "" is IPv4.
	Family result.Family
	// Table is "filter" or "nat".
	Table string
	// Lines are in the form of iptables-save: chains (":INPUT DROP [0:0]"), then rules ("-A INPUT -s 198.19.0.0/16 -j ACCEPT").
	Lines []Line
}

// Line is a line of a table.
type Line string

// String is the line.
func (l Line) String() string { return string(l) }

func (IPTables) isOp() {}

// Program is the one that takes the table.
func (o IPTables) Program() string {
	if o.Family == result.IPv6 {
		return "ip6tables-restore"
	}
	return "iptables-restore"
}

// Text is what the program reads.
func (o IPTables) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%s\n", o.Table)
	for _, l := range o.Lines {
		b.WriteString(string(l))
		b.WriteByte('\n')
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// Cleared is the operation that leaves nothing in the table.
func (o IPTables) Cleared() IPTables {
	hooked := map[string][]Line{
		"filter": {":INPUT ACCEPT [0:0]", ":FORWARD ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]"},
		"nat":    {":PREROUTING ACCEPT [0:0]", ":INPUT ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]", ":POSTROUTING ACCEPT [0:0]"},
	}
	o.Lines = hooked[o.Table]
	return o
}

// String renders the table. Of a long one it shows the ends.
func (o IPTables) String() string {
	return fmt.Sprintf("%s: %s: *%s\n  %s\n  COMMIT", o.In, o.Program(), o.Table, strings.Join(ends(o.Lines), "\n  "))
}
