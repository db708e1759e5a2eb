package path_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netdelta/internal/property"
	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/testbed"
)

// flow is what an observation's load moved.
func flow(o path.Observation) path.Flow {
	return path.Flow{Request: o.Request, Response: o.Response, Requests: o.Load.Requests, Responses: o.Load.Responses}
}

// Truthful counters balance, also where two cells share devices.
func TestTruthBalances(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		a := w.observation(t)
		w.load.Requests, w.load.Responses = w.load.Responses, w.load.Requests
		w.packets[0], w.packets[1] = w.packets[1], w.packets[0]
		b := w.observation(t)
		for d, first := range a.After.Counters {
			begin, end, sum := b.Before.Counters[d], b.After.Counters[d], first
			sum.SentPackets += end.SentPackets - begin.SentPackets
			sum.SentBytes += end.SentBytes - begin.SentBytes
			sum.ReceivedPackets += end.ReceivedPackets - begin.ReceivedPackets
			sum.ReceivedBytes += end.ReceivedBytes - begin.ReceivedBytes
			a.After.Counters[d] = sum
		}
		got := path.Balance(a.Before.Counters, a.After.Counters, nil, []path.Flow{flow(a), flow(b)}, nil)
		if len(got.Findings) > 0 || len(got.Weak) > 0 {
			t.Fatalf("%+v", got)
		}
	})
}

func TestBalanceFinds(t *testing.T) {
	t.Parallel()
	port, off := node(0, "eth0"), node(1, "quiet0")
	for name, c := range map[string]struct {
		alter       func(*path.Observation)
		finds, weak string
	}{
		"nothing": {func(*path.Observation) {}, "", ""},
		"a device that carried too little": {func(o *path.Observation) {
			a := o.After.Counters[port]
			a.SentBytes -= 200_000
			o.After.Counters[port] = a
		}, "node0/eth0 sent 842000 bytes in 1000 packets; the plan had 1000000 bytes of payload pass it", ""},
		"a device on no way": {func(o *path.Observation) {
			o.After.Counters[off] = plus(o.Before.Counters[off], true, 100, 100_000)
		}, "node1/quiet0, which is on no way that the plan says, carried 100000 bytes in 100 packets", ""},
		"a little of it": {func(o *path.Observation) { o.After.Counters[off] = plus(o.Before.Counters[off], true, 600, 60_000) }, "", ""},
		"a device that is not there": {func(o *path.Observation) {
			delete(o.Before.Counters, port)
			delete(o.After.Counters, port)
		}, "node0/eth0, on a way that the plan says, is not there", ""},
		"a device that vanished":           {func(o *path.Observation) { delete(o.After.Counters, port) }, "node0/eth0 vanished while", ""},
		"a device on no way that vanished": {func(o *path.Observation) { delete(o.After.Counters, off) }, "", "node1/quiet0 vanished while"},
		"a counter that wrapped": {func(o *path.Observation) {
			b, a := o.Before.Counters[port], o.After.Counters[port]
			a.SentBytes -= b.SentBytes + 10
			b.SentBytes = 1<<32 - 10
			o.Before.Counters[port], o.After.Counters[port] = b, a
		}, "", "node0/eth0 counts in 32 bits"},
		"a counter that wrapped more than once": {func(o *path.Observation) {
			o.Load.Requests, o.Load.Responses = 10<<32, 0
			for d, c := range o.After.Counters {
				b := o.Before.Counters[d]
				c.SentPackets, c.SentBytes = b.SentPackets+30e6, b.SentBytes+11<<32
				c.ReceivedPackets, c.ReceivedBytes = b.ReceivedPackets+30e6, b.ReceivedBytes+11<<32
				if d.Name == off.Name {
					c = b
				}
				o.After.Counters[d] = c
			}
			o.Before.Counters[port] = testbed.Counters{Index: 5, SentBytes: 5}
			o.After.Counters[port] = testbed.Counters{Index: 5, SentBytes: 1 << 30, SentPackets: 30e6}
		}, "", "node0/eth0 seems to count in 32 bits"},
	} {
		t.Run(name, func(t *testing.T) {
			o := one(t, "routed")
			c.alter(&o)
			got := path.Balance(o.Before.Counters, o.After.Counters, nil, []path.Flow{flow(o)}, nil)
			for _, v := range []struct {
				kind, want string
				got        []string
			}{{"findings", c.finds, got.Findings}, {"weak", c.weak, got.Weak}} {
				if said := strings.Join(v.got, "\n"); !strings.Contains(said, v.want) || v.want == "" && said != "" {
					t.Errorf("%s %q, want %q", v.kind, said, v.want)
				}
			}
		})
	}
	if got := path.Balance(nil, map[network.Device]testbed.Counters{{In: network.InSwitch(), Name: "sw0"}: {SentBytes: 1 << 40}}, nil, nil, nil); len(got.Findings)+len(got.Weak) > 0 {
		t.Errorf("the switch: %+v", got)
	}
}
