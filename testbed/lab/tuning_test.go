package lab_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/testbedtest"
)

// shared is one driver for tests that run side by side: it tries one need at a time. Where two at once have the kernel load the module of
// a kind of link, one of them is told that there is no such kind.
var shared = sync.OnceValue(func() *lab.Driver { return lab.NewDriver(network.Catalogue()) })

// opened is a lab of two nodes under conditions, or skips the test where this kernel can't meet them.
func opened(t *testing.T, spec testbed.Spec) *lab.Testbed {
	t.Helper()
	require.Namespaces(t)
	driver := shared()
	err := driver.Supports(t.Context(), spec)
	var unsupported *testbed.UnsupportedError
	if errors.As(err, &unsupported) {
		require.Need(t, unsupported.Need, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	spec.Nodes, spec.PodsPerNode = 2, max(1, spec.PodsPerNode)
	tb, err := driver.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	})
	return tb.(*lab.Testbed)
}

// across starts a peer in the first pod and one in the last, and serves a protocol there.
func across(t *testing.T, tb testbed.Testbed, protocols ...string) (client, server *testbedtest.Peer) {
	t.Helper()
	pods := tb.Pods()
	client, server = testbedtest.StartPeer(t, pods[0]), testbedtest.StartPeer(t, pods[len(pods)-1])
	port, _ := server.Pod.Ports()
	for _, p := range protocols {
		if err := server.Serve(p, port); err != nil {
			t.Fatal(err)
		}
	}
	return client, server
}

// exchange carries messages from the client to the server and back.
func exchange(t *testing.T, tb testbed.Testbed, client, server *testbedtest.Peer, protocol string, size, count int) {
	t.Helper()
	port, _ := server.Pod.Ports()
	if _, err := client.Exchange(protocol, tb.Endpoint(client.Pod, server.Pod, port), size, count); err != nil {
		t.Fatal(err)
	}
}

// Without offloads, devices see one packet after another; with them, trains of segments. The switch's devices stay as they
// are.
func TestOffloads(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"routed", "vxlan"} {
		for _, to := range []result.Switch{result.Off, result.On} {
			t.Run(name+"/"+string(to), func(t *testing.T) {
				t.Parallel()
				tb := opened(t, testbed.Spec{Network: name, Conditions: result.Conditions{TSO: to, GSO: to, GRO: to}})
				client, server := across(t, tb, "tcp")
				spaces := slices.DeleteFunc(tb.Plan().Spaces(), func(s network.Space) bool { return s.Kind == network.SwitchSpace })
				tap, err := tb.Tap(t.Context(), spaces)
				if err != nil {
					t.Fatal(err)
				}
				exchange(t, tb, client, server, "tcp", 200_000, 3)
				seen, _, err := tap.Packets()
				if err := errors.Join(err, tap.Close()); err != nil {
					t.Fatal(err)
				}
				trains, largest := 0, int64(0)
				for _, p := range seen {
					if p.Segment != 0 {
						trains++
					}
					largest = max(largest, int64(p.Length))
				}
				const ethernet = 14
				mtu := int64(tb.Spec().Link.MTU) + ethernet
				t.Logf("%d packets, %d of them trains, the largest of %d bytes", len(seen), trains, largest)
				switch {
				case len(seen) < 100:
					t.Errorf("only %d packets were seen", len(seen))
				case to == result.Off && (trains > 0 || largest > mtu):
					t.Errorf("%d trains of segments, the largest packet has %d bytes; want none, and at most %d", trains, largest, mtu)
				case to == result.On && (trains == 0 || largest <= mtu):
					t.Errorf("%d trains of segments, the largest packet has %d bytes; want some, and more than %d", trains, largest, mtu)
				}
			})
		}
	}
}

// Each device says itself that it is as it should be, and what is fixed is said.
func TestOffloadsAreRecorded(t *testing.T) {
	for _, to := range []result.Switch{result.Off, result.On} {
		tb := opened(t, testbed.Spec{Network: "vxlan", Conditions: result.Conditions{TSO: to, GSO: to, GRO: to}})
		links, err := tb.Links(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(tb.Notes(), "\n")
		seen := 0
		for _, l := range links {
			if l.Where == network.InSwitch().String() {
				continue
			}
			for _, feature := range []string{"tso", "gso", "gro"} {
				seen++
				note := fmt.Sprintf("offload.%s=%s: ", feature, to)
				if l.Offloads[feature] != (to == result.On) && !strings.Contains(said, note) {
					t.Errorf("%s/%s, a %s: %s is %v, want %s; notes: %q", l.Where, l.Name, l.Kind, feature, l.Offloads[feature], to, said)
				}
			}
		}
		if seen < 3*8 {
			t.Errorf("%d offloads of devices were looked at", seen)
		}
	}
}

// No device of a lab can put segments together in hardware: the condition is unsupported, by name. To switch it off where it is
// off is no condition.
func TestLRO(t *testing.T) {
	require.Namespaces(t)
	driver := lab.NewDriver(network.Catalogue())
	for to, want := range map[result.Switch]bool{result.On: false, result.Off: true} {
		err := driver.Supports(t.Context(), testbed.Spec{Network: "bridge", Conditions: result.Conditions{LRO: to}})
		var unsupported *testbed.UnsupportedError
		if errors.As(err, &unsupported) == want || err != nil && !strings.Contains(err.Error(), "LRO") {
			t.Errorf("offload.lro=%s: got error %v", to, err)
		}
	}
}

// steered is how often a processor was given packets by another one, since the machine started.
func steered(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for line := range strings.Lines(string(text)) {
		const receivedRPS = 9
		n, err := strconv.ParseInt(strings.Fields(line)[receivedRPS], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += int(n)
	}
	return sum
}

// With receive packet steering, processors hand each other packets, flow by flow; without it, none.
func TestSteering(t *testing.T) {
	const flows, messages = 40, 25
	counts := map[result.Switch]int{}
	for _, to := range []result.Switch{result.On, result.Off} {
		tb := opened(t, testbed.Spec{Network: "routed", Conditions: result.Conditions{RPS: to}})
		client, server := across(t, tb, "udp")
		before := steered(t)
		for range flows {
			exchange(t, tb, client, server, "udp", 100, messages)
		}
		counts[to] = steered(t) - before
	}
	t.Logf("%d flows of %d messages: steered %d times with rps, %d without", flows, messages, counts[result.On], counts[result.Off])
	if counts[result.On] < flows || counts[result.On] < 10*counts[result.Off] {
		t.Errorf("packets were steered %d times with rps and %d times without", counts[result.On], counts[result.Off])
	}
}

// Receive packet steering reaches each queue of each device, and nothing of it is left in the mounts of this program.
func TestSteeringLeavesNoMount(t *testing.T) {
	mounts := func() string {
		text, err := os.ReadFile("/proc/self/mounts")
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := mounts()
	opened(t, testbed.Spec{Network: "bridge", Conditions: result.Conditions{RPS: result.On}})
	if after := mounts(); after != before {
		t.Errorf("mounts before:\n%s\nand after:\n%s", before, after)
	}
}
