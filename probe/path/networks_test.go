package path_test

import (
	"fmt"
	"slices"
	"testing"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// Each network proves its ways, in both families, on one node and across.
func TestNetworks(t *testing.T) {
	t.Parallel()
	for _, n := range network.Catalogue() {
		for _, family := range []result.Family{result.IPv4, result.IPv6} {
			t.Run(fmt.Sprint(n.Name, "-", family), func(t *testing.T) {
				if n.Name != "sriov" { // which takes cards that there are only once
					t.Parallel()
				}
				for _, outlive := range []bool{false, true} {
					o := open(t, n, testbed.Spec{Family: family, PodsOutlive: outlive})
					for to, place := range map[int]string{1: "same-node", 2: "cross-node"} {
						if place == "same-node" && outlive && n.NoSameNodeUnderSwap {
							continue
						}
						t.Run(fmt.Sprintf("%s-outlive-%v", place, outlive), func(t *testing.T) { proves(t, o, to) })
					}
				}
			})
		}
	}
}

// proves runs small, large and very large messages from the first pod to another.
func proves(t *testing.T, o testbed.Observer, to int) {
	e := newEnds(t, o, 0, to)
	defer e.close(t)
	for _, l := range []struct {
		protocol    string
		size, count int
	}{{"tcp", 64, 20}, {"udp", 64, 20}, {"udp", 1200, 20}, {"tcp", 100_000, 5}, {"tcp", 1_000_000, 2}} {
		p := e.proof(t, l.protocol, l.size, l.count)
		if !p.OK || len(p.Weak) > 0 || len(p.Stray) > 0 {
			t.Errorf("%d x %s of %d: not proved: %q weak %q stray %+v\n%+v", l.count, l.protocol, l.size, p.Findings, p.Weak, p.Stray, p.Hops)
		}
		plan := o.Plan()
		wrapped := slices.ContainsFunc(p.Hops, func(h result.PathHop) bool { return h.Encapsulated })
		want, least, most := "none", unit.Bytes(0), unit.Bytes(0)
		if wrapped {
			want, least, most = encapsulation(plan), plan.Overhead, plan.Overhead
		}
		if e := plan.Encryption; wrapped && e.Kind != "" {
			want, least, most = e.Wrap, plan.Overhead-e.Reserve+e.Least, plan.Overhead-e.Reserve+e.Most
		}
		// What is encrypted tells its overhead only by the counters, if the pod's device counts as many packets as the port: not
		// where trains are cut between the two, or where the pod has no device.
		uncounted := plan.Encryption.Kind != "" && packetsOf(p, network.RolePod) != packetsOf(p, network.RolePort)
		if p.Encapsulation != want || (p.Overhead < least || p.Overhead > most) && !(uncounted && p.Overhead == 0) {
			t.Errorf("%d x %s of %d: encapsulation %q of %d bytes, want %q of %d to %d", l.count, l.protocol, l.size, p.Encapsulation, p.Overhead, want, least, most)
		}
		if p.MTU < min(plan.PathMTU(0, to), 65535) || p.Sampled == 0 || p.Fragments != 0 {
			t.Errorf("%d x %s of %d: an MTU of %d, %d packets sampled, %d fragments", l.count, l.protocol, l.size, p.MTU, p.Sampled, p.Fragments)
		}
		full := plan.PathMTU(0, to)
		if wrapped {
			full += plan.Overhead
		}
		if l.size >= 100_000 && len(p.Hops) > 0 && (p.Largest > full || p.Largest < min(full-100, 10_000)) {
			t.Errorf("%d x %s of %d: the largest packet has %d bytes, the MTU is %d", l.count, l.protocol, l.size, p.Largest, full)
		}
		t.Logf("%d x %s of %d: %+v", l.count, l.protocol, l.size, p)
	}
}

// packetsOf is how many packets the first device of a role has sent, 0 where there is none.
func packetsOf(p result.Path, role network.Role) uint64 {
	for _, h := range p.Hops {
		if h.Role == string(role) && h.Sends {
			return h.Packets
		}
	}
	return 0
}
