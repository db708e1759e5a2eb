package lab_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/testbedtest"
)

// under opens a lab with one network under conditions.
func under(t testing.TB, spec testbed.Spec) *lab.Testbed {
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
	spec.Nodes = 2
	if spec.PodsPerNode == 0 {
		spec.PodsPerNode = 2
	}
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

// A guard admits only pods. Without a guard the same stranger gets in, or the test would show nothing.
func TestPolicyDropsStrangers(t *testing.T) {
	t.Parallel()
	for _, family := range []result.Family{result.IPv4, result.IPv6} {
		for _, policy := range []string{result.None, result.PolicyIPTables, result.PolicyNFTables, result.PolicyEBPF} {
			t.Run(fmt.Sprint(family, "/", policy), func(t *testing.T) {
				t.Parallel()
				tb := under(t, testbed.Spec{Network: "bridge", Family: family, Conditions: result.Conditions{Policy: policy}.Plain()})
				pods := tb.Pods()
				client, server := inside(t, pods[0]), inside(t, pods[2])
				stranger := netip.MustParseAddr("203.0.113.7")
				if family == result.IPv6 {
					stranger = netip.MustParseAddr("2001:db8:1::7")
				}
				acquaint(t, client, server, stranger)
				if !knocks(t, client, server, pods[0].Address(), pods[2]) {
					t.Errorf("a pod does not get in")
				}
				if got := knocks(t, client, server, stranger, pods[2]); got != (policy == result.None) {
					t.Errorf("a stranger gets in: %v", got)
				}
			})
		}
	}
}

// acquaint gives a client another address, and its server a way back to it.
func acquaint(t *testing.T, client, server *netns.Namespace, a netip.Addr) {
	t.Helper()
	alone := &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
	err := client.Do(func() error {
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return netlink.AddrAdd(l, &netlink.Addr{IPNet: alone, Flags: unix.IFA_F_NODAD})
	})
	err = errors.Join(err, server.Do(func() error {
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: alone})
	}))
	if err != nil {
		t.Fatal(err)
	}
}

// knocks tells whether datagrams from an address of a client get in to a server.
func knocks(t *testing.T, client, server *netns.Namespace, from netip.Addr, to testbed.Pod) bool {
	t.Helper()
	var in, out *net.UDPConn
	err := server.Do(func() (err error) {
		// A program that starts just then can hold the port of the knock before for a moment: each has its own.
		in, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(to.Address(), 0)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	port := in.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	err = client.Do(func() (err error) {
		out, err = net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), net.UDPAddrFromAddrPort(netip.AddrPortFrom(to.Address(), port)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	const attempts = 10
	for range attempts {
		if _, err := out.Write([]byte("knock")); err != nil {
			t.Fatal(err)
		}
		if err := in.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		var b [16]byte
		if _, sender, err := in.ReadFromUDPAddrPort(b[:]); err == nil && sender.Addr().Unmap() == from {
			return true
		}
	}
	return false
}

// A pod that outlives its networks has the rules of the present one, once.
func TestPolicyUnderSwap(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{result.PolicyIPTables, result.PolicyNFTables} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			const rules = 40
			tb := under(t, testbed.Spec{Network: "bridge", PodsOutlive: true, Conditions: result.Conditions{Policy: policy, PolicyRules: rules}})
			pod := inside(t, tb.Pods()[1])
			for _, next := range []string{"routed", "bridge", "macvlan"} {
				if got := dropping(t, pod, policy); got != rules {
					t.Fatalf("%d rules that drop, want %d", got, rules)
				}
				if err := tb.Swap(t.Context(), next); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// dropping counts the rules in a namespace that drop packets.
func dropping(t *testing.T, ns *netns.Namespace, policy string) int {
	t.Helper()
	command := []string{"nft", "list", "ruleset"}
	if policy == result.PolicyIPTables {
		command = []string{"iptables-save"}
	}
	path := require.Tool(t, command[0])
	var out []byte
	err := ns.Do(func() (err error) {
		out, err = exec.Command(path, command[1:]...).CombinedOutput()
		return err
	})
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.Count(string(out), "-j DROP") + strings.Count(string(out), "saddr 100.64.")
}

// What thousands of rules cost shows: the same round trips take longer than with ten.
func TestPolicyCostWhenQuiet(t *testing.T) {
	require.Quiet(t)
	for _, policy := range []string{result.PolicyIPTables, result.PolicyNFTables} {
		t.Run(policy, func(t *testing.T) {
			const many = 4000 // on an emulated machine a thousand hardly show: everything else costs so much there
			ratio := ofRoundTrips(t, result.Conditions{Policy: policy, PolicyRules: 10}, result.Conditions{Policy: policy, PolicyRules: many})
			t.Logf("%d rules cost %.2f times what 10 do", many, ratio)
			if ratio < 1.1 {
				t.Errorf("%d rules cost %.2f times what 10 do, want a difference", many, ratio)
			}
		})
	}
}

// ofRoundTrips is how many times longer round trips take under the second conditions: the median of many turns of both.
func ofRoundTrips(t *testing.T, a, b result.Conditions) float64 {
	t.Helper()
	var clients [2]*testbedtest.Peer
	var at [2]netip.AddrPort
	for i, c := range []result.Conditions{a, b} {
		tb := under(t, testbed.Spec{Network: "bridge", PodsPerNode: 1, Conditions: c})
		pods := tb.Pods()
		server := testbedtest.StartPeer(t, pods[1])
		port, _ := pods[1].Ports()
		if err := server.Serve("udp", port); err != nil {
			t.Fatal(err)
		}
		clients[i], at[i] = testbedtest.StartPeer(t, pods[0]), tb.Endpoint(pods[0], pods[1], port)
	}
	return ratioOfTurns(t, func(i int) error {
		_, err := clients[i].Exchange("udp", at[i], 64, 100)
		return err
	})
}
