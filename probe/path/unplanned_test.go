package path_test

import (
	"encoding/binary"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/testbed"
	"netdelta/unit"
)

// A cluster of two nodes, with a pod on each and a second card in each node.
const (
	clientNode, serverNode = "10.77.0.11", "10.77.0.12"
	clientPod, serverPod   = "10.244.1.5", "10.244.2.3"
	serviceAt              = "10.96.0.9"
	serverPort             = 20001
	exchanged              = 50
	message                = 400
)

// seen is an observation in the making.
type seen struct {
	testbed.Observation
	load path.Load
}

// newSeen is a way between two nodes that nothing has passed yet.
func newSeen(reach testbed.Reach, called string) *seen {
	s := &seen{}
	s.Reach = reach
	s.Called, s.Backend = netip.MustParseAddrPort(called), netip.AddrPortFrom(netip.MustParseAddr(serverPod), serverPort)
	stand := func(pod, node, name string, in, on network.Space) testbed.PathEnd {
		return testbed.PathEnd{Pod: name, Node: name, Address: netip.MustParseAddr(pod), NodeAddress: netip.MustParseAddr(node), In: in, On: on}
	}
	s.Client = stand(clientPod, clientNode, "w1", testbed.ClientPod(), testbed.ClientNode())
	s.Server = stand(serverPod, serverNode, "w2", testbed.ServerPod(), testbed.ServerNode())
	s.Spaces = map[network.Space]testbed.ObservedSpace{
		testbed.ClientNode(): nodePlace("w1", clientNode, clientPod, serverNode, serverPod),
		testbed.ServerNode(): nodePlace("w2", serverNode, serverPod, clientNode, clientPod),
		testbed.ClientPod():  podPlace("pod-client", clientPod, serverPod, s.Called.Addr().String()),
		testbed.ServerPod():  podPlace("pod-server", serverPod, clientPod),
	}
	s.load = path.Load{Protocol: network.UDP, Server: s.Called, Requests: exchanged * message, Responses: exchanged * message, Message: message}
	return s
}

func prefix(text string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(text)} }

func route(to, device string) testbed.Route {
	return testbed.Route{To: netip.MustParseAddr(to), Device: device}
}

// nodePlace is a node with a bridge, a tunnel and two cards.
func nodePlace(name, own, pod, other, otherPod string) testbed.ObservedSpace {
	return testbed.ObservedSpace{
		Name: name,
		Interfaces: []testbed.Interface{
			{Index: 1, Name: "lo", Kind: "device"}, {Index: 2, Name: "eth0", Kind: "device", MTU: 1500, Addresses: prefix(own + "/24")},
			{Index: 3, Name: "eth1", Kind: "device", MTU: 1500, Addresses: prefix("192.0.2.1/24")}, {Index: 4, Name: "cni0", Kind: "bridge", MTU: 1450},
			{Index: 5, Name: "veth1", Kind: "veth", Master: "cni0"}, {Index: 6, Name: "flannel.1", Kind: "vxlan", Port: 8472, Network: 1},
		},
		Routes: []testbed.Route{route(other, "eth0"), route(pod, "cni0"), route(otherPod, "flannel.1")},
		Before: map[string]testbed.Counters{}, After: map[string]testbed.Counters{},
	}
}

// podPlace is a pod that reaches the addresses by its device.
func podPlace(name, own string, reached ...string) testbed.ObservedSpace {
	p := testbed.ObservedSpace{
		Name: name, Lacks: "an agent", Interfaces: []testbed.Interface{{Index: 2, Name: "eth0", Kind: "veth", MTU: 1450, Addresses: prefix(own + "/24")}},
		Before: map[string]testbed.Counters{"eth0": {}}, After: map[string]testbed.Counters{"eth0": {
			SentPackets: exchanged, SentBytes: exchanged * (message + 42), ReceivedPackets: exchanged, ReceivedBytes: exchanged * (message + 42),
		}},
	}
	for _, to := range reached {
		p.Routes = append(p.Routes, route(to, "eth0"))
	}
	return p
}

// through has datagrams between two addresses pass a device, wrapped by a function.
func (s *seen) through(on network.Space, device string, outgoing bool, from, to string, wrap func([]byte) []byte) *seen {
	return s.times(exchanged, on, device, outgoing, from, to, wrap)
}

func (s *seen) times(count int, on network.Space, device string, outgoing bool, from, to string, wrap func([]byte) []byte) *seen {
	a, b := netip.MustParseAddrPort(from), netip.MustParseAddrPort(to)
	frame := ethernet(wrap(ipPacket(17, a.Addr(), b.Addr(), udp(a.Port(), b.Port(), make([]byte, message)))))
	p := s.Spaces[on]
	for range count {
		p.Packets = append(p.Packets, testbed.Packet{
			Device: network.Device{In: on, Name: device}, Outgoing: outgoing, Length: unit.Bytes(len(frame)), Head: frame[:min(len(frame), 192)],
		})
	}
	s.Spaces[on] = p
	return s
}

// exchange has requests and their answers pass a device.
func (s *seen) exchange(on network.Space, device string, outgoing bool, from, to string, there, back func([]byte) []byte) *seen {
	return s.through(on, device, outgoing, from, to, there).through(on, device, !outgoing, to, from, back)
}

func bare(b []byte) []byte { return b }

// inVxlan wraps packets as Flannel does.
func inVxlan(from, to string) func([]byte) []byte {
	return func(b []byte) []byte {
		header := binary.BigEndian.AppendUint32([]byte{8, 0, 0, 0}, 1<<8)
		return ipPacket(17, netip.MustParseAddr(from), netip.MustParseAddr(to), udp(40000, 8472, append(header, ethernet(b)...)))
	}
}

const (
	client  = clientPod + ":40000"
	server  = serverPod + ":20001"
	service = serviceAt + ":80"
	masked  = "10.77.0.11:40000"
)

// whole is a load in VXLAN from pod to pod, as it is seen on all devices of both nodes.
func whole(s *seen, from, calls string) *seen {
	there, back := inVxlan(clientNode, serverNode), inVxlan(serverNode, clientNode)
	for _, device := range []string{"veth1", "cni0"} {
		s.exchange(testbed.ClientNode(), device, false, client, calls, bare, bare)
		s.exchange(testbed.ServerNode(), device, true, from, server, bare, bare)
	}
	s.exchange(testbed.ClientNode(), "flannel.1", true, from, server, bare, bare)
	s.exchange(testbed.ServerNode(), "flannel.1", false, from, server, bare, bare)
	s.exchange(testbed.ClientNode(), "eth0", true, from, server, there, back)
	return s.exchange(testbed.ServerNode(), "eth0", false, from, server, there, back)
}

// What is said of ways of every kind.
func TestJudgeObservation(t *testing.T) {
	expecting := func(s *seen, e testbed.Encapsulation) *seen { s.Expect = e; return s }
	through := func(s *seen, card string) *seen { s.Via = card; return s }
	sized := func(s *seen, mtu unit.Bytes) *seen { s.ExpectMTU = mtu; return s }
	other := func(s *seen, device string) *seen {
		s.exchange(testbed.ClientNode(), device, true, client, server, bare, bare)
		return s.exchange(testbed.ServerNode(), device, false, client, server, bare, bare)
	}
	for name, c := range map[string]struct {
		seen  *seen
		wrap  string
		finds []string // parts of the findings, in no order
		notes []string
		weak  []string
	}{
		"pod in vxlan":       {whole(newSeen(testbed.ReachPod, server), client, server), "vxlan", nil, []string{"w1/eth0: vxlan of network 1 to UDP port 8472 from 10.77.0.11 to 10.77.0.12"}, nil},
		"as expected":        {expecting(whole(newSeen(testbed.ReachPod, server), client, server), testbed.InVXLAN), "vxlan", nil, nil, nil},
		"not as expected":    {expecting(whole(newSeen(testbed.ReachPod, server), client, server), testbed.InClear), "vxlan", []string{"w1/eth0: the change did not take effect: 100 of 100", "w2/eth0: the change did not take effect"}, nil, nil},
		"level of 1500":      {sized(whole(newSeen(testbed.ReachPod, server), client, server), 1500), "vxlan", nil, []string{"the path's MTU is 1450 bytes"}, nil},
		"level of 9000":      {sized(whole(newSeen(testbed.ReachPod, server), client, server), 9000), "vxlan", []string{"the path's MTU is 1450 bytes: the cluster is not as level mtu=9000 has it"}, nil, nil},
		"level of 1280":      {sized(whole(newSeen(testbed.ReachPod, server), client, server), 1280), "vxlan", []string{"the cluster is not as level mtu=1280 has it"}, nil, nil},
		"service":            {whole(newSeen(testbed.ReachService, service), client, service), "vxlan", nil, []string{"requests to 10.96.0.9:80 were translated to 10.244.2.3:20001 (DNAT) on w1", "the server sees its client's own address"}, nil},
		"service, masked":    {whole(newSeen(testbed.ReachService, service), masked, service), "vxlan", nil, []string{"the server takes its client for 10.77.0.11"}, nil},
		"service by sockets": {whole(newSeen(testbed.ReachService, service), client, server), "vxlan", nil, []string{"the client's socket was given 10.244.2.3:20001"}, nil},
		"in clear":           {other(newSeen(testbed.ReachPod, server), "eth0"), "none", nil, nil, nil},
		"by the other card": {
			other(newSeen(testbed.ReachPod, server), "eth1"), "",
			[]string{"w1/eth0 sent 0 bytes of the load in 0 packets; 20000 bytes of payload must have passed it; it was seen on w1/eth1", "w1/eth1 carried", "w2/eth1 carried"}, nil, nil,
		},
		"by the other card, as it must": {through(other(newSeen(testbed.ReachPod, server), "eth1"), "eth1"), "none", nil, nil, nil},
		"in vxlan by the card it must":  {through(whole(newSeen(testbed.ReachPod, server), client, server), "eth0"), "vxlan", nil, nil, nil},
		"by the card of the route": {
			through(other(newSeen(testbed.ReachPod, server), "eth0"), "eth1"), "",
			[]string{
				"w1/eth1 sent 0 bytes of the load in 0 packets; 20000 bytes of payload must have passed it; it was seen on w1/eth0", "w1/eth1 received", "w2/eth1 sent", "w2/eth1 received",
				"w1/eth0 carried 44200 bytes of the load in 100 packets; it must leave by eth1, as the study has it", "w2/eth0 carried",
			}, nil, nil,
		},
		"partly by the other card": {
			other(newSeen(testbed.ReachPod, server), "eth0").times(exchanged/5, testbed.ClientNode(), "eth1", true, client, server, bare), "none",
			[]string{"w1/eth1 carried 4420 bytes of the load in 10 packets; the route to the other node is by eth0"}, nil, nil,
		},
		"mixed": {
			other(newSeen(testbed.ReachPod, server), "eth0").times(exchanged/5, testbed.ClientNode(), "eth0", true, client, server, inVxlan(clientNode, serverNode)), "none",
			[]string{"10 of 110 sampled packets had the encapsulation vxlan, and the others none"}, nil, nil,
		},
		"wrapped by strangers": {
			whole(newSeen(testbed.ReachPod, server), client, server).times(1, testbed.ClientNode(), "eth0", true, client, server, inVxlan("192.0.2.7", serverNode)), "vxlan",
			[]string{"from 192.0.2.7 to 10.77.0.12, which are not the two nodes"}, nil, nil,
		},
		"service not translated": {
			func() *seen {
				s := newSeen(testbed.ReachService, service)
				s.exchange(testbed.ClientNode(), "eth0", true, client, service, bare, bare)
				return s.exchange(testbed.ServerNode(), "eth0", false, client, service, bare, bare)
			}(), "none", []string{"w1/eth0 carried 50 packets to 10.96.0.9:80, which should have been translated", "w2/eth0 carried 50 packets to 10.96.0.9:80"}, nil,
			[]string{"none of the sampled requests names the server behind"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := path.JudgeUnplanned(c.seen.Observation, c.seen.load)
			if again := path.JudgeUnplanned(c.seen.Observation, c.seen.load); !reflect.DeepEqual(got, again) {
				t.Errorf("judged once more: %+v, first %+v", again, got)
			}
			if got.OK != (c.finds == nil) || got.Encapsulation != c.wrap {
				t.Errorf("OK %v, wrapped in %q, want %v, %q", got.OK, got.Encapsulation, c.finds == nil, c.wrap)
			}
			if c.finds != nil && len(got.Findings) != len(c.finds) && name != "by the other card" {
				t.Errorf("findings %q", got.Findings)
			}
			for _, list := range []struct {
				got  string
				want []string
			}{{strings.Join(got.Findings, "\n"), c.finds}, {strings.Join(got.Notes, "\n"), c.notes}, {strings.Join(got.Weak, "\n"), c.weak}} {
				for _, w := range list.want {
					if !strings.Contains(list.got, w) {
						t.Errorf("%q lacks %q", list.got, w)
					}
				}
			}
			if c.weak == nil && len(got.Weak) > 0 {
				t.Errorf("weak: %q", got.Weak)
			}
		})
	}
}

// A pod's device that carried less than the load, and one more that carried it too, are found by counters alone.
func TestJudgeObservationInsidePods(t *testing.T) {
	s := newSeen(testbed.ReachPod, server)
	delete(s.Spaces, testbed.ClientNode())
	delete(s.Spaces, testbed.ServerNode())
	p := s.Spaces[testbed.ClientPod()]
	p.Before["net1"], p.After["net1"] = testbed.Counters{}, testbed.Counters{SentPackets: 10, SentBytes: 9000}
	if got := path.JudgeUnplanned(s.Observation, s.load); got.OK || len(got.Weak) != 2 || !strings.Contains(got.Findings[0], "pod-client/net1 ") || !strings.Contains(got.Findings[0], "9000 bytes") {
		t.Errorf("a second device: %+v", got)
	}
	delete(p.After, "net1")
	delete(p.Before, "net1")
	if got := path.JudgeUnplanned(s.Observation, s.load); !got.OK || len(got.Hops) != 2 {
		t.Errorf("as it should be: %+v", got)
	}
	p.After["eth0"] = testbed.Counters{SentPackets: 1, SentBytes: 100, ReceivedPackets: exchanged, ReceivedBytes: 1 << 20}
	if got := path.JudgeUnplanned(s.Observation, s.load); got.OK || !strings.Contains(got.Findings[0], "pod-client/eth0 ") || !strings.Contains(got.Findings[0], " 100 bytes") || !strings.Contains(got.Findings[0], "20000 bytes") {
		t.Errorf("too little: %+v", got)
	}
}

// A load on several servers, to which the client finds its way itself, is held against the client's devices alone; packets that a server
// exchanges with others do not count.
func TestJudgeObservationOfSeveralServers(t *testing.T) {
	s := newSeen(testbed.ReachPod, serverPod+":0")
	s.Backend = s.Called
	s.load = path.Load{Protocol: network.UDP, Server: s.Called, Opaque: true, Both: 2 * exchanged * message, Peers: make([]testbed.Pod, 2)}
	s.exchange(testbed.ClientNode(), "eth0", true, client, serverPod+":6801", bare, bare).exchange(testbed.ServerNode(), "eth0", false, client, serverPod+":6801", bare, bare)
	s.exchange(testbed.ServerNode(), "eth1", true, serverPod+":6803", "10.244.3.7:40000", bare, bare)
	third := testbed.Counters{SentPackets: exchanged / 3, SentBytes: exchanged / 3 * message, ReceivedPackets: exchanged / 3, ReceivedBytes: exchanged / 3 * message}
	s.Spaces[testbed.ServerPod()].After["eth0"] = third
	if got := path.JudgeUnplanned(s.Observation, s.load); !got.OK || got.Encapsulation != "none" || len(got.Weak) != 1 || !strings.Contains(got.Weak[0], "2 more pods") {
		t.Errorf("as it should be: %+v", got)
	}
	s.Spaces[testbed.ClientPod()].After["eth0"] = third
	if got := path.JudgeUnplanned(s.Observation, s.load); got.OK || !strings.Contains(got.Findings[0], "pod-client/eth0 carried") {
		t.Errorf("a third of it: %+v", got)
	}
}

// What agents say of packets may be anything: a judgement is always had, and is OK without findings alone.
func FuzzJudgeObservation(f *testing.F) {
	head := ethernet(inVxlan(clientNode, serverNode)(ipPacket(17, netip.MustParseAddr(clientPod), netip.MustParseAddr(serverPod), udp(40000, serverPort, nil))))
	f.Add(head, 500, 0, true)
	f.Add([]byte{}, -1, 1<<20, false)
	f.Fuzz(func(t *testing.T, head []byte, length, segment int, outgoing bool) {
		s := newSeen(testbed.ReachService, service)
		p := s.Spaces[testbed.ClientNode()]
		p.Packets = []testbed.Packet{{
			Device: network.Device{In: testbed.ClientNode(), Name: "eth0"}, Outgoing: outgoing, Length: unit.Bytes(length), Segment: unit.Bytes(segment), Head: head,
		}}
		s.Spaces[testbed.ClientNode()] = p
		if got := path.JudgeUnplanned(s.Observation, s.load); got.OK != (len(got.Findings) == 0) || got.OK {
			t.Errorf("one packet is no load: %+v", got)
		}
	})
}

// A client on a node that calls an address of its own node, at which a port of a pod there is published: the firewall translates before
// packets leave, which they do by the route to the pod, and none passes loopback.
func TestJudgeOwnPublishedPort(t *testing.T) {
	s := newSeen(testbed.ReachNodePort, clientNode+":20001")
	s.Client.In, s.Client.Address = testbed.ClientNode(), netip.MustParseAddr(clientNode)
	s.Server.On, s.Server.Node, s.Server.NodeAddress = testbed.ClientNode(), "w1", s.Client.NodeAddress
	on := nodePlace("w1", clientNode, serverPod, serverNode, clientPod)
	on.Routes = append(on.Routes, route(clientNode, "lo"))
	moved := podPlace("", serverPod).After["eth0"]
	on.Before = map[string]testbed.Counters{"lo": {}, "cni0": {}, "veth1": {}}
	on.After = map[string]testbed.Counters{"lo": {}, "cni0": moved, "veth1": moved}
	s.Spaces = map[network.Space]testbed.ObservedSpace{
		testbed.ClientNode(): on, testbed.ServerPod(): podPlace("pod-server", serverPod, clientNode),
	}
	for _, device := range []string{"veth1", "cni0"} {
		s.exchange(testbed.ClientNode(), device, true, masked, server, bare, bare)
	}
	if got := path.JudgeUnplanned(s.Observation, s.load); !got.OK {
		t.Errorf("findings: %q", got.Findings)
	}
}

// Datagrams that are larger than what the server's own kernel sends in one piece are cut up by right, also where the client's knows a larger
// way, since it calls a proxy at loopback; smaller ones are not.
func TestJudgeAnswersCutUp(t *testing.T) {
	for size, ok := range map[unit.Bytes]bool{2048: true, message: false} {
		s := newSeen(testbed.ReachNodePort, "127.0.0.1:20001")
		s.Client.In, s.Client.Address = testbed.ClientNode(), netip.MustParseAddr(clientNode)
		s.Server.On, s.Server.Node, s.Server.NodeAddress = testbed.ClientNode(), "w1", s.Client.NodeAddress
		on := nodePlace("w1", clientNode, serverPod, serverNode, clientPod)
		on.Interfaces[0].MTU, on.Interfaces[0].Addresses = 65536, prefix("127.0.0.1/8")
		on.Routes = append(on.Routes, route("127.0.0.1", "lo"))
		inside := podPlace("pod-server", serverPod, clientNode)
		on.Before, on.After = map[string]testbed.Counters{"lo": {}}, map[string]testbed.Counters{"lo": inside.After["eth0"]}
		inside.StackAfter.FragmentsMade = 2 * exchanged
		s.Spaces = map[network.Space]testbed.ObservedSpace{testbed.ClientNode(): on, testbed.ServerPod(): inside}
		for _, device := range []string{"veth1", "cni0"} {
			s.exchange(testbed.ClientNode(), device, true, masked, server, bare, bare)
		}
		s.load.Message = size
		if got := path.JudgeUnplanned(s.Observation, s.load); got.OK != ok || !ok && !strings.Contains(got.Findings[0], "100 IP fragments") {
			t.Errorf("%d bytes: findings %q", size, got.Findings)
		}
	}
}
