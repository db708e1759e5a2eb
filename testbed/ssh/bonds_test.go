package ssh_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"netdelta/result"
)

// bonded is a study whose levels are the MTU of taken cards, and by what a bond of them shares packets. Its connections send no more
// than is answered: streams fill their buffers, which an emulated guest takes long to empty.
const bonded = `study: bonded
baseline: host
networks: [host, vxlan]
placement: [cross-node]
workloads: [{tcp-rr: {message: [4KiB], connections: [16]}}]
factors: {mtu: [1500, 9000], link.count: [2], bond.mode: [balance-xor], bond.xmit_hash_policy: [layer2, layer3+4]}
testbed: {kind: ssh, nodes: 3, nic: "take:data+more"}
design: {burst: 20ms, builds: 1, rounds: 2, time_budget: 15m}
`

// TestBondsInGuests: the MTU of cards that are taken from three servers, and a bond of them with its hash, are levels of one run. By their
// addresses all packets between two servers share a link, by their ports they are spread over both. The cards come back as they were.
func TestBondsInGuests(t *testing.T) {
	g := newGuests(t, 3)
	var before []string
	for n := range g.booted {
		before = append(before, g.state(t, n))
	}
	p := newProgram(t, g.lan)
	run, said := p.run(t, bonded, "--builds", "1", "--nodes", g.nodes())
	contents, err := result.LoadTrials(filepath.Join(p.dir, "out"))
	must(t, err)
	cells := map[string]result.Cell{}
	for _, c := range run.Cells {
		cells[c.ID] = c
	}
	levels := map[string]bool{}
	for _, one := range contents.Trials {
		c := cells[one.Cell]
		levels[fmt.Sprint(c.Network, c.Params.MTU, c.Params.Conditions.BondHash)] = true
		if one.Failed != "" || one.Path == nil || !one.Path.OK {
			t.Errorf("%s: %s, %+v", one.Cell, one.Failed, one.Path)
		}
		busiest := 0.0
		for _, l := range one.Links {
			if strings.HasPrefix(l.Bond, "node0") {
				busiest = max(busiest, l.Share)
			}
		}
		if spread := c.Params.Conditions.BondHash == "layer3+4"; spread && busiest > 0.95 || !spread && busiest < 0.99 {
			t.Errorf("%s: the busiest link of the client's bond carried %.3f of what it sent", one.Cell, busiest)
		}
	}
	if len(levels) != 8 { // two networks at two MTUs by two hashes
		t.Errorf("there are trials of %v\n%s", levels, said)
	}
	for _, s := range run.Environment.Servers {
		if s.Mode != "take" || s.Card != "data" || s.Interrupts == "" || len(s.Further) != 1 || s.Further[0].Card != "more" || s.Further[0].Interrupts == "" {
			t.Errorf("the server is %+v", s)
		}
	}
	g.unchanged(t, before)
}
