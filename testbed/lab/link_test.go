package lab_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/unit"
)

// families are the versions of IP.
func families() []result.Family { return []result.Family{result.IPv4, result.IPv6} }

// A link that delays each way adds twice as much to a round trip, in every network.
// Trips with and without the delay take turns, and the shortest of each count, for whatever else the machine does only adds: they go on
// until it has let some of both pass. The delay is longer than what a busy machine takes for a trip, part of which passes while packets
// wait. Were one way alone delayed, a trip that takes less than a delay without it would take less than two.
func TestDelayOnEachKernel(t *testing.T) {
	const delay = 40 * time.Millisecond
	for _, name := range []string{"host", "routed", "vxlan"} {
		t.Run(name, func(t *testing.T) {
			spec := testbed.Spec{Network: name}
			plain := opened(t, spec)
			spec.Conditions.LinkDelay = delay
			delayed := opened(t, spec)
			const together = 4 // trips at a time, so that the peer's being asked for them weighs little
			least, trip := map[testbed.Testbed]time.Duration{}, map[testbed.Testbed]func(){}
			for _, tb := range []testbed.Testbed{plain, delayed} {
				client, server := across(t, tb, "udp")
				trip[tb] = func() { exchange(t, tb, client, server, "udp", 100, together) }
				trip[tb]() // asks for addresses
				least[tb] = math.MaxInt64
			}
			asSet := func(most time.Duration) bool {
				return least[plain] < delay && least[delayed] >= 2*delay && least[delayed]-least[plain] <= most
			}
			for deadline := time.Now().Add(20 * time.Second); !asSet(9*delay/4) && time.Now().Before(deadline); {
				for tb := range trip {
					start := time.Now()
					trip[tb]()
					least[tb] = min(least[tb], time.Since(start)/together)
				}
			}
			t.Logf("round trips of %s without the delay, %s with %s on each way", least[plain], least[delayed], delay)
			if !asSet(3 * delay) {
				t.Errorf("a delay of %s added %s to a round trip of %s, want twice the delay", delay, least[delayed]-least[plain], least[plain])
			}
		})
	}
}

// A lossy link loses about the share that it is set to: of many packets that arrived at the node's port, that share did not leave
// it. The test does not wait.
func TestLossOnEachKernel(t *testing.T) {
	t.Parallel()
	const share, packets = 0.1, 3000
	for _, family := range families() {
		t.Run(string(family), func(t *testing.T) {
			t.Parallel()
			tb := opened(t, testbed.Spec{Network: "routed", Family: family, Conditions: result.Conditions{LinkLoss: share}})
			client, server := across(t, tb, "udp")
			exchange(t, tb, client, server, "udp", 100, 3) // asks for addresses
			before, err := tb.Counters(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for range packets {
				if err := tb.Fit(t.Context(), client.Pod, server.Pod, 500); err != nil {
					t.Fatal(err)
				}
			}
			after, err := tb.Counters(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			came := network.Device{In: network.InNode(0), Name: "veth0"}
			left := network.Device{In: network.InNode(0), Name: "eth0"}
			arrived := network.Device{In: network.InNode(1), Name: "eth0"}
			in := after[came].ReceivedPackets - before[came].ReceivedPackets
			out := after[left].SentPackets - before[left].SentPackets
			there := after[arrived].ReceivedPackets - before[arrived].ReceivedPackets
			lost := 1 - float64(out)/float64(in)
			t.Logf("%d packets reached the node, %d left it, %d arrived at the other: %.1f%% were lost", in, out, there, 100*lost)
			const deviations = 7
			slack := deviations * math.Sqrt(share*(1-share)/packets)
			if in < packets || math.Abs(lost-share) > slack || there != out {
				t.Errorf("%.2f%% were lost, want %.0f%% (%.1f%% more or less)", 100*lost, 100*share, 100*slack)
			}
		})
	}
}

// Neighbours are found though every third packet gets lost: data goes through in every network.
func TestLossHangsNothing(t *testing.T) {
	for _, family := range families() {
		for _, name := range []string{"host", "bridge", "macvlan", "routed", "vxlan"} {
			t.Run(name+"/"+string(family), func(t *testing.T) {
				t.Parallel()
				tb := opened(t, testbed.Spec{Network: name, Family: family, Conditions: result.Conditions{LinkLoss: 0.3}})
				client, server := across(t, tb, "udp")
				exchange(t, tb, client, server, "udp", 100, 5)
			})
		}
	}
}

// A delayed link still has its rate: data takes as long as the rate has it, and a round trip as long as the delay.
func TestDelayAndRateOnEachKernel(t *testing.T) {
	t.Parallel()
	const delay, size = 10 * time.Millisecond, 1_000_000
	const rate = 10 * unit.Mbit
	tb := opened(t, testbed.Spec{Network: "routed", Conditions: result.Conditions{LinkDelay: delay, LinkRate: rate}})
	client, server := across(t, tb, "tcp", "udp")
	exchange(t, tb, client, server, "udp", 100, 1)
	start := time.Now()
	exchange(t, tb, client, server, "udp", 100, 5)
	trip := time.Since(start) / 5
	start = time.Now()
	exchange(t, tb, client, server, "tcp", size, 1)
	took := time.Since(start)
	t.Logf("a round trip took %s, %d bytes there and back %s", trip, size, took)
	if trip < 2*delay {
		t.Errorf("a round trip took %s, want %s or more", trip, 2*delay)
	}
	// The server sends the answer as the message comes; the token bucket lets its first 68 KiB pass at once.
	if least := time.Duration(0.8 * 8 * size / float64(rate) * float64(time.Second)); took < least {
		t.Errorf("%d bytes took %s at %d bit/s, want %s or more", size, took, int64(rate), least)
	}
}

// Conditions that make no sense are refused before anything is made.
func TestBadConditions(t *testing.T) {
	tb, err := lab.NewDriver(network.Catalogue()).Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "host", Conditions: result.Conditions{LinkLoss: 2}})
	if err == nil {
		t.Error(errors.Join(errors.New("a loss of 200% was taken"), tb.Close()))
	}
}
