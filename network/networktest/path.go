package networktest

import (
	"maps"
	"testing"
	"time"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/testbedtest"
)

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
	if err != nil {
		t.Fatal(err)
	}
	after := p.settled(t)
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
	for d := range after {
		if d.In.Kind == network.SwitchSpace {
			continue
		}
		overhead := adds[d]
		b, a := before[d], after[d]
		if p.observer.Plan().Unforeseen(d) {
			continue
		}
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

// settled reads the counters once they no longer change: a network card counts what it has sent a moment later.
func (p podPair) settled(t *testing.T) map[network.Device]testbed.Counters {
	t.Helper()
	const readings, pause = 20, 20 * time.Millisecond
	last := p.counters(t)
	for range readings {
		time.Sleep(pause)
		again := p.counters(t)
		if maps.Equal(again, last) {
			break
		}
		last = again
	}
	return last
}

func (p podPair) counters(t *testing.T) map[network.Device]testbed.Counters {
	t.Helper()
	c, err := p.observer.Counters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}
