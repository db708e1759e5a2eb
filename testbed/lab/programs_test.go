package lab_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"netdelta/internal/netns"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/testbedtest"
)

// One look decides over a packet, however many rules there are.
func TestGuardCostWhenQuiet(t *testing.T) {
	require.Quiet(t)
	few, many := result.Conditions{Policy: result.PolicyEBPF, PolicyRules: 10}, result.Conditions{Policy: result.PolicyEBPF, PolicyRules: 10_000}
	// Two builds may differ by more than this, on a busy machine, for reasons of their own. A look at each rule would always show.
	for range 3 {
		ratio := ofRoundTrips(t, few, many)
		t.Logf("10000 rules cost %.2f times what 10 do", ratio)
		if ratio <= 1.5 {
			return
		}
	}
	t.Error("10000 rules cost more than 10 do in three pairs of builds")
}

// After a swap pods are guarded at the devices of the new network.
func TestGuardUnderSwap(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{result.None, result.PolicyEBPF} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			tb := under(t, testbed.Spec{Network: "bridge", PodsOutlive: true, Conditions: result.Conditions{Policy: policy}.Plain()})
			pods := tb.Pods()
			client, server, stranger := inside(t, pods[0]), inside(t, pods[2]), netip.MustParseAddr("203.0.113.7")
			for _, name := range []string{"macvlan", "bridge"} {
				if err := tb.Swap(t.Context(), name); err != nil {
					t.Fatal(err)
				}
				acquaint(t, client, server, stranger)
				if !knocks(t, client, server, pods[0].Address(), pods[2]) {
					t.Errorf("%s: a pod does not get in", name)
				}
				if got := knocks(t, client, server, stranger, pods[2]); got != (policy == result.None) {
					t.Errorf("%s: a stranger gets in: %v", name, got)
				}
			}
		})
	}
}

// Datagrams that are cut up on their way are translated whole, there and back.
func TestBalancedFragments(t *testing.T) {
	t.Parallel()
	for _, family := range []result.Family{result.IPv4, result.IPv6} {
		for _, name := range []string{"routed", "bridge"} {
			t.Run(fmt.Sprint(name, "-", family), func(t *testing.T) {
				tb := under(t, testbed.Spec{Network: name, Family: family, Conditions: result.Conditions{Service: result.ServiceEBPF}.Plain()})
				pods := tb.Pods()
				port, _ := pods[2].Ports()
				at := tb.Endpoint(pods[0], pods[2], port)
				if at.Addr() == pods[2].Address() {
					t.Fatalf("the server is reached at its own address %s", at)
				}
				before, err := tb.Stacks(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				echoes(t, inside(t, pods[0]), inside(t, pods[2]), at, pods[2].Address(), 20)
				after, err := tb.Stacks(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, pod := range []int{0, 2} {
					if in := network.InPod(pod); after[in].Reassembled-before[in].Reassembled < 20 {
						t.Errorf("%s put %d datagrams together, want 20", in, after[in].Reassembled-before[in].Reassembled)
					}
				}
			})
		}
	}
}

// echoes sends large datagrams to a server that sends them back, and wants each to come from where it was sent.
func echoes(t *testing.T, client, server *netns.Namespace, at netip.AddrPort, address netip.Addr, count int) {
	t.Helper()
	var in, out *net.UDPConn
	err := server.Do(func() (err error) {
		in, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(address, at.Port())))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	go func() {
		b := make([]byte, 1<<16)
		for {
			n, from, err := in.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			_, _ = in.WriteToUDPAddrPort(b[:n], from) // what gets lost is missed
		}
	}()
	err = client.Do(func() (err error) {
		out, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(at))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := out.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		sent, got := bytes.Repeat([]byte{byte(i), byte(i >> 8), 7}, 1700), make([]byte, 1<<16)
		if _, err := out.Write(sent); err != nil {
			t.Fatal(err)
		}
		// A connected socket takes datagrams from nowhere else.
		if n, err := out.Read(got); err != nil || !bytes.Equal(got[:n], sent) {
			t.Fatalf("datagram %d: got %d bytes and error %v", i, n, err)
		}
	}
}

// Connections whose sockets are joined live through swaps, to networks that join none and back, and lose nothing.
func TestJoinedSocketsUnderSwap(t *testing.T) {
	t.Parallel()
	for _, family := range []result.Family{result.IPv4, result.IPv6} {
		t.Run(string(family), func(t *testing.T) {
			tb := under(t, testbed.Spec{Network: "sockmap", Family: family, PodsOutlive: true})
			pods := tb.Pods()
			client, server := testbedtest.StartPeer(t, pods[0]), testbedtest.StartPeer(t, pods[1])
			port, _ := pods[1].Ports()
			if err := server.Serve("tcp", port); err != nil {
				t.Fatal(err)
			}
			if err := client.Connect(tb.Endpoint(pods[0], pods[1], port), 30_000); err != nil {
				t.Fatal(err)
			}
			if moved := carriedBy(t, tb, client, 0); moved > few {
				t.Errorf("the pod of a joined socket sent %d packets", moved)
			}
			for _, name := range []string{"bridge", "sockmap", "sockmap", "routed"} {
				if err := tb.Swap(t.Context(), name); err != nil {
					t.Fatal(err)
				}
				// What was joined before goes by TCP from now on.
				if moved := carriedBy(t, tb, client, 0); moved <= few {
					t.Errorf("after the swap to %s the pod sent %d packets", name, moved)
				}
			}
		})
	}
}

// few is how many packets may move in addition to a connection's own.
const few = 5

// carriedBy is how many packets a pod's device sends while the connection of a client in it carries some messages.
func carriedBy(t *testing.T, tb *lab.Testbed, client *testbedtest.Peer, pod int) uint64 {
	t.Helper()
	device := network.Device{In: network.InPod(pod), Name: "eth0"}
	var sent [2]uint64
	for i := range sent {
		for range 3 {
			if err := client.Advances(time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		counters, err := tb.Counters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sent[i] = counters[device].SentPackets
	}
	return sent[1] - sent[0]
}

// programs is a run that waits to be killed with programs in its lab. It tells the number of one, and its control groups.
func programs() int {
	return say(func() error {
		for _, name := range []string{"ebpf-routed", "xdp", "sockmap"} {
			tb, err := lab.NewDriver(network.Catalogue()).Open(context.Background(), testbed.Spec{Nodes: 2, PodsPerNode: 2, Network: name})
			if err != nil {
				return err
			}
			if _, err := testbedtest.NewPeer(context.Background(), tb.Pods()[0]); err != nil {
				return err
			}
		}
		var ids []string
		infos, err := filepath.Glob("/proc/self/fdinfo/*")
		if err != nil {
			return err
		}
		for _, info := range infos {
			text, err := os.ReadFile(info)
			if err != nil {
				continue
			}
			for line := range strings.Lines(string(text)) {
				if id, found := strings.CutPrefix(line, "prog_id:"); found {
					ids = append(ids, strings.TrimSpace(id))
				}
			}
		}
		slices.Sort(ids)
		fmt.Println(strings.Join(slices.Compact(ids), " "))
		select {}
	}())
}

// Of a run that was killed no program is left, and the clean-up removes its control group.
func TestKilledWithPrograms(t *testing.T) {
	require.Namespaces(t)
	for _, name := range []string{"ebpf-routed", "xdp", "sockmap"} {
		under(t, testbed.Spec{Network: name})
	}
	run, line := play(t, "programs")
	ids := strings.Fields(line)
	if len(ids) < 5 {
		t.Fatalf("a run with programs says %q", line)
	}
	groups := groupsOf(t, run.Process.Pid)
	if len(groups) != 1 {
		t.Fatalf("the run's control groups are %q", groups)
	}
	kill(t, run)
	require.NoError(t, require.Await(30*time.Second, "all programs are gone", func() error {
		if left := slices.DeleteFunc(slices.Clone(ids), gone); len(left) > 0 {
			return fmt.Errorf("programs %q are there", left)
		}
		return nil
	}))
	// Others may clean up at the same time.
	if _, err := lab.Cleanup(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := groupsOf(t, run.Process.Pid); len(left) > 0 {
		t.Errorf("control groups %q are there still", left)
	}
}

// gone tells whether no program has this number.
func gone(id string) bool {
	var number ebpf.ProgramID
	if _, err := fmt.Sscan(id, &number); err != nil {
		return false
	}
	p, err := ebpf.NewProgramFromID(number)
	if err == nil {
		_ = p.Close()
	}
	return errors.Is(err, os.ErrNotExist)
}

// groupsOf are the control groups that a program made.
func groupsOf(t *testing.T, pid int) []string {
	t.Helper()
	var found []string
	mounts, err := os.Open("/proc/mounts")
	if err != nil {
		t.Fatal(err)
	}
	defer mounts.Close()
	for s := bufio.NewScanner(mounts); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 3 || fields[2] != "cgroup2" {
			continue
		}
		all, err := filepath.Glob(filepath.Join(fields[1], "netdelta-*-"+fmt.Sprint(pid)+"-*"))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, all...)
	}
	return found
}
