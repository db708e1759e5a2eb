package network_test

import (
	"pgregory.net/rapid"

	"netdelta/network"
)

// checkPath follows a path from end to end.
func checkPath(t *rapid.T, p network.Plan, made map[network.Device]bool, from, to int) {
	path := p.Path(from, to, network.UDP)
	if len(path) < 2 {
		t.Fatalf("the path from pod %d to pod %d has %d devices", from, to, len(path))
	}
	for _, h := range path {
		if !made[h.Device] || h.Role == "" {
			t.Fatalf("%s on the path from pod %d to pod %d has not been made or has no role", h, from, to)
		}
	}
	first, last := path[0], path[len(path)-1]
	if first.In != p.Pods[from].In || !first.Sends || last.In != p.Pods[to].In || last.Sends {
		t.Fatalf("the path from pod %d to pod %d leads from %s to %s", from, to, first, last)
	}
	back := p.Path(to, from, network.UDP)
	if len(back) != len(path) {
		t.Fatalf("%d devices there, %d back", len(path), len(back))
	}
	if redirects(p) {
		return // a packet comes out at another end of a pair than its answer goes in
	}
	for i, h := range path {
		if b := back[len(back)-1-i]; b.Device != h.Device || b.Sends == h.Sends || b.Encapsulated != h.Encapsulated {
			t.Fatalf("there %s, back %s", h, b)
		}
	}
}
