package servers

import (
	"net/netip"
	"strings"
	"testing"

	"netdelta/testbed/servers/server"
)

func TestParseNIC(t *testing.T) {
	given := netip.MustParsePrefix("10.0.0.200/28")
	for text, want := range map[string]NIC{
		"":                          {Mode: server.Macvlan},
		"macvlan":                   {Mode: server.Macvlan},
		"macvlan:eth1":              {Mode: server.Macvlan, Card: "eth1"},
		"ipvlan":                    {Mode: server.IPVlan},
		"ipvlan:eth1,10.0.0.200/28": {Mode: server.IPVlan, Card: "eth1", Addresses: given},
		"take:eth2,10.0.0.200/28":   {Mode: server.Take, Card: "eth2", Addresses: given},
		"vf:eth2/3":                 {Mode: server.VF, Card: "eth2", Function: 3},
		"take:eth2+eth3":            {Mode: server.Take, Card: "eth2+eth3"},
	} {
		if got, err := ParseNIC(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"eth1": "no such mode", "take": "has to be named", "take:": "has to be named", "vf:eth2": "by its card and its number", "vf:/1": "by its card",
		"vf:eth2/-1": "by its card", "ipvlan:eth1+eth2": "take:eth1+eth2", "take:eth1+": "each once", "macvlan:eth1+eth1": "each once", "ipvlan:eth1,10.0.0.200": "length of its prefix", ":eth1": "no such mode",
	} {
		if _, err := ParseNIC(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// TestWiresOf: each node has a run of the given addresses, and none has a network's own or its broadcast address.
func TestWiresOf(t *testing.T) {
	for _, c := range []struct {
		from        string
		nodes, want int
		first, last string // of the first wire, of the last
	}{
		{"10.0.0.200/28", 2, 3, "10.0.0.200 10.0.0.203", "10.0.0.202 10.0.0.205"}, // 200 to 206
		{"10.0.0.0/29", 3, 2, "10.0.0.1 10.0.0.3 10.0.0.5", "10.0.0.2 10.0.0.4 10.0.0.6"},
		{"10.0.0.0/24", 2, wires, "10.0.0.1 10.0.0.17", "10.0.0.16 10.0.0.32"},
		{"fd00::8/124", 2, 4, "fd00::8 fd00::c", "fd00::b fd00::f"},
	} {
		got, err := NIC{Addresses: netip.MustParsePrefix(c.from)}.wiresOf(c.nodes)
		if err != nil || len(got) != c.want {
			t.Errorf("%s: %d wires, %v; want %d", c.from, len(got), err, c.want)
			continue
		}
		for want, wire := range map[string][]netip.Prefix{c.first: got[0], c.last: got[len(got)-1]} {
			var names []string
			for _, a := range wire {
				names = append(names, a.Addr().String())
			}
			if strings.Join(names, " ") != want {
				t.Errorf("%s: a wire has %v, want %s", c.from, names, want)
			}
		}
	}
	if _, err := (NIC{Addresses: netip.MustParsePrefix("10.0.0.206/28")}).wiresOf(2); err == nil {
		t.Error("one address is enough for two nodes")
	}
}
