package testbedtest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed"
)

// Suite is a driver that is put to the test.
type Suite struct {
	Driver testbed.Provider
	// Networks are those that live swaps are tried with, in this order, as far as they are supported. The first one is.
	Networks []string
	// ReachByPod tells whether in the named network pods are reached at their own addresses, so that connections live
	// through a swap to it.
	ReachByPod func(network string) bool
	// Found says that nodes, links and processes are not this machine's, as in a cluster: links are what they are, pods have addresses once
	// something runs in them, and processes have no numbers here. What is about these is left out.
	Found bool
	// Elsewhere says that processes have the numbers of another machine.
	Elsewhere bool
	// OneNode says that there is one node, and that pods stay on the network that they were made on.
	OneNode bool

	family result.Family // of the testbeds under way
}

// Run puts a driver to the test, with all that concerns the network under each version of IP.
func Run(t *testing.T, s Suite) {
	t.Run("processes", s.testProcesses)
	t.Run("close", s.testClose)
	t.Run("bad-input", s.testBadInput)
	for _, family := range []result.Family{result.IPv4, result.IPv6} {
		t.Run(string(family), func(t *testing.T) {
			t.Parallel() // swaps wait for the kernel most of the time
			of := s
			of.family = family
			of.Networks = of.supported(t)
			if !s.Found && !s.OneNode {
				t.Run("observe", of.testObserve)
			}
			t.Run("two-at-once", of.testTwoAtOnce)
			if !s.OneNode {
				t.Run("swap", of.testSwap)
			}
		})
	}
}

// supported returns the networks that the driver supports with the family. It skips the test if there are none.
func (s Suite) supported(t *testing.T) []string {
	t.Helper()
	var names []string
	var lacking error
	for _, name := range s.Networks {
		err := s.Driver.Supports(t.Context(), testbed.Spec{Network: name, Family: s.family})
		switch {
		case err == nil:
			names = append(names, name)
		case errors.Is(err, testbed.ErrUnsupported):
			lacking = err
		default:
			t.Fatal(err)
		}
	}
	require.Need(t, fmt.Sprintf("a network with %s (%v)", s.family, lacking), len(names) > 0)
	return names
}

// open opens a testbed on the first network and closes it with the test.
func (s Suite) open(t *testing.T, podsOutlive bool) testbed.Testbed {
	t.Helper()
	spec := testbed.Spec{Nodes: 2, PodsPerNode: 2, Family: s.family, Network: s.Networks[0], PodsOutlive: podsOutlive}
	if s.OneNode {
		spec.Nodes, spec.PodsPerNode, spec.PodsOutlive = 1, 4, false
	}
	tb, err := s.Driver.Open(t.Context(), spec)
	require.NoError(t, err)
	require.Closes(t, tb)
	return tb
}

func (s Suite) testProcesses(t *testing.T) {
	pod := s.open(t, true).Pods()[0]
	t.Run("ends-with-its-input", func(t *testing.T) {
		p := StartPeer(t, pod)
		if _, err := p.Progress(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := p.Close(); err != nil {
				t.Errorf("close a process that ends by itself: %v", err)
			}
		}
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
		if err := p.Kill(); err != nil {
			t.Errorf("kill a process that has ended: %v", err)
		}
	})
	t.Run("ignores-the-end-of-its-input", func(t *testing.T) {
		p := StartPeer(t, pod)
		require.NoError(t, p.IgnoreEOF())
		if err := p.Close(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("close a process that had to be killed: got error %v", err)
		}
		if !s.Found && !s.Elsewhere {
			gone(t, p.PID())
		}
	})
	t.Run("fails", func(t *testing.T) {
		p := StartPeer(t, pod)
		require.NoError(t, p.Die(strings.Repeat("x", 20_000)+"the reason", 7))
		err := p.Wait()
		if err == nil || !strings.Contains(err.Error(), "exit status 7") || !strings.HasSuffix(err.Error(), "the reason") {
			t.Errorf("a process that failed: got error %v", err)
		}
		if said := p.Stderr(); len(said) > 8<<10 || !strings.HasSuffix(said, "the reason") {
			t.Errorf("kept %d bytes of standard error, want the last 8 KiB at most", len(said))
		}
		if _, err := p.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("read from a process that has ended: got error %v, want end of file", err)
		}
		if _, err := io.Copy(p, strings.NewReader(strings.Repeat("x", 1<<17))); err == nil {
			t.Error("wrote to a process that has ended")
		}
	})
	t.Run("environment", func(t *testing.T) {
		env, err := StartPeer(t, pod).Environment()
		require.NoError(t, err)
		if os.Getenv(secret) == "" || strings.Contains(env, secret) || !strings.Contains(env, Role("peer")) {
			t.Errorf("the environment is %q", env)
		}
	})
	t.Run("processors", func(t *testing.T) {
		status, err := StartPeer(t, pod, 0).ReadFile("/proc/self/status")
		require.NoError(t, err)
		if !strings.Contains(status, "Cpus_allowed_list:\t0\n") {
			t.Errorf("a process pinned to processor 0 has the status %s", status)
		}
	})
	t.Run("cannot-start", func(t *testing.T) {
		for _, c := range []struct {
			cmd  testbed.Command
			says string
		}{
			{testbed.Command{Path: "/nonexistent/program"}, "no such file"},
			{testbed.Command{Path: "sleep"}, "absolute"},
			{testbed.Command{Path: "/bin/sleep", CPUs: []int{-1}}, "processor -1"},
			{testbed.Command{Path: "/bin/sleep", CPUs: []int{1 << 20}}, "processor 1048576"},
			{testbed.Command{Path: "/bin/sleep", CPUs: []int{1023}}, "pin to processors"},
		} {
			p, err := pod.Start(t.Context(), c.cmd)
			if err == nil {
				_ = p.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), pod.Name()) {
				t.Errorf("start %+v: got error %v, want one that names the pod and says %q", c.cmd, err, c.says)
			}
		}
	})
}

// gone waits for a process to be gone.
func gone(t *testing.T, pid int) {
	t.Helper()
	path := fmt.Sprintf("/proc/%d", pid)
	require.Eventually(t, 5*time.Second, path+" is gone", func() bool {
		_, err := os.Stat(path)
		return errors.Is(err, fs.ErrNotExist)
	})
}

// testClose closes a testbed with all kinds of processes in it.
func (s Suite) testClose(t *testing.T) {
	tb := s.open(t, true)
	pods := tb.Pods()
	peers := StartPeers(t, pods...)
	idle, deaf, stopped, parent := peers[0], peers[1], peers[2], peers[3]
	require.NoError(t, deaf.IgnoreEOF())
	require.NoError(t, stopped.Suspend())
	child, err := parent.Fork(600)
	require.NoError(t, err)
	require.NoError(t, parent.Close())
	for range 3 {
		require.NoError(t, tb.Close())
	}
	if !s.Found && !s.Elsewhere {
		for _, pid := range []int{idle.PID(), deaf.PID(), stopped.PID(), parent.PID(), child} {
			gone(t, pid)
		}
	}
	if err := idle.Wait(); err == nil {
		t.Error("a process that was killed ended without an error")
	}
	if _, err := pods[0].Start(t.Context(), testbed.Command{Path: "/bin/true"}); err == nil {
		t.Error("started a process in a closed testbed")
	}
	if err := tb.Swap(t.Context(), s.Networks[0]); err == nil {
		t.Error("swapped the network of a closed testbed")
	}
	if _, err := tb.Links(t.Context()); err == nil {
		t.Error("listed the links of a closed testbed")
	}
}

func (s Suite) testObserve(t *testing.T) {
	tb := s.open(t, true)
	spec := tb.Spec()
	if spec.Nodes != 2 || spec.PodsPerNode != 2 || spec.Family != s.family || spec.Network != s.Networks[0] || spec.Link.MTU != 1500 {
		t.Errorf("the spec of the testbed is %+v", spec)
	}
	names, addresses := map[string]bool{}, map[netip.Addr]bool{}
	for _, p := range tb.Pods() {
		names[p.Name()], addresses[p.Address()] = true, true
		if p.Address().Is6() != (s.family == result.IPv6) {
			t.Errorf("%s has the address %s", p.Name(), p.Address())
		}
		if first, last := p.Ports(); first == 0 || last < first {
			t.Errorf("%s has the ports %d to %d", p.Name(), first, last)
		}
	}
	if len(names) != 4 || len(addresses) != 4 {
		t.Errorf("four pods have the names %v and addresses %v", names, addresses)
	}
	links, err := tb.Links(t.Context())
	require.NoError(t, err)
	devices := 0
	for _, l := range links {
		if l.Network != s.Networks[0] || l.Where == "" || l.Name == "" || l.MTU == 0 {
			t.Errorf("incomplete link %+v", l)
		}
		if l.Kind != "device" && len(l.Offloads) > 0 {
			devices++
		}
	}
	if devices < 4 {
		t.Errorf("%d devices with known offloads for four pods: %+v", devices, links)
	}
	sysctls, err := tb.Sysctls(t.Context())
	require.NoError(t, err)
	for _, name := range []string{"net.ipv4.tcp_congestion_control", "net.ipv4.tcp_rmem", "net.ipv4.tcp_timestamps", "net.ipv4.ip_local_port_range"} {
		if sysctls[name] == "" {
			t.Errorf("the setting %s is not recorded", name)
		}
	}
	if other := s.open(t, true).Pods()[0]; tb.Endpoint(tb.Pods()[0], other, 20000).IsValid() {
		t.Error("there is a way to the pod of another testbed")
	}
}

func (s Suite) testBadInput(t *testing.T) {
	good := testbed.Spec{Nodes: 1, PodsPerNode: 1, Network: s.Networks[0]}
	for name, c := range map[string]struct {
		ofLinks bool
		change  func(*testbed.Spec)
		says    string
	}{
		"no-nodes":        {false, func(x *testbed.Spec) { x.Nodes = 0 }, "0 nodes"},
		"negative-pods":   {false, func(x *testbed.Spec) { x.PodsPerNode = -1 }, "-1 pods"},
		"negative-mtu":    {true, func(x *testbed.Spec) { x.Link.MTU = -1 }, "MTU of -1"},
		"huge-mtu":        {true, func(x *testbed.Spec) { x.Link.MTU = 1 << 20 }, "MTU of 1048576"},
		"negative-rate":   {true, func(x *testbed.Spec) { x.Link.Rate = -1 }, "rate of -1"},
		"unknown-family":  {false, func(x *testbed.Spec) { x.Family = "ipv5" }, "family \"ipv5\": need ipv4 or ipv6"},
		"mtu-below-ipv6":  {true, func(x *testbed.Spec) { x.Family, x.Link.MTU = result.IPv6, 1279 }, "need 1280"},
		"unknown-network": {false, func(x *testbed.Spec) { x.Network += "x" }, "did you mean \"" + good.Network},
	} {
		if c.ofLinks && (s.Found || s.OneNode) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			bad := good
			c.change(&bad)
			tb, err := s.Driver.Open(t.Context(), bad)
			if err == nil {
				_ = tb.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("open %+v: got error %v, want one that says %q", bad, err, c.says)
			}
		})
	}
	t.Run("swap-without-outliving-pods", func(t *testing.T) {
		if err := s.open(t, false).Swap(t.Context(), s.Networks[0]); err == nil {
			t.Error("swapped")
		}
	})
	t.Run("swap-to-unknown", func(t *testing.T) {
		tb := s.open(t, true)
		if err := tb.Swap(t.Context(), "no-such-network"); err == nil {
			t.Error("swapped")
		}
		s.reaches(t, tb)
	})
}

// testTwoAtOnce has two testbeds with the same addresses up at once.
func (s Suite) testTwoAtOnce(t *testing.T) {
	a, b := s.open(t, false), s.open(t, false)
	s.reaches(t, a)
	s.reaches(t, b)
	require.NoError(t, a.Close())
	s.reaches(t, b)
}

// reaches shows that the first pod reaches the last one.
func (s Suite) reaches(t *testing.T, tb testbed.Testbed) {
	t.Helper()
	pods := tb.Pods()
	peers := StartPeers(t, pods[0], pods[len(pods)-1])
	client, server := peers[0], peers[1]
	defer client.Close()
	defer server.Close()
	_, port := server.Pod.Ports()
	require.NoError(t, server.Serve("tcp", port))
	if _, err := client.Exchange("tcp", tb.Endpoint(client.Pod, server.Pod, port), 100, 3); err != nil {
		t.Fatal(err)
	}
}
