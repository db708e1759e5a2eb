package udpstream_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/probe/probetest"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/unit"
)

// ends are the agents of two pods of a lab.
type ends struct {
	tb             testbed.Testbed
	client, server *agent.Agent
}

// across opens a lab of two nodes and starts an agent in a pod on each.
func across(t *testing.T, name string, rate unit.BitsPerSecond) ends {
	t.Helper()
	require.Namespaces(t)
	driver := lab.NewDriver(network.Catalogue())
	err := driver.Supports(t.Context(), testbed.Spec{Network: name, Family: result.IPv4})
	require.Need(t, "a kernel with network "+name, err == nil)
	tb, agents := probetest.Lab(t, testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: name, Link: testbed.Link{MTU: 1500, Rate: rate}})
	return ends{tb, agents[0], agents[1]}
}

// searches runs so many searches of a length, with both ends on one processor.
func (e ends) searches(t *testing.T, p result.Params, n int, span time.Duration) []engine.Burst {
	t.Helper()
	first, _ := e.server.Pod().Ports()
	any4 := netip.IPv4Unspecified()
	service, err := e.server.Serve(t.Context(), "udp-stream", p, netip.AddrPortFrom(any4, first), 0)
	if err != nil {
		t.Fatal(err)
	}
	session, err := e.client.Dial(t.Context(), "udp-stream", p, netip.AddrPortFrom(any4, 0), e.tb.Endpoint(e.client.Pod(), e.server.Pod(), first), 0)
	if err != nil {
		t.Fatal(err)
	}
	var bursts []engine.Burst
	for range n {
		b, err := e.client.Burst(t.Context(), session, engine.BurstSpec{
			Duration: span, Warmup: span / 5, Deadline: 10 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		bursts = append(bursts, b)
	}
	if err := e.client.Drop(t.Context(), session); err != nil {
		t.Error(err)
	}
	if err := e.server.Drop(t.Context(), service); err != nil {
		t.Error(err)
	}
	return bursts
}

// TestSearchFindsTheLinkWhenQuiet: a token bucket on the link between the nodes is a known truth, whatever network lies over it.
func TestSearchFindsTheLinkWhenQuiet(t *testing.T) {
	require.Quiet(t)
	const link, message = 500 * unit.Mbit, 1400
	// Per datagram: UDP, IP and Ethernet, and what a vxlan network puts around that.
	headers := map[string]float64{"host": 8 + 20 + 14, "vxlan": 8 + 20 + 14 + 50}
	for name, more := range headers {
		t.Run(name, func(t *testing.T) {
			e := across(t, name, link)
			truth := float64(link) * message / (message + more)
			// A machine that is busy with other things carries less: then some times more.
			for attempt := range 5 {
				bursts := e.searches(t, result.Params{Search: true, Message: message}, 7, 500*time.Millisecond)
				err := findsTheLink(bursts, truth)
				if err == nil {
					return
				}
				t.Logf("attempt %d: %v", attempt, err)
			}
			t.Error("no attempt found what the link carries")
		})
	}
}

// findsTheLink holds the best searches but one against the truth: what disturbs a search lowers what it finds.
func findsTheLink(bursts []engine.Burst, truth float64) error {
	var none, little, load []float64
	for _, b := range bursts {
		s := b.Search
		if s == nil || b.Sent < 1 || b.Transactions+b.Lost != b.Sent || s.PartialDrop != 0 && s.PartialDrop < s.NoDrop {
			return fmt.Errorf("%+v found %+v", b, s)
		}
		none, little, load = append(none, s.NoDrop/truth), append(little, s.PartialDrop/truth), append(load, s.Load50)
	}
	slices.Sort(none)
	slices.Sort(little)
	slices.Sort(load)
	switch none, little, load := none[len(none)-2], little[len(little)-2], time.Duration(load[1]); {
	case none < 0.95 || none > 1.06:
		return fmt.Errorf("the rate without loss is %.3f of what the link carries", none)
	case little < 0.95 || little > 1.07:
		return fmt.Errorf("the rate with little loss is %.3f of what the link carries", little)
	case load <= 0 || load > 5*time.Millisecond:
		// Half of the rate fills no queue; the whole of it would fill one of 20 ms.
		return fmt.Errorf("the median latency at half of the rate is %v", load)
	}
	return nil
}
