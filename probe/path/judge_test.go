package path_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netdelta/internal/property"
	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// world is a plan, two of its pods, and a load of datagrams between them.
type world struct {
	plan     network.Plan
	from, to int
	load     path.Load
	packets  [2]int // of requests and of responses
	size     int    // of the payload of each
}

// drawWorld draws a plan and a load that is large enough for a tenth of it to stand out without a sample.
func drawWorld(t *rapid.T) world {
	n := rapid.SampledFrom(network.Catalogue()).Draw(t, "network")
	family := rapid.SampledFrom(families()).Draw(t, "family")
	top, err := network.NewTopology(network.Layout{
		Nodes: rapid.IntRange(1, 4).Draw(t, "nodes"), PodsPerNode: rapid.IntRange(2, 4).Draw(t, "pods"), Family: family,
		PodsOutlive: rapid.Bool().Draw(t, "outlive"),
		Conditions:  result.Conditions{Encryption: rapid.SampledFrom([]string{"", result.WireGuard, result.IPsec}).Draw(t, "encryption")},
	})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := n.Plan(top)
	var excluded *network.NotPossibleError
	if errors.As(err, &excluded) {
		top.Conditions = result.Conditions{}
		plan, err = n.Plan(top)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := world{plan: plan, from: rapid.IntRange(0, len(plan.Pods)-1).Draw(t, "from")}
	w.to = rapid.IntRange(0, len(plan.Pods)-1).Filter(func(i int) bool { return i != w.from }).Draw(t, "to")
	w.size = rapid.IntRange(1, 1300).Draw(t, "size")
	w.packets[0] = rapid.IntRange(1500, 5000).Draw(t, "requests")
	w.packets[1] = rapid.IntRange(0, w.packets[0]).Draw(t, "responses")
	w.load = path.Load{
		Protocol: network.UDP, Server: plan.Endpoint(w.from, w.to, 20000), Message: unit.Bytes(w.size),
		Requests: unit.Bytes(w.size * w.packets[0]), Responses: unit.Bytes(w.size * w.packets[1]),
	}
	return w
}

// ways are the ones of request and response.
func (w world) ways() [2][]network.Hop {
	return [2][]network.Hop{w.plan.Path(w.from, w.to, network.UDP), w.plan.Path(w.to, w.from, network.UDP)}
}

// bare is the length of a frame with a datagram, without any encapsulation.
func (w world) bare() int {
	if w.load.Server.Addr().Is6() {
		return 14 + 40 + 8 + w.size
	}
	return 14 + 20 + 8 + w.size
}

// observation is what truthful devices show: each has counted what passed it, from random beginnings, some of them without
// the Ethernet header, and quiet ones have seen the odd request for an address.
func (w world) observation(t *rapid.T) path.Observation {
	ways := w.ways()
	o := path.Observation{
		Request: ways[0], Response: ways[1], PathMTU: w.plan.PathMTU(w.from, w.to), Overhead: w.plan.Overhead, Encapsulation: encapsulation(w.plan),
		Encryption: w.plan.Encryption, Private: []netip.Addr{w.plan.Pods[w.from].Address, w.plan.Pods[w.to].Address},
		Load: w.load, Servers: []netip.Addr{w.load.Server.Addr()},
		Before: reading(), After: reading(), Fit: path.Fit{Largest: w.plan.PathMTU(w.from, w.to)},
	}
	begin := func(d network.Device) {
		if _, there := o.Before.Counters[d]; !there {
			c := testbed.Counters{
				Index: 5, SentPackets: rapid.Uint64Max(1<<40).Draw(t, "begin"), SentBytes: rapid.Uint64Max(1<<50).Draw(t, "begin"),
				ReceivedPackets: rapid.Uint64Max(1<<40).Draw(t, "begin"), ReceivedBytes: rapid.Uint64Max(1<<50).Draw(t, "begin"),
			}
			o.Before.Counters[d], o.After.Counters[d] = c, c
		}
	}
	for i, way := range ways {
		for _, h := range way {
			begin(h.Device)
			each := w.bare()
			switch {
			case h.Encapsulated:
				least, most := w.plan.Adds(h)
				each += rapid.IntRange(int(least), int(most)).Draw(t, "added")
			case h.Role == network.RoleEncapsulation || h.Role == network.RoleBridge:
				each -= 14
			}
			if h.Framed {
				each += 14
			}
			o.After.Counters[h.Device] = plus(o.After.Counters[h.Device], h.Sends, w.packets[i], w.packets[i]*each)
		}
	}
	for i := range w.plan.Nodes {
		quiet := node(i, "quiet0")
		begin(quiet)
		requests := rapid.IntRange(0, 10).Draw(t, "quiet")
		o.After.Counters[quiet] = plus(o.After.Counters[quiet], true, requests, 42*requests)
	}
	for _, s := range w.plan.Spaces() {
		made := testbed.Stack{FragmentsMade: rapid.Uint64().Draw(t, "fragments")}
		o.Before.Stacks[s], o.After.Stacks[s] = made, made
	}
	if rapid.Bool().Draw(t, "sampled") {
		o.Sample = w.sample()
	} else {
		o.Sample.Lacks, o.Fit = "CAP_NET_RAW", path.Fit{Lacks: "a packet sample"}
	}
	return o
}

func reading() path.Reading {
	return path.Reading{Counters: map[network.Device]testbed.Counters{}, Stacks: map[network.Space]testbed.Stack{}}
}

// plus is a device after it has carried something.
func plus(c testbed.Counters, sends bool, packets, bytes int) testbed.Counters {
	if sends {
		c.SentPackets += uint64(packets)
		c.SentBytes += uint64(bytes)
	} else {
		c.ReceivedPackets += uint64(packets)
		c.ReceivedBytes += uint64(bytes)
	}
	return c
}

// sample has a request and a response on each device.
func (w world) sample() path.Sample {
	s := path.Sample{Spaces: w.plan.Spaces()}
	client, server := w.plan.Pods[w.from].Address, w.load.Server.Addr()
	between := [2]netip.Addr{w.plan.Nodes[w.plan.Pods[w.from].Node], w.plan.Nodes[w.plan.Pods[w.to].Node]}
	for i, way := range w.ways() {
		packet := ipPacket(17, client, server, udp(3000, w.load.Server.Port(), make([]byte, w.size)))
		if i == 1 {
			packet = ipPacket(17, server, client, udp(w.load.Server.Port(), 3000, make([]byte, w.size)))
			slices.Reverse(between[:])
		}
		for _, h := range way {
			if h.Unseen {
				continue
			}
			frame := wrapped(w.plan, h, between[0], between[1], packet)
			s.Packets = append(s.Packets, testbed.Packet{
				Device: h.Device, Outgoing: h.Sends, Length: unit.Bytes(len(frame)), Head: frame[:min(len(frame), 192)],
			})
		}
	}
	return s
}

// What is as the plan says is proved, whatever the plan.
func TestTruthIsProved(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		o := w.observation(t)
		p := path.Judge(o)
		if !p.OK || len(p.Stray) > 0 {
			t.Fatalf("findings %q, stray %+v", p.Findings, p.Stray)
		}
		if weak := o.Sample.Lacks != ""; weak != (len(p.Weak) > 0) {
			t.Errorf("weak %q", p.Weak)
		}
		if len(p.Hops) != len(o.Request) || p.Payload != w.load.Requests+w.load.Responses {
			t.Errorf("%d hops, payload %d", len(p.Hops), p.Payload)
		}
		least, most, wrap := unit.Bytes(0), unit.Bytes(0), "none"
		for _, h := range o.Request {
			if h.Encapsulated && h.Role == network.RolePort {
				least, most = w.plan.Adds(h)
				wrap = encapsulation(w.plan)
			}
			if h.Encrypted {
				wrap = w.plan.Encryption.Wrap
			}
		}
		// Where the underlay's port is all there is, nothing smaller is there to hold packets against that can't be read.
		alone := !slices.ContainsFunc(o.Request, func(h network.Hop) bool { return h.Role == network.RolePod })
		if (p.Overhead < least || p.Overhead > most) && !(alone && p.Overhead == 0) {
			t.Errorf("overhead %d, the plan's is %d to %d", p.Overhead, least, most)
		}
		if o.Sample.Lacks == "" && p.Encapsulation != wrap {
			t.Errorf("encapsulation %q, want %q", p.Encapsulation, wrap)
		}
	})
}

// Moving more than a tenth of what a device carried to another is found, and both are named where most was moved.
func TestMisroutedShareIsFound(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		o := w.observation(t)
		h := rapid.SampledFrom(o.Request).Draw(t, "hop")
		share := rapid.Float64Range(0.11, 1).Draw(t, "share")
		stray := network.Device{In: h.In, Name: "eth9"}
		b, a := o.Before.Counters[h.Device], o.After.Counters[h.Device]
		o.Before.Counters[stray] = testbed.Counters{Index: 9}
		moved := testbed.Counters{Index: 9}
		for _, v := range []struct {
			before           uint64
			planned, instead *uint64
		}{
			{b.SentPackets, &a.SentPackets, &moved.SentPackets}, {b.SentBytes, &a.SentBytes, &moved.SentBytes},
			{b.ReceivedPackets, &a.ReceivedPackets, &moved.ReceivedPackets},
			{b.ReceivedBytes, &a.ReceivedBytes, &moved.ReceivedBytes},
		} {
			*v.instead = uint64(share * float64(*v.planned-v.before))
			*v.planned -= *v.instead
		}
		o.After.Counters[h.Device], o.After.Counters[stray] = a, moved
		p := path.Judge(o)
		if p.OK {
			t.Fatalf("%.0f%% of what %s carries went over %s: taken for right", 100*share, h.Device, stray)
		}
		said := strings.Join(p.Findings, "\n")
		if !strings.Contains(said, stray.String()+" carried") {
			t.Errorf("%s is not named:\n%s", stray, said)
		}
		if share == 1 && !strings.Contains(said, "the plan says "+h.Device.String()) {
			t.Errorf("%s is not named:\n%s", h.Device, said)
		}
	})
}

// one is a fixed observation of two pods across nodes.
func one(t *testing.T, name string) path.Observation {
	t.Helper()
	top, err := network.NewTopology(network.Layout{Nodes: 2, PodsPerNode: 1})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := named(t, name).Plan(top)
	if err != nil {
		t.Fatal(err)
	}
	w := world{plan: plan, to: 1, size: 1000, packets: [2]int{1000, 1000}}
	w.load = path.Load{
		Protocol: network.UDP, Server: plan.Endpoint(0, 1, 20000), Message: 1000, Requests: 1_000_000, Responses: 1_000_000,
	}
	o := rapid.Custom(w.observation).Example(1)
	o.Sample, o.Fit = w.sample(), path.Fit{Largest: plan.PathMTU(0, 1)}
	return o
}

// Counters that wrap, devices that vanish and such that begin anew.
func TestCountersThatBreakOff(t *testing.T) {
	port, veth, off := node(0, "eth0"), node(1, "veth1"), node(1, "quiet0")
	for name, c := range map[string]struct {
		alter     func(*path.Observation)
		ok        bool
		finds     string
		weakening string
	}{
		"bytes wrap at 32 bits": {func(o *path.Observation) {
			b, a := o.Before.Counters[port], o.After.Counters[port]
			moved := a.SentBytes - b.SentBytes
			b.SentBytes = 1<<32 - 500_000
			a.SentBytes = moved - 500_000
			o.Before.Counters[port], o.After.Counters[port] = b, a
		}, true, "", "node0/eth0 counts in 32 bits and went past its end"},
		"a stray's counter wraps": {func(o *path.Observation) {
			o.Before.Counters[off] = testbed.Counters{Index: 9, SentBytes: 1<<32 - 100}
			o.After.Counters[off] = testbed.Counters{Index: 9, SentBytes: 500_000, SentPackets: 500}
		}, false, "node1/quiet0 carried 24% of the bytes", "node1/quiet0 counts in 32 bits"},
		"on the way, gone": {func(o *path.Observation) { delete(o.After.Counters, veth) }, false, "node1/veth1 vanished while it was watched", ""},
		"on the way, never there": {func(o *path.Observation) {
			delete(o.Before.Counters, veth)
			delete(o.After.Counters, veth)
		}, false, "node1/veth1, on the way that the plan says, is not there", ""},
		"on the way, made anew": {func(o *path.Observation) {
			a := o.After.Counters[port]
			a.Index++
			o.After.Counters[port] = a
		}, false, "node0/eth0 was made anew while it was watched", ""},
		"on the way, made": {func(o *path.Observation) { delete(o.Before.Counters, port) }, false, "node0/eth0 was made while it was watched", ""},
		"on the way, set back": {func(o *path.Observation) {
			o.Before.Counters[port] = testbed.Counters{Index: 5, SentPackets: 3_000_000, SentBytes: 3_000_000_000}
			o.After.Counters[port] = testbed.Counters{Index: 5, SentPackets: 1000, SentBytes: 1_092_000}
		}, false, "node0/eth0 was made anew, or its counters were set back, while", ""},
		"off the way, gone":      {func(o *path.Observation) { delete(o.After.Counters, off) }, true, "", "node1/quiet0 vanished while"},
		"off the way, made anew": {func(o *path.Observation) { o.After.Counters[off] = testbed.Counters{Index: 77, SentBytes: 1 << 40} }, true, "", "node1/quiet0 was made anew while"},
		"off the way, made, and busy": {func(o *path.Observation) {
			delete(o.Before.Counters, off)
			o.After.Counters[off] = testbed.Counters{Index: 9, SentPackets: 10, SentBytes: 900_000}
		}, false, "node1/quiet0 carried", "node1/quiet0 was made while"},
		"a device of the switch, gone": {func(o *path.Observation) {
			o.Before.Counters[network.Device{In: network.InSwitch(), Name: "x"}] = testbed.Counters{}
		}, true, "", ""},
		"no counters at all": {func(o *path.Observation) { o.Before, o.After = path.Reading{}, path.Reading{} }, false, "node0/eth0, on the way", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := one(t, "routed")
			c.alter(&o)
			p := path.Judge(o)
			if p.OK != c.ok {
				t.Errorf("OK is %v: %q", p.OK, p.Findings)
			}
			if said := strings.Join(p.Findings, "\n"); !strings.Contains(said, c.finds) {
				t.Errorf("findings %q, want %q", said, c.finds)
			}
			if said := strings.Join(p.Weak, "\n"); !strings.Contains(said, c.weakening) || c.weakening == "" && said != "" {
				t.Errorf("weak %q, want %q", said, c.weakening)
			}
		})
	}
}

// Where measurements share a namespace, a late datagram of one that its sender had to cut is no fault of another. Whose it is only its first
// fragment tells.
func TestFragmentsOfOthers(t *testing.T) {
	port := node(0, "eth0")
	// later turns a sampled packet into a later fragment of the same packet.
	later := func(p testbed.Packet) testbed.Packet {
		p.Head = slices.Concat(p.Head[:20], []byte{0, 0x10}, p.Head[22:])
		return p
	}
	for name, c := range map[string]struct {
		elsewhere, first, ok bool
	}{
		"of another server":                          {true, true, true},
		"of another server, without the first piece": {true, false, false},
		"of the load":                                {false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := one(t, "routed")
			at := slices.IndexFunc(o.Sample.Packets, func(p testbed.Packet) bool { return p.Device == port })
			p := o.Sample.Packets[at]
			p.Head = slices.Concat(p.Head[:18], []byte{0, 7, 0x20, 0}, p.Head[22:]) // packet 7, more of which follows
			if c.elsewhere {
				const ports = 34 // behind the headers of Ethernet and IPv4
				p.Head = slices.Concat(p.Head[:ports], []byte{1, 1, 2, 2}, p.Head[ports+4:])
			}
			if c.first {
				o.Sample.Packets = append(o.Sample.Packets, p)
			}
			o.Sample.Packets = append(o.Sample.Packets, later(p))
			stack := o.Before.Stacks[network.InNode(0)]
			stack.Reassembled++
			o.After.Stacks[network.InNode(0)] = stack
			if got := path.Judge(o); got.OK != c.ok {
				t.Errorf("OK is %v, findings %q", got.OK, got.Findings)
			}
		})
	}
}

// What is wrong with packets is found where the counters look right.
func TestWhatASampleShows(t *testing.T) {
	port := node(0, "eth0")
	onPort := func(o *path.Observation, f func(*testbed.Packet)) {
		for i := range o.Sample.Packets {
			if o.Sample.Packets[i].Device == port {
				f(&o.Sample.Packets[i])
			}
		}
	}
	for name, c := range map[string]struct {
		alter func(*path.Observation)
		finds string
	}{
		"a bare packet in a tunnel": {func(o *path.Observation) {
			onPort(o, func(p *testbed.Packet) { p.Head = p.Head[50:] })
		}, "node0/eth0: 2 of 2 sampled packets had the encapsulation none; the plan says vxlan"},
		"a packet that is too large": {func(o *path.Observation) {
			onPort(o, func(p *testbed.Packet) { p.Head = slices.Concat(p.Head[:16], []byte{6, 0}, p.Head[18:]) }) // 1536
		}, "node0/eth0 carried a packet of 1536 bytes; the plan's MTU there is 1500"},
		"a train of segments that are too large": {func(o *path.Observation) {
			onPort(o, func(p *testbed.Packet) { p.Length, p.Segment = 60000, 1500 })
		}, "node0/eth0 carried a packet of 1578 bytes"},
		"a fragment of the outer packet": {func(o *path.Observation) {
			onPort(o, func(p *testbed.Packet) { p.Head = slices.Concat(p.Head[:20], []byte{0x20, 0}, p.Head[22:]) })
		}, "IP fragments among the sampled packets: 2 on node0/eth0"},
		"another overhead": {func(o *path.Observation) { o.Overhead = 54 }, "added 50 to 50 bytes; the plan says 54"},
		"a stack that refused": {func(o *path.Observation) {
			o.After.Stacks[network.InNode(1)] = testbed.Stack{FragmentationRefused: 3 + o.Before.Stacks[network.InNode(1)].FragmentationRefused}
		}, "node1 refused 3 packets that were too large"},
		"what does not fit": {func(o *path.Observation) { o.Fit.Findings = []string{"it does not fit"} }, "it does not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			o := one(t, "vxlan")
			if p := path.Judge(o); !p.OK {
				t.Fatalf("before: %q", p.Findings)
			}
			c.alter(&o)
			p := path.Judge(o)
			if said := strings.Join(p.Findings, "\n"); p.OK || !strings.Contains(said, c.finds) {
				t.Errorf("findings %q, want %q", said, c.finds)
			}
		})
	}
	t.Run("nothing of the load", func(t *testing.T) {
		o := one(t, "vxlan")
		o.Sample.Packets = nil
		if p := path.Judge(o); !p.OK || !slices.Equal(p.Weak, []string{"the sample of 0 packets (0 more were missed) holds none of the load"}) {
			t.Errorf("findings %q, weak %q", p.Findings, p.Weak)
		}
	})
	t.Run("a packet that a queue dropped, and a foreign one in its place", func(t *testing.T) {
		o := one(t, "vxlan")
		pod, port := o.Request[0].Device, node(0, "eth0")
		sent := o.After.Counters[port].SentPackets - o.Before.Counters[port].SentPackets
		o.After.Counters[pod] = plus(o.After.Counters[pod], true, 1, 100*int(sent))
		o.After.Counters[port] = plus(o.After.Counters[port], true, 1, 42)
		if p := path.Judge(o); !p.OK {
			t.Errorf("findings %q", p.Findings)
		}
	})
	t.Run("what serves the network itself is no load", func(t *testing.T) {
		o := one(t, "vxlan")
		stray := node(1, "quiet0")
		report := ethernet(ipPacket(58, netip.MustParseAddr("fe80::1"), netip.MustParseAddr("ff02::16"), make([]byte, 100)))
		c := o.Before.Counters[stray]
		for range 3000 {
			c = plus(c, true, 1, len(report))
			o.Sample.Packets = append(o.Sample.Packets, testbed.Packet{Device: stray, Outgoing: true, Length: unit.Bytes(len(report)), Head: report})
		}
		o.After.Counters[stray] = c
		if p := path.Judge(o); !p.OK {
			t.Errorf("findings %q", p.Findings)
		}
		o.Sample.Packets = o.Sample.Packets[:len(o.Sample.Packets)-1500]
		if p := path.Judge(o); p.OK {
			t.Error("the half of it that was not seen was taken for the same")
		}
	})
}

// The same observation gives the same answer.
func TestJudgeIsPure(t *testing.T) {
	o := one(t, "vxlan-routed")
	o.After.Counters[node(0, "x")], o.After.Counters[node(0, "y")] = testbed.Counters{SentPackets: 1, SentBytes: 1 << 20}, testbed.Counters{SentPackets: 1, SentBytes: 1 << 20}
	first := path.Judge(o)
	for range 20 {
		if again := path.Judge(o); !slices.Equal(again.Findings, first.Findings) || !slices.Equal(again.Stray, first.Stray) {
			t.Fatalf("%+v, then %+v", first, again)
		}
	}
	if want := []string{"node0/x", "node0/y"}; len(first.Stray) != 2 || !slices.EqualFunc(first.Stray, want, func(h result.PathHop, d string) bool { return h.Device == d }) {
		t.Errorf("stray %+v", first.Stray)
	}
}

// On nodes as they are found others' packets pass devices, and the load's own must not pass those off the way.
func TestAmongOthers(t *testing.T) {
	o := one(t, "routed")
	o.Crowded = true
	if p := path.Judge(o); !p.OK || len(p.Weak) > 0 {
		t.Errorf("truth: findings %q, weak %q", p.Findings, p.Weak)
	}
	var beneath []testbed.Packet
	for _, p := range o.Sample.Packets {
		if p.Device == node(0, "eth0") {
			p.Device = node(0, "link0")
			beneath = append(beneath, p)
		}
	}
	o.Sample.Packets = append(o.Sample.Packets, beneath...)
	if p := path.Judge(o); !p.OK {
		t.Errorf("what passes the card passes the link beneath it: findings %q", p.Findings)
	}
	o.Sample.Packets = append(o.Sample.Packets, beneath...)
	if p := path.Judge(o); p.OK || !strings.Contains(strings.Join(p.Findings, "\n"), "node0/link0 carried") {
		t.Errorf("as many again that passed another device alone: findings %q", p.Findings)
	}
	o.Sample = path.Sample{Lacks: "CAP_NET_RAW"}
	if p := path.Judge(o); !strings.Contains(strings.Join(p.Weak, "\n"), "other devices of the nodes is not known") {
		t.Errorf("without a sample: weak %q", p.Weak)
	}
}
