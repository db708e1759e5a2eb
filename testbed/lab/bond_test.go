package lab_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

// bonded opens a lab whose nodes have two links each.
func bonded(t *testing.T, name, mode, hash string, family result.Family) testbed.Observer {
	t.Helper()
	return opened(t, testbed.Spec{
		Network: name, Family: family, Conditions: result.Conditions{LinkCount: 2, BondMode: mode, BondHash: hash}.Plain(),
	})
}

// sentBy is what devices of a namespace have sent, by name.
func sentBy(t *testing.T, tb testbed.Observer, in network.Space) map[string]uint64 {
	t.Helper()
	all, err := tb.Counters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sent := map[string]uint64{}
	for d, c := range all {
		if d.In == in {
			sent[d.Name] = c.SentBytes
		}
	}
	return sent
}

// spread sends many short streams from the first pod to the last, and returns what part of it went by the busier of the two
// links: out of the client's node, and from the switch to the server's.
func spread(t *testing.T, tb testbed.Observer) (node, back float64) {
	t.Helper()
	const flows, size = 40, 20_000
	client, server := across(t, tb, "tcp")
	exchange(t, tb, client, server, "tcp", 100, 1)
	busier := func(before, after map[string]uint64, a, b string) float64 {
		x, y := float64(after[a]-before[a]), float64(after[b]-before[b])
		if least := float64(flows * size); x+y < least {
			t.Fatalf("%s and %s sent %.0f bytes, of at least %.0f", a, b, x+y, least)
		}
		return max(x, y) / (x + y)
	}
	n, s := sentBy(t, tb, network.InNode(0)), sentBy(t, tb, network.InSwitch())
	for range flows {
		exchange(t, tb, client, server, "tcp", size, 1)
	}
	node = busier(n, sentBy(t, tb, network.InNode(0)), "eth0p0", "eth0p1")
	back = busier(s, sentBy(t, tb, network.InSwitch()), "node1p0", "node1p1")
	return node, back
}

// The hash policy decides whether flows between two nodes share one link or fill both. Encapsulation hides ports from layer3+4
// where the outer header has none of its own.
func TestBondHashesOnEachKernel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		network, hash string
		both          bool
	}{
		{"host", "layer2", false},
		{"host", "layer2+3", false},
		{"host", "layer3+4", true},
		{"host", "encap2+3", false},
		{"host", "encap3+4", true},
		{"host", "vlan+srcmac", false},
		{"vxlan", "layer2+3", false},
		{"vxlan", "layer3+4", true}, // the outer port is a hash of the inner ones
		{"ipip", "layer3+4", false},
		{"ipip", "encap3+4", true},
		{"gre", "layer3+4", false},
		{"gre", "encap3+4", true},
	} {
		t.Run(c.network+"/"+c.hash, func(t *testing.T) {
			t.Parallel()
			node, back := spread(t, bonded(t, c.network, "", c.hash, ""))
			t.Logf("the busier link carried %.0f%% from the node, %.0f%% to the other node", 100*node, 100*back)
			for _, busier := range []float64{node, back} {
				// Of 40 flows, a fair hash gives one link more than nine tenths once in a hundred million times.
				if c.both && busier > 0.9 || !c.both && busier < 0.98 {
					t.Errorf("the busier link carried %.0f%%; want both used: %v", 100*busier, c.both)
				}
			}
		})
	}
}

// Every mode carries data over every network and by both versions of IP, and the path that its packets took is the plan's, so far as
// the counters of nodes and pods tell. Versions take turns, so that each meets every mode and every network.
func TestBondModesOnEachKernel(t *testing.T) {
	t.Parallel()
	for m, mode := range network.BondModes() {
		for n, name := range []string{"host", "bridge", "macvlan", "routed", "vxlan"} {
			family := families()[(m+n)%2]
			t.Run(fmt.Sprintf("%s/%s/%s", mode, name, family), func(t *testing.T) {
				t.Parallel()
				tb := bonded(t, name, mode, "", family)
				client, server := across(t, tb, "tcp", "udp")
				exchange(t, tb, client, server, "udp", 1000, 1)
				before, err := tb.Counters(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				const messages, size = 200, 1000
				exchange(t, tb, client, server, "udp", size, messages)
				after, err := tb.Counters(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				links := map[string]uint64{}
				for _, link := range []string{"eth0p0", "eth0p1"} {
					d := network.Device{In: network.InNode(0), Name: link}
					links[link] = after[d].SentPackets - before[d].SentPackets
				}
				t.Logf("sent by %v", links)
				total := links["eth0p0"] + links["eth0p1"]
				if total < messages {
					t.Errorf("%d messages were sent by %d packets on both links", messages, total)
				}
				switch unused := min(links["eth0p0"], links["eth0p1"]); {
				case mode == network.ModeRoundRobin && unused < messages/3, mode == network.ModeBroadcast && unused < messages,
					mode == network.ModeActiveBackup && unused > messages/10:
					t.Errorf("in mode %s the links sent %v packets", mode, links)
				}
				exchange(t, tb, client, server, "tcp", 100_000, 3)
			})
		}
	}
}

// Bonds are taken down and built anew under running pods.
func TestBondsSwap(t *testing.T) {
	spec := testbed.Spec{Network: "host", PodsOutlive: true, Conditions: result.Conditions{LinkCount: 2, BondHash: "layer3+4"}.Plain()}
	tb := opened(t, spec)
	client, server := across(t, tb, "tcp")
	port, _ := server.Pod.Ports()
	if err := client.Connect(tb.Endpoint(client.Pod, server.Pod, port), 1000); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"routed", "vxlan", "host", "bridge"} {
		if err := tb.Swap(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if err := client.Advances(60 * time.Second); err != nil {
			t.Errorf("after a swap to %s: %v", name, err)
		}
	}
}

// If the peer does not answer by LACP, the error names each link, and nothing of the lab is left.
func TestLACPDoesNotConvergeOnEachKernel(t *testing.T) {
	t.Parallel()
	bonded(t, "host", "", "", "") // skips where there are no bonds
	deaf := network.Network{
		Name: "deaf", Summary: "the switch's bonds don't negotiate", UsedBy: []string{"this test"},
		Build: func(t network.Topology) network.Plan {
			host, err := network.Find(network.Catalogue(), "host")
			if err != nil {
				panic(err)
			}
			p := host.Build(t)
			for i, op := range p.Underlay {
				if b, ok := op.(network.Bond); ok && b.In == network.InSwitch() {
					b.Mode = network.ModeXOR
					p.Underlay[i] = b
				}
			}
			return p
		},
	}
	tb, err := lab.NewDriver([]network.Network{deaf}).Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "deaf", Conditions: result.Conditions{LinkCount: 2}})
	if err == nil {
		t.Fatal("a lab was opened whose switch does not negotiate", tb.Close())
	}
	for _, want := range []string{"LACP did not converge", "node0/eth0p0", "node0/eth0p1", "node1/eth0p1", "802.3ad"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %q, want one that says %q", err, want)
		}
	}
}

// A node whose links are its own has them built, with their rate; the other nodes' links are as all are.
func TestLinksOfSingleNodesOnEachKernel(t *testing.T) {
	const size, rate = 500_000, 10e6
	tb := opened(t, testbed.Spec{Network: "host", Link: testbed.Link{Rate: 1e9}, Conditions: result.Conditions{NodeLinks: "node0:2x10Mbit/s", BondMode: network.ModeRoundRobin}.Plain()})
	client, server := across(t, tb, "tcp")
	exchange(t, tb, client, server, "tcp", 100, 1)
	start := time.Now()
	exchange(t, tb, client, server, "tcp", size, 1)
	took := time.Since(start)
	sent := sentBy(t, tb, network.InNode(0))
	t.Logf("%d bytes took %s; node0's devices have sent %v", size, took, sent)
	for _, link := range []string{"eth0p0", "eth0p1"} {
		if sent[link] < size/4 {
			t.Errorf("node0 has sent %d bytes by %s", sent[link], link)
		}
	}
	// The bucket of each link lets some of it pass at once.
	if least := time.Duration(0.6 * 8 * size / (2 * rate) * float64(time.Second)); took < least {
		t.Errorf("%d bytes took %s over two links of %.0f bit/s, want %s or more", size, took, rate, least)
	}
	if other := sentBy(t, tb, network.InNode(1)); len(other) == 0 || other["eth0"] < size/2 {
		t.Errorf("node1, which has one link, has sent %v", other)
	}
}
