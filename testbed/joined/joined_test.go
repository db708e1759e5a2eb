package joined_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/joined"
	"netdelta/testbed/lab"
	"netdelta/testbed/vm"
	"netdelta/testbed/vm/image"
	"netdelta/unit"
)

// mtu is the MTU of the wire between the guests.
const mtu = 9000

// boot boots two guests with a wire between them.
func boot(t *testing.T) *joined.Driver {
	t.Helper()
	require.Guests(t)
	i, err := image.Build(t.Context(), image.Options{})
	var lacks *testbed.UnsupportedError
	if errors.As(err, &lacks) {
		require.Need(t, lacks.Need, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "netdelta")
	require.Program(t, "netdelta-agent", program)
	machines, nodes := make([]vm.Machine, 2), make([]joined.Node, 2)
	for w := range 1 {
		a, b, err := vm.Wire()
		if err != nil {
			t.Fatal(err)
		}
		for n, end := range []*os.File{a, b} {
			defer func() { _ = end.Close() }()
			mac := fmt.Sprintf("52:54:00:00:%02x:%02x", n, w+1)
			machines[n].Program = program
			machines[n].Links = append(machines[n].Links, vm.Link{MAC: mac, End: end, MTU: mtu})
			nodes[n].Wires = append(nodes[n].Wires, []string{mac})
		}
	}
	for n, m := range machines {
		g, err := vm.Boot(t.Context(), i, m)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Close() }) // it ends with the test in any case
		p, err := g.Exec(context.WithoutCancel(t.Context()), vm.Command{Path: "/netdelta", Args: []string{joined.Verb}})
		if err != nil {
			t.Fatal(err)
		}
		if nodes[n].Machine, err = joined.Connect(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	return joined.NewDriver("guests", network.Catalogue(), nodes)
}

// TestNetworks: networks whose nodes are machines carry TCP and UDP and packets of the full size, go the way that they say, and leave the
// machines as they were.
func TestNetworks(t *testing.T) {
	t.Parallel()
	require.Tool(t, "iperf3")
	driver := spaces(t)
	for _, family := range []result.Family{result.IPv4, result.IPv6} {
		for _, name := range []string{"host", "routed", "vxlan", "macvlan"} {
			t.Run(name+"-"+string(family), func(t *testing.T) { testNetwork(t, driver, "veth", name, family) })
		}
	}
	t.Run("refused", func(t *testing.T) { testRefused(t, driver) })
}

// TestWireInGuests: the same holds between kernels of their own.
func TestWireInGuests(t *testing.T) {
	driver := boot(t)
	testNetwork(t, driver, "device", "vxlan", result.IPv6)
	if _, err := driver.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "host", Link: testbed.Link{MTU: unit.Bytes(60000)}}); err == nil {
		t.Error("a card takes an MTU of 60000")
	}
}

// testNetwork tries a network over cards of a kind.
func testNetwork(t *testing.T, driver *joined.Driver, kind, name string, family result.Family) {
	spec := testbed.Spec{Nodes: 2, PodsPerNode: 1, Family: family, Link: testbed.Link{MTU: mtu}, Network: name}
	if err := driver.Supports(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	opened, err := driver.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	bed := opened.Instruments().Observer
	defer func() {
		if err := errors.Join(bed.Close(), bed.Close()); err != nil {
			t.Error(err)
		}
	}()
	client, server := bed.Pods()[0], bed.Pods()[1]
	before, err := bed.Counters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	talk(t, bed, client, server, "-n", "512K", "-w", "32K")
	talk(t, bed, client, server, "-u", "-b", "2M", "-n", "128K", "-l", "1000")
	after, err := bed.Counters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// When iperf3 ends it leaves behind what is still in its socket's buffer, which is kept small.
	const least = 384 << 10
	path := bed.Path(client, server, network.TCP)
	if len(path) == 0 {
		t.Fatal("no device is on the way")
	}
	for _, h := range path {
		moved := after[h.Device].ReceivedBytes - before[h.Device].ReceivedBytes
		if h.Sends {
			moved = after[h.Device].SentBytes - before[h.Device].SentBytes
		}
		if moved < least {
			t.Errorf("%s moved %d bytes of the 640 KiB that were handed over, less than %d", h, moved, least)
		}
	}
	links, err := bed.Links(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cards := 0
	for _, l := range links {
		if strings.HasPrefix(l.Where, "node") && l.Kind == kind && l.Name == "eth0" && l.MTU == mtu {
			cards++
		}
	}
	if cards != 2 {
		t.Errorf("the nodes have %d network cards with an MTU of %d: %v", cards, mtu, links)
	}
	fits(t, bed, client, server)
}

// talk sends from one pod to another by iperf3.
func talk(t *testing.T, bed testbed.Testbed, client, server testbed.Pod, args ...string) {
	t.Helper()
	first, _ := server.Ports()
	at := bed.Endpoint(client, server, first)
	s, err := server.Start(t.Context(), testbed.Command{Path: "/bin/iperf3", Args: []string{"-s", "-1", "--forceflush", "-p", fmt.Sprint(first)}})
	if err != nil {
		t.Fatal(err)
	}
	awaitListening(t, s)
	c, err := client.Start(t.Context(), testbed.Command{Path: "/bin/iperf3", Args: append([]string{"-c", at.Addr().String(), "-p", fmt.Sprint(at.Port())}, args...)})
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	_, _ = said.ReadFrom(c) // Wait tells how it ended
	if err := c.Wait(); err != nil {
		t.Errorf("iperf3 %s: %v: %s %s", strings.Join(args, " "), err, said.String(), c.Stderr())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// awaitListening waits until a server says that it listens, and reads what else it says.
func awaitListening(t *testing.T, s testbed.Process) {
	t.Helper()
	var said bytes.Buffer
	b := make([]byte, 1024)
	for !strings.Contains(said.String(), "listening") {
		n, err := s.Read(b)
		said.Write(b[:n])
		if err != nil {
			t.Fatalf("the server ended: %v: %s", s.Wait(), said.String())
		}
	}
	go func() { _, _ = io.Copy(io.Discard, s) }()
}

// fits: the largest packet arrives whole, and a larger one is refused.
func fits(t *testing.T, bed testbed.Observer, client, server testbed.Pod) {
	t.Helper()
	plan := bed.Plan()
	tap, err := bed.Tap(t.Context(), []network.Space{plan.Pods[1].In})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tap.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := bed.Fit(t.Context(), client, server, plan.MTU); err != nil {
		t.Fatal(err)
	}
	require.Eventually(t, 20*time.Second, fmt.Sprintf("a packet of %d bytes arrives", plan.MTU), func() bool {
		seen, _, err := tap.Packets()
		require.NoError(t, err)
		return slices.ContainsFunc(seen, func(p testbed.Packet) bool { return !p.Outgoing && p.Length >= plan.MTU })
	})
	var large *testbed.TooLargeError
	if err := bed.Fit(t.Context(), client, server, plan.MTU+1); !errors.As(err, &large) || large.MTU != plan.MTU {
		t.Errorf("a packet of %d bytes: %v", plan.MTU+1, err)
	}
}

// testRefused: what can't be is refused, with the type that it has, and leaves nothing behind.
func testRefused(t *testing.T, driver *joined.Driver) {
	spec := testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "host"}
	bonds := spec
	bonds.Conditions = result.Conditions{LinkCount: 2, BondMode: network.ModeXOR}
	var not *network.NotPossibleError
	if err := driver.Supports(t.Context(), bonds); !errors.As(err, &not) || !strings.Contains(err.Error(), "--nic take:eth2+eth3") {
		t.Errorf("bonds over one card: %v", err)
	}
	three := spec
	three.Nodes = 3
	if _, err := driver.Open(t.Context(), three); err == nil {
		t.Error("three nodes on two machines")
	}
	var beds []testbed.Testbed
	for range wiresOfSpaces {
		bed, err := driver.Open(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		beds = append(beds, bed)
	}
	if _, err := driver.Open(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "wires") {
		t.Errorf("another testbed than there are wires: %v", err)
	}
	for _, bed := range beds {
		if err := bed.Close(); err != nil {
			t.Error(err)
		}
		if _, err := bed.Links(t.Context()); !errors.Is(err, lab.ErrClosed) {
			t.Errorf("a closed testbed lists its links: %v", err)
		}
		if at := bed.Endpoint(nil, nil, 1); at != (netip.AddrPort{}) {
			t.Errorf("no pods have the endpoint %s", at)
		}
	}
}
