package path_test

import (
	"reflect"
	"testing"

	"netdelta/network"
	"netdelta/testbed"
)

// without is a plan's operations without one kind.
func without[T network.Op](p *network.Plan) {
	var rest []network.Op
	for _, op := range p.Ops {
		if _, is := op.(T); !is {
			rest = append(rest, op)
		}
	}
	p.Ops = rest
}

// Without their programs packets pass the stack of the node, and the ends of pairs that they should not pass.
func TestNotRedirected(t *testing.T) {
	for _, c := range []struct {
		network, protocol, says string
		to                      int
	}{
		{"ebpf-routed", "udp", "node0/veth1 sent ", 1},
		{"ebpf-routed", "tcp", "node1/veth2 sent ", 2},
		{"ebpf-vxlan", "tcp", "node0/veth1 sent ", 1},
	} {
		t.Run(c.network+"-"+c.protocol, func(t *testing.T) {
			o := open(t, misrouted(t, c.network, func(_ network.Topology, p *network.Plan) { without[network.Redirection](p) }), testbed.Spec{})
			told(t, newEnds(t, o, 0, c.to).proof(t, c.protocol, 1000, 50), c.says, "the plan has nothing pass it in that direction")
		})
	}
}

// Sockets that are not joined send over devices.
func TestNotJoined(t *testing.T) {
	o := open(t, misrouted(t, "sockmap", func(_ network.Topology, p *network.Plan) { without[network.JoinSockets](p) }), testbed.Spec{})
	p := newEnds(t, o, 0, 1).proof(t, "tcp", 1000, 50)
	told(t, p, "node0/veth0 carried 100% of the bytes", "not on the way")
	told(t, p, "sampled packets with payload", "past all devices")
	if len(p.Stray) != 8 {
		t.Errorf("stray %+v", p.Stray)
	}
}

// Joined sockets are no way for a network that says it routes.
func TestJoinedUnawares(t *testing.T) {
	joined := named(t, "sockmap")
	o := open(t, misrouted(t, "routed", func(top network.Topology, p *network.Plan) {
		for _, op := range joined.Build(top).Ops {
			if reflect.TypeOf(op) == reflect.TypeFor[network.JoinSockets]() {
				p.Ops = append(p.Ops, op)
			}
		}
	}), testbed.Spec{})
	told(t, newEnds(t, o, 0, 1).proof(t, "tcp", 10_000, 20), "node0/veth0 received ", "of payload pass it")
}
