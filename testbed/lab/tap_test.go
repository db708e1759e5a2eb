package lab_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"netdelta/internal/leak"
	"netdelta/internal/netns"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/testbedtest"
	"netdelta/unit"
)

// observed opens a lab of two nodes with two pods each.
func observed(t testing.TB, name string, family result.Family) testbed.Observer {
	t.Helper()
	tb, err := shared().Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 2, Network: name, Family: family})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	})
	return tb.Instruments().Observer
}

// everywhere are the namespaces of pods and nodes.
func everywhere(o testbed.Observer) []network.Space {
	var spaces []network.Space
	for _, s := range o.Plan().Spaces() {
		if s.Kind != network.SwitchSpace {
			spaces = append(spaces, s)
		}
	}
	return spaces
}

// A packet that just fits is seen on every device of its way, whole; one byte more is refused by the sender.
func TestFitIsSeen(t *testing.T) {
	t.Parallel()
	require.Namespaces(t)
	for _, family := range []result.Family{result.IPv4, result.IPv6} {
		for _, name := range []string{"routed", "vxlan"} {
			t.Run(fmt.Sprint(name, "-", family), func(t *testing.T) {
				o := observed(t, name, family)
				from, to := o.Pods()[0], o.Pods()[2]
				tap, err := o.Tap(t.Context(), append(everywhere(o), everywhere(o)...)) // twice is once
				if err != nil {
					t.Fatal(err)
				}
				size := o.Plan().PathMTU(0, 2)
				if err := o.Fit(t.Context(), from, to, size); err != nil {
					t.Fatal(err)
				}
				left := map[network.Device]int{}
				for _, h := range o.Path(from, to, network.UDP) {
					left[h.Device]++
				}
				payload := binary.BigEndian.AppendUint16(nil, last(to))
				require.NoError(t, require.Await(20*time.Second, "all devices have been passed", func() error {
					seen, missed, err := tap.Packets()
					if err != nil || missed != 0 {
						t.Fatalf("missed %d: %v", missed, err)
					}
					for _, p := range seen {
						const ethernet = 14
						atLeast := size
						if p.Device.Name == "vxlan0" || p.Device.Name == "br0" {
							atLeast -= ethernet
						}
						if p.Length >= atLeast && p.Segment == 0 && bytes.Contains(p.Head, payload) {
							delete(left, p.Device)
						}
					}
					if len(left) > 0 {
						return fmt.Errorf("nothing was seen on %v", left)
					}
					return nil
				}))
				var tooLarge *testbed.TooLargeError
				if err := o.Fit(t.Context(), from, to, size+1); !errors.As(err, &tooLarge) || tooLarge.MTU != size || tooLarge.Size != size+1 {
					t.Errorf("a byte more than %d: got error %v", int64(size), err)
				}
				for range 2 {
					if err := tap.Close(); err != nil {
						t.Error(err)
					}
				}
				if _, _, err := tap.Packets(); err == nil {
					t.Error("read from a tap that was closed")
				}
			})
		}
	}
}

func last(p testbed.Pod) uint16 {
	_, last := p.Ports()
	return last
}

func TestFitRefuses(t *testing.T) {
	require.Namespaces(t)
	o := observed(t, "host", "")
	pods := o.Pods()
	other := observed(t, "host", "").Pods()[0]
	for what, c := range map[string]struct {
		to   testbed.Pod
		size unit.Bytes
		says string
	}{
		"too small for headers":  {pods[1], 27, "28 to 65535"},
		"too large for IPv4":     {pods[1], 65536, "28 to 65535"},
		"negative":               {pods[1], -1, "28 to 65535"},
		"a pod of another lab":   {other, 100, "not both pods"},
		"too large for the link": {pods[2], 1501, "MTU of 1500"},
	} {
		if err := o.Fit(t.Context(), pods[0], c.to, c.size); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got error %v", what, err)
		}
	}
	if err := o.Fit(t.Context(), pods[0], pods[1], 65535); err != nil {
		t.Errorf("the largest packet over lo: %v", err)
	}
}

// hooks counts the packet sockets that see the packets of a pod's namespace.
func hooks(t *testing.T, p *testbedtest.Peer) int {
	t.Helper()
	text, err := p.ReadFile("/proc/self/net/ptype")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(text, "packet_rcv")
}

// A closed tap is off at once, and gone when the lab is.
func TestTapLeavesNothing(t *testing.T) {
	require.Namespaces(t)
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	driver := lab.NewDriver(network.Catalogue())
	if err := driver.Supports(t.Context(), testbed.Spec{Network: "routed"}); err != nil {
		t.Fatal(err)
	}
	before := descriptors()
	tb, err := driver.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "routed", PodsOutlive: true})
	if err != nil {
		t.Fatal(err)
	}
	o := tb.Instruments().Observer
	peer, err := testbedtest.NewPeer(t.Context(), tb.Pods()[0])
	if err != nil {
		t.Fatal(err)
	}
	open := func() testbed.Tap {
		tap, err := o.Tap(t.Context(), everywhere(o))
		if err != nil {
			t.Fatal(err)
		}
		return tap
	}
	tap := open()
	if n := hooks(t, peer); n != 1 {
		t.Errorf("%d hooks while the tap is open", n)
	}
	if err := tap.Close(); err != nil {
		t.Fatal(err)
	}
	if n := hooks(t, peer); n != 0 {
		t.Errorf("%d hooks after the tap was closed", n)
	}
	forgotten := open()
	if err := tb.Swap(t.Context(), "bridge"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := forgotten.Packets(); err == nil {
		t.Error("a tap outlived the swap of its network")
	}
	open()
	if err := peer.Close(); err != nil {
		t.Error(err)
	}
	if err := tb.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Tap(t.Context(), everywhere(o)); err == nil {
		t.Error("tapped a closed lab")
	}
	if after := descriptors(); after > before {
		t.Errorf("%d file descriptors before, %d after", before, after)
	}
	if found := leak.Own(); len(found) > 0 {
		t.Errorf("left behind: %q", found)
	}
}

func TestTapKnowsNoOtherNamespace(t *testing.T) {
	require.Namespaces(t)
	o := observed(t, "host", "")
	if _, err := o.Tap(t.Context(), []network.Space{network.InNode(0), network.InPod(0)}); err == nil || !strings.Contains(err.Error(), "pod0") {
		t.Errorf("got error %v", err)
	}
}

// Fragments that a stack makes and puts together are counted, in both families.
func TestStacksCountFragments(t *testing.T) {
	t.Parallel()
	require.Namespaces(t)
	for _, family := range []result.Family{result.IPv4, result.IPv6} {
		t.Run(string(family), func(t *testing.T) {
			o := observed(t, "routed", family)
			before, err := o.Stacks(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for where, s := range before {
				if s != (testbed.Stack{}) {
					t.Errorf("unused, %s has counted %+v", where, s)
				}
			}
			// A packet that the path refuses is no fragment.
			if err := o.Fit(t.Context(), o.Pods()[0], o.Pods()[2], 1501); err == nil {
				t.Error("1501 bytes were not refused")
			}
			if err := fragment(t, o); err != nil {
				t.Fatal(err)
			}
			after, err := o.Stacks(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if s := after[network.InPod(0)]; s.FragmentsMade < 2 || s.Reassembled < 1 {
				t.Errorf("the client's pod has counted %+v", s)
			}
			if s := after[network.InPod(2)]; s.FragmentsMade < 2 || s.Reassembled < 1 {
				t.Errorf("the server's pod has counted %+v", s)
			}
			if s := after[network.InNode(0)]; s != (testbed.Stack{}) {
				t.Errorf("the first node has counted %+v", s)
			}
		})
	}
}

// BenchmarkCounters reads the counters of a lab of two nodes with two pods each.
func BenchmarkCounters(b *testing.B) {
	require.Namespaces(b)
	o := observed(b, "vxlan", "")
	for b.Loop() {
		if _, err := o.Counters(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStacks reads what the IP stacks of the same lab have counted.
func BenchmarkStacks(b *testing.B) {
	require.Namespaces(b)
	o := observed(b, "vxlan", "")
	for b.Loop() {
		if _, err := o.Stacks(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTap opens and closes a tap on all nodes and pods of the same lab.
func BenchmarkTap(b *testing.B) {
	require.Namespaces(b)
	o := observed(b, "vxlan", "")
	for b.Loop() {
		tap, err := o.Tap(b.Context(), everywhere(o))
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := tap.Packets(); err != nil {
			b.Fatal(err)
		}
		if err := tap.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// fragment sends a datagram larger than the MTU from the first pod to the third and back.
func fragment(t *testing.T, o testbed.Observer) error {
	t.Helper()
	const size = 3000
	client, server := inside(t, o.Pods()[0]), inside(t, o.Pods()[2])
	at := o.Endpoint(o.Pods()[0], o.Pods()[2], last(o.Pods()[2]))
	var listener, caller *net.UDPConn
	err := errors.Join(
		server.Do(func() (err error) {
			listener, err = net.ListenUDP("udp", &net.UDPAddr{Port: int(at.Port())})
			return err
		}),
		client.Do(func() (err error) {
			caller, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(at))
			return err
		}))
	if err != nil {
		return err
	}
	defer listener.Close()
	defer caller.Close()
	soon := time.Now().Add(5 * time.Second)
	buffer := make([]byte, 2*size)
	if err := errors.Join(listener.SetDeadline(soon), caller.SetDeadline(soon)); err != nil {
		return err
	}
	if _, err := caller.Write(make([]byte, size)); err != nil {
		return err
	}
	n, back, err := listener.ReadFromUDPAddrPort(buffer)
	if err != nil {
		return err
	}
	if _, err := listener.WriteToUDPAddrPort(buffer[:n], back); err != nil {
		return err
	}
	if n, err := caller.Read(buffer); err != nil || n != size {
		return fmt.Errorf("%d bytes came back: %w", n, err)
	}
	return nil
}

// inside holds the namespace of a pod.
func inside(t *testing.T, p testbed.Pod) *netns.Namespace {
	t.Helper()
	ns, err := netns.Of(testbedtest.StartPeer(t, p).PID())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return ns
}
