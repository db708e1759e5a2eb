package experiment_test

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/internal/machine"
	"netdelta/internal/require"
	"netdelta/probe/probetest"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload/catalogue"
)

// Busy polling is used, not only asked for: the kernel counts packets that a waiting socket fetched from its device. It can do so
// only with devices that have a queue to poll: veth has one with GRO, and puts packets there that come from a veth without TSO.
func TestBusyPollIsUsed(t *testing.T) {
	require.Namespaces(t)
	cpus, err := machine.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	require.Need(t, "two processors", len(cpus) > 1)
	for _, w := range catalogue.Workloads() {
		if w.Name != "tcp-rr" && w.Name != "udp-rr" {
			continue
		}
		polled := map[time.Duration]uint64{}
		for _, poll := range []time.Duration{0, 200 * time.Microsecond} {
			p := w.Defaults
			p.BusyPoll = poll
			polled[poll] = fetched(t, w.Name, p, cpus[:2])
		}
		t.Logf("%s: %d packets were fetched by polling, %d without", w.Name, polled[200*time.Microsecond], polled[0])
		if polled[0] != 0 || polled[200*time.Microsecond] < 10 {
			t.Errorf("%s: %d packets were fetched by busy polling, and %d without it", w.Name, polled[200*time.Microsecond], polled[0])
		}
	}
}

// fetched runs a workload between two pods, each end on a processor of its own, and returns how many packets their sockets
// fetched from their devices by busy polling.
func fetched(t *testing.T, name string, p result.Params, cpus []int) uint64 {
	t.Helper()
	spec := testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "routed", Conditions: result.Conditions{GRO: result.On, TSO: result.Off}}
	tb, ends := probetest.Lab(t, spec)
	client, server := ends[0], ends[1]
	port, _ := server.Pod().Ports()
	at := netip.AddrPortFrom(server.Pod().Address(), port)
	if _, err := server.Serve(t.Context(), name, p, at, cpus[0]); err != nil {
		t.Fatal(err)
	}
	session, err := client.Dial(t.Context(), name, p, netip.AddrPortFrom(netip.IPv4Unspecified(), 0), at, cpus[1])
	if err != nil {
		t.Fatal(err)
	}
	// On a busy machine the other end may not get its processor in time for a while.
	for range 10 {
		if _, err := client.Burst(t.Context(), session, engine.BurstSpec{Duration: 100 * time.Millisecond, Deadline: 30 * time.Second}); err != nil {
			t.Fatal(err)
		}
	}
	sum := uint64(0)
	for _, pod := range tb.Pods() {
		n, err := busyPolled(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// busyPolled reads how many packets sockets of a pod fetched by busy polling: TcpExt BusyPollRxPackets, of UDP too.
func busyPolled(ctx context.Context, pod testbed.Pod) (uint64, error) {
	p, err := pod.Start(ctx, testbed.Command{Path: "/bin/cat", Args: []string{"/proc/net/netstat"}})
	if err != nil {
		return 0, err
	}
	defer p.Close()
	text, err := io.ReadAll(p)
	if err != nil {
		return 0, err
	}
	lines := strings.Split(string(text), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
		for k, name := range names {
			if name == "BusyPollRxPackets" && k < len(values) {
				return strconv.ParseUint(values[k], 10, 64)
			}
		}
	}
	return 0, fmt.Errorf("the kernel does not count packets fetched by busy polling in %d bytes of /proc/net/netstat", len(text))
}
