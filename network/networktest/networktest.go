// Package networktest is the suite that each network has to pass on a testbed that can look at its devices: pods reach each
// other with the right bytes in both directions, packets as large as promised and no larger go through, and the counters
// show that they crossed the devices that the plan names, and no others.
package networktest

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/testbedtest"
)

// Run puts a network to the test under each version of IP: two nodes with two pods each, first as pods that come and go
// with the network, then as pods that outlive it. Then it does so under each of Conditions that the network does not refuse.
func Run(t *testing.T, driver testbed.Provider, n network.Network) {
	RunUnder(t, driver, n, result.Conditions{})
	for _, c := range Conditions() {
		t.Run(fmt.Sprint(n.Name, c.Levels()), func(t *testing.T) {
			if !alone(n) {
				t.Parallel()
			}
			if !short(n, c) {
				require.Long(t)
			}
			RunUnder(t, driver, n, c)
		})
	}
}

// Conditions are those under which packets take another way, or are changed on it: what a network has to be built for.
func Conditions() []result.Conditions {
	var all []result.Conditions
	for _, policy := range []string{result.PolicyIPTables, result.PolicyNFTables, result.PolicyEBPF} {
		all = append(all, result.Conditions{Policy: policy, PolicyRules: 300})
	}
	for _, service := range []string{result.ServiceIPTables, result.ServiceNFTables, result.ServiceIPVS, result.ServiceEBPF} {
		all = append(all, result.Conditions{Service: service, Services: 100})
	}
	return append(all, result.Conditions{From: result.FromNode},
		result.Conditions{Encryption: result.WireGuard}, result.Conditions{Encryption: result.IPsec})
}

// short says whether a network is put to the test under these conditions in short tests, too: one network of each way to attach pods,
// and under what a network has a part of its own for, each.
func short(n network.Network, c result.Conditions) bool {
	return c.From != "" || c.Encryption != "" || slices.Contains([]string{"host", "bridge-nat", "macvlan", "routed", "vxlan"}, n.Name)
}

// RunUnder is Run under conditions. A network that can't be had under them anywhere passes.
func RunUnder(t *testing.T, driver testbed.Provider, n network.Network, c result.Conditions) {
	for _, family := range []result.Family{result.IPv4, result.IPv6} {
		t.Run(n.Name+"/"+string(family), func(t *testing.T) {
			if !alone(n) {
				t.Parallel()
			}
			err := driver.Supports(t.Context(), testbed.Spec{Network: n.Name, Family: family, Conditions: c})
			if unsupported, is := errors.AsType[*testbed.UnsupportedError](err); is {
				require.Need(t, unsupported.Need, false)
			}
			var impossible *network.NotPossibleError
			if errors.As(err, &impossible) {
				t.Log(impossible)
				return
			}
			require.NoError(t, err)
			const underlay = 1700 // unlike any default
			spec := testbed.Spec{Nodes: 2, PodsPerNode: 2, Family: family, Network: n.Name, Link: testbed.Link{MTU: underlay}, Conditions: c}
			t.Run("with-network", func(t *testing.T) { run(t, driver, n, spec) })
			spec.PodsOutlive = true
			if err := driver.Supports(t.Context(), spec); errors.As(err, &impossible) {
				t.Log(impossible)
				return
			}
			t.Run("outliving", func(t *testing.T) { run(t, driver, n, spec) })
		})
	}
}

// alone says that a network needs what there is only once: cards of the machine, or files in which plugins keep addresses.
func alone(n network.Network) bool {
	return n.Name == "sriov" || strings.HasPrefix(n.Name, network.CNIPrefix)
}

func run(t *testing.T, driver testbed.Provider, n network.Network, spec testbed.Spec) {
	tb, err := driver.Open(t.Context(), spec)
	require.NoError(t, err)
	require.Closes(t, tb)
	o := tb.Instruments().Observer
	if o == nil {
		t.Fatalf("%T can't look at its devices", tb)
	}
	pods := tb.Pods()
	client := testbedtest.StartPeer(t, pods[0])
	for _, to := range []struct {
		placement string
		pod       testbed.Pod
	}{{"same-node", pods[1]}, {"cross-node", pods[2]}} {
		t.Run(to.placement, func(t *testing.T) {
			p := podPair{network: n, observer: o, client: client, server: testbedtest.StartPeer(t, to.pod)}
			p.serve(t)
			t.Run("placement", p.testPlacement)
			t.Run("tcp", func(t *testing.T) { p.testExchange(t, "tcp") })
			t.Run("udp", func(t *testing.T) { p.testExchange(t, "udp") })
			t.Run("mtu", p.testMTU)
			t.Run("path", p.testPath)
			if len(o.Path(pods[0], to.pod, network.TCP)) == 0 {
				t.Run("past-devices", p.testPastDevices)
			}
		})
	}
}

// podPair is a client and a server.
type podPair struct {
	network        network.Network
	observer       testbed.Observer
	client, server *testbedtest.Peer
}

// serve listens on the first and the last port of the server's range.
func (p podPair) serve(t *testing.T) {
	first, last := p.server.Pod.Ports()
	for _, protocol := range []string{"tcp", "udp"} {
		for _, port := range []uint16{first, last} {
			require.NoError(t, p.server.Serve(protocol, port))
		}
	}
}

// at is where the client reaches the first port of the server.
func (p podPair) at() netip.AddrPort {
	first, _ := p.server.Pod.Ports()
	return p.observer.Endpoint(p.client.Pod, p.server.Pod, first)
}

func (p podPair) testPlacement(t *testing.T) {
	at := p.at()
	own := p.client.Pod.Node() == p.server.Pod.Node() && p.observer.Spec().Conditions.From != result.FromNode
	byPod := (p.network.Reach == network.ByPod || own) && p.observer.Plan().Services == nil
	if own := p.server.Pod.Address(); byPod != (at.Addr() == own) {
		t.Errorf("the server at %s is reached at %s", own, at)
	}
}

// testExchange carries small and large messages over both ends of the range of ports.
func (p podPair) testExchange(t *testing.T, protocol string) {
	first, last := p.server.Pod.Ports()
	for _, port := range []uint16{first, last} {
		at := p.observer.Endpoint(p.client.Pod, p.server.Pod, port)
		for _, size := range []int{1, 64, 1400} {
			if _, err := p.client.Exchange(protocol, at, size, 20); err != nil {
				t.Fatalf("%d bytes to %s: %v", size, at, err)
			}
		}
	}
	if protocol == "tcp" {
		if _, err := p.client.Exchange(protocol, p.at(), 200_000, 5); err != nil {
			t.Fatalf("large messages to %s: %v", p.at(), err)
		}
	}
}

// testMTU finds the largest packet that goes through.
func (p podPair) testMTU(t *testing.T) {
	at, pods := p.at(), p.observer.Pods()
	from, to := slices.Index(pods, p.client.Pod), slices.Index(pods, p.server.Pod)
	if from < 0 || to < 0 {
		t.Fatal("the pods are not among the testbed's")
	}
	promised := int(p.observer.Plan().PathMTU(from, to))
	largest := 65507 + testbedtest.Headers(at.Addr()) // that UDP can carry
	fits := min(promised, largest)
	if err := p.client.Probe(at, fits); err != nil {
		t.Errorf("a packet of %d bytes, the MTU promised: %v", fits, err)
	}
	if promised >= largest {
		return
	}
	if err := p.client.Probe(at, promised+1); !errors.Is(err, testbedtest.ErrTooBig) {
		t.Errorf("a packet of %d bytes, one more than the MTU: got error %v, want %v", promised+1, err, testbedtest.ErrTooBig)
	}
}

const (
	datagrams = 300
	payload   = 1000
	// slack are the packets that may move besides the test's own: requests for addresses, reports of groups.
	slack = 20
)

// testPath sends datagrams and looks at all counters: each device of the path has seen each datagram, in both directions,
// with the encapsulation where the plan says so; devices that are not on the path have been quiet.
func (p podPair) testPath(t *testing.T) {
	at := p.at()
	// Addresses are asked for before counting.
	if _, err := p.client.Exchange("udp", at, payload, 1); err != nil {
		t.Fatal(err)
	}
	before := p.counters(t)
	sent, err := p.client.Exchange("udp", at, payload, datagrams)
	require.NoError(t, err)
	request := p.observer.Path(p.client.Pod, p.server.Pod, network.UDP)
	answer := p.observer.Path(p.server.Pod, p.client.Pod, network.UDP)
	alike := p.observer.Spec().Conditions.From == "" // programs lead pods past devices that nodes send to
	if len(request) == 0 || len(answer) == 0 || alike && len(request) != len(answer) {
		t.Fatalf("paths of %d and %d devices", len(request), len(answer))
	}
	t.Logf("path %v", request)
	adds := map[network.Device]uint64{}
	sending, receiving := map[network.Device]int{}, map[network.Device]int{}
	for _, h := range append(request, answer...) {
		least, _ := p.observer.Plan().Adds(h)
		adds[h.Device] = uint64(least)
		if h.Sends {
			sending[h.Device]++
		} else {
			receiving[h.Device]++
		}
	}
	counted := func(d network.Device) bool {
		return d.In.Kind != network.SwitchSpace && !p.observer.Plan().Unforeseen(d)
	}
	var after map[network.Device]testbed.Counters
	// A network card counts what it has sent a moment later. What is missing in the end is named below.
	_ = require.Await(2*time.Second, "all devices have counted", func() error {
		after = p.counters(t)
		for d, a := range after {
			if b := before[d]; counted(d) && (a.SentPackets-b.SentPackets < uint64(sending[d]*datagrams) || a.ReceivedPackets-b.ReceivedPackets < uint64(receiving[d]*datagrams)) {
				return fmt.Errorf("%s has not", d)
			}
		}
		return nil
	})
	for d, a := range after {
		if !counted(d) {
			continue
		}
		overhead, b := adds[d], before[d]
		p.compare(t, d, "sent", sending[d], sent, a.SentPackets-b.SentPackets, a.SentBytes-b.SentBytes, overhead)
		p.compare(t, d, "received", receiving[d], sent, a.ReceivedPackets-b.ReceivedPackets, a.ReceivedBytes-b.ReceivedBytes, overhead)
		if a.Errors != b.Errors {
			t.Errorf("%s counted %d errors", d, a.Errors-b.Errors)
		}
	}
}

// testPastDevices sends messages over TCP where the plan takes them past all devices: these see no more than a connection
// that comes and goes.
func (p podPair) testPastDevices(t *testing.T) {
	before := p.counters(t)
	if _, err := p.client.Exchange("tcp", p.at(), payload, datagrams); err != nil {
		t.Fatal(err)
	}
	for d, a := range p.counters(t) {
		b := before[d]
		p.compare(t, d, "sent", 0, 0, a.SentPackets-b.SentPackets, 0, 0)
		p.compare(t, d, "received", 0, 0, a.ReceivedPackets-b.ReceivedPackets, 0, 0)
	}
}

// compare holds one counter of a device against how often the paths cross it.
func (p podPair) compare(t *testing.T, d network.Device, verb string, times, sent int, packets, bytes, overhead uint64) {
	t.Helper()
	low, high := uint64(times*datagrams), uint64(times*sent+slack)
	if packets < low || packets > high {
		t.Errorf("%s %s %d packets, want %d to %d", d, verb, packets, low, high)
	}
	if times == 0 {
		return
	}
	// Bridges and tunnels count packets without their Ethernet header in one direction.
	bare := uint64(payload + testbedtest.Headers(p.server.Pod.Address()))
	per := (bare + overhead) * uint64(times*datagrams)
	if bytes < per {
		t.Errorf("%s %s %d bytes, want at least %d for %d datagrams with %d bytes of encapsulation", d, verb, bytes, per, datagrams, overhead)
	}
}

func (p podPair) counters(t *testing.T) map[network.Device]testbed.Counters {
	t.Helper()
	c, err := p.observer.Counters(t.Context())
	require.NoError(t, err)
	return c
}
