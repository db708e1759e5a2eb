package path_test

import (
	"context"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"netdelta/internal/netns"
	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube/nodeagent"
	"netdelta/testbed/testbedtest"
	"netdelta/unit"
)

// look is the role of an agent that looks at the namespace that it is started in.
func look() int {
	if err := nodeagent.Serve(os.Stdin, os.Stdout); err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		return 1
	}
	return 0
}

// foreign is a lab whose plan is not known, as a cluster's is not.
type foreign struct {
	testbed.Testbed
	expect   testbed.Encapsulation
	observer *nodeagent.Observer
}

func (f *foreign) Spec() testbed.Spec {
	s := f.Testbed.Spec()
	s.Expect = f.expect
	return s
}

// Instruments implements testbed.Testbed.
func (f *foreign) Instruments() testbed.Instruments { return testbed.Instruments{PathObserver: f} }

func (f *foreign) Endpoint(from, to testbed.Pod, port uint16) netip.AddrPort {
	return f.Testbed.Endpoint(unroled(from), unroled(to), port)
}

// unroled is the lab's own pod.
func unroled(p testbed.Pod) testbed.Pod {
	if r, is := p.(roled); is {
		return r.Pod
	}
	return p
}

func (f *foreign) Watch(ctx context.Context, from, to testbed.Pod) (testbed.Watch, error) {
	return f.observer.Watch(ctx, from, to)
}

func (f *foreign) Count(ctx context.Context, from, to testbed.Pod) (map[network.Device]testbed.Counters, error) {
	return f.observer.Count(ctx, from, to)
}

// roled is a pod in which this test's binary plays the agent.
type roled struct{ testbed.Pod }

func (r roled) Start(ctx context.Context, c testbed.Command) (testbed.Process, error) {
	c.Env = []string{testbedtest.Role("look")}
	return r.Pod.Start(ctx, c)
}

// nodePod is a lab's node as a pod in its own namespace.
type nodePod struct {
	testbed.Pod
	o       testbed.Observer
	name    string
	address netip.Addr
}

func (n nodePod) Name() string        { return n.name }
func (n nodePod) Address() netip.Addr { return n.address }

func (n nodePod) Start(_ context.Context, c testbed.Command) (testbed.Process, error) {
	c.Env = []string{testbedtest.Role("look")}
	in := n.o.(interface {
		Within(name string, f func(fd int) error) error
	})
	return testbedtest.StartLocal(c, func(start func() error) error {
		return in.Within(n.name, func(fd int) error { return netns.Within(fd, start) })
	})
}

// watched makes a cluster of a lab, with agents on so many of its nodes.
func watched(t testing.TB, o testbed.Observer, reach testbed.Reach, expect testbed.Encapsulation, nodes int) *foreign {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	agents := map[string]*nodeagent.Agent{}
	for i, address := range o.Plan().Nodes {
		if i >= nodes {
			break
		}
		name := network.InNode(i).String()
		agents[name], err = nodeagent.Start(t.Context(), nodePod{Pod: o.Pods()[0], o: o, name: name, address: address}, self)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := agents[name].Close(); err != nil {
				t.Error(err)
			}
		})
	}
	f := &foreign{Testbed: o, expect: expect}
	f.observer = nodeagent.NewObserver(f, nodeagent.Config{
		Address: testbed.Pod.Address,
		Program: self, Reach: func() testbed.Reach { return reach },
		HostNetwork: func(p testbed.Pod) bool {
			at := slices.IndexFunc(o.Pods(), func(q testbed.Pod) bool { return q.Name() == p.Name() })
			return o.Plan().Pods[at].In.Kind == network.NodeSpace
		},
		NodeAddress: func(p testbed.Pod) netip.Addr {
			at := slices.IndexFunc(o.Pods(), func(q testbed.Pod) bool { return q.Name() == p.Name() })
			return o.Plan().Nodes[o.Plan().Pods[at].Node]
		},
		Node: func(_ context.Context, name string) (*nodeagent.Agent, error) { return agents[name], nil },
	})
	t.Cleanup(func() {
		if err := f.observer.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// seenProof proves the way of a load by what can be seen.
func (e *testEnds) seenProof(t testing.TB, p *path.UnplannedProver, protocol string, size, count int) result.Path {
	t.Helper()
	found, err := p.Prove(t.Context(), roled{e.client.Pod}, roled{e.server.Pod}, protocolOf(protocol), e.trip(t, protocol, size, count))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Without its plan, the networks of a lab are recognised by what can be seen of them: between nodes and on one.
func TestObservedNetworks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		network string
		reach   testbed.Reach
		wrap    string // between nodes
		expect  testbed.Encapsulation
		passes  []string // devices that requests between nodes must be seen on
	}{
		{"host", testbed.ReachHost, "none", "", []string{"node0/eth0", "node1/eth0"}},
		{"routed", testbed.ReachPod, "none", testbed.InClear, []string{"pod-client/eth0", "node0/veth0", "node0/eth0", "node1/eth0", "pod-server/eth0"}},
		{"vxlan-routed", testbed.ReachPod, "vxlan", testbed.InVXLAN, []string{"pod-client/eth0", "node0/br0", "node0/vxlan0", "node0/eth0", "node1/eth0", "pod-server/eth0"}},
		{"vxlan", testbed.ReachPod, "vxlan", "", []string{"node0/vxlan0", "node0/eth0"}},
		{"ipip", testbed.ReachPod, "ipip", testbed.InIPIP, []string{"node0/eth0"}},
		{"gre", testbed.ReachPod, "gre", testbed.InGRE, []string{"node0/eth0"}},
		{"geneve", testbed.ReachPod, "geneve", testbed.InGeneve, []string{"node0/eth0"}},
		{"wireguard", testbed.ReachPod, "wireguard", testbed.InWireGuard, []string{"node0/eth0"}},
		{"bridge-nat", testbed.ReachNodePort, "none", "", []string{"node0/eth0", "node1/eth0"}},
	} {
		t.Run(c.network, func(t *testing.T) {
			t.Parallel()
			o := open(t, named(t, c.network), testbed.Spec{})
			p := path.NewUnplannedProver(watched(t, o, c.reach, c.expect, 2))
			for _, protocol := range []string{"udp", "tcp"} {
				for _, to := range []int{1, 2} {
					e := newEnds(t, o, 0, to)
					found := e.seenProof(t, p, protocol, 700, 60)
					e.close(t)
					if !found.OK || len(found.Weak) > 0 {
						t.Errorf("%s to pod%d: OK %v, findings %q, weak %q, notes %q", protocol, to, found.OK, found.Findings, found.Weak, found.Notes)
					}
					want := "none"
					if to == 2 {
						want = c.wrap
						passes(t, found, c.passes)
					}
					if found.Encapsulation != want {
						t.Errorf("%s to pod%d: wrapped in %q, want %q", protocol, to, found.Encapsulation, want)
					}
					if c.reach == testbed.ReachNodePort && to == 2 && !strings.Contains(strings.Join(found.Notes, "\n"), "DNAT") {
						t.Errorf("%s to pod%d: no translation is noted: %q", protocol, to, found.Notes)
					}
				}
			}
		})
	}
}

// passes fails the test unless requests were seen on the devices, in this order.
func passes(t *testing.T, p result.Path, devices []string) {
	t.Helper()
	at := 0
	var all []string
	for _, h := range p.Hops {
		all = append(all, h.Device)
		if at < len(devices) && h.Device == devices[at] {
			at++
		}
		if h.Packets == 0 || h.Bytes == 0 {
			t.Errorf("%s carried nothing", h.Device)
		}
	}
	if at < len(devices) {
		t.Errorf("seen on %q, want %q among them, in this order", all, devices)
	}
}

// A network that is not what is expected of it is found out.
func TestObservedExpectations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		network string
		reach   testbed.Reach
		expect  testbed.Encapsulation
		says    []string
	}{
		{"routed", testbed.ReachPod, testbed.InVXLAN, []string{"the change did not take effect", "encapsulation none, where vxlan is expected"}},
		{"vxlan-routed", testbed.ReachPod, testbed.InClear, []string{"the change did not take effect", "encapsulation vxlan, where none is expected"}},
		{"vxlan-routed", testbed.ReachHost, "", []string{"host networking"}},
	} {
		t.Run(c.network+"-"+string(c.expect), func(t *testing.T) {
			t.Parallel()
			o := open(t, named(t, c.network), testbed.Spec{})
			p := path.NewUnplannedProver(watched(t, o, c.reach, c.expect, 2))
			told(t, newEnds(t, o, 0, 2).seenProof(t, p, "tcp", 700, 60), c.says...)
		})
	}
}

// Without agents on nodes the pods' own devices are held against the load, and the proof says what it lacks.
func TestObservedFromInsideOfPods(t *testing.T) {
	t.Parallel()
	o := open(t, named(t, "vxlan-routed"), testbed.Spec{})
	p := path.NewUnplannedProver(watched(t, o, testbed.ReachPod, testbed.InVXLAN, 0))
	found := newEnds(t, o, 0, 2).seenProof(t, p, "tcp", 700, 60)
	passes(t, found, []string{"pod-client/eth0", "pod-server/eth0"})
	weak := strings.Join(found.Weak, "\n")
	for _, says := range []string{"the devices and packets of node0 were not watched", "the devices and packets of node1 were not watched", "as vxlan, as the change has it, is not verified"} {
		if !found.OK || !strings.Contains(weak, says) {
			t.Errorf("OK %v, findings %q, weak %q lacks %q", found.OK, found.Findings, found.Weak, says)
		}
	}
}

// An agent on one of the nodes sees what passes there.
func TestObservedFromOneNode(t *testing.T) {
	t.Parallel()
	for name, reach := range map[string]testbed.Reach{"vxlan-routed": testbed.ReachPod, "host": testbed.ReachHost} {
		o := open(t, named(t, name), testbed.Spec{})
		p := path.NewUnplannedProver(watched(t, o, reach, "", 1))
		found := newEnds(t, o, 0, 2).seenProof(t, p, "tcp", 700, 60)
		passes(t, found, []string{"node0/eth0"})
		if weak := strings.Join(found.Weak, "\n"); !found.OK || len(found.Weak) != 1 || !strings.Contains(weak, "node1") {
			t.Errorf("%s: OK %v, findings %q, weak %q", name, found.OK, found.Findings, found.Weak)
		}
	}
}

// A load that says it moved more than passed is found out, by the proof and by the audit.
func TestObservedAmounts(t *testing.T) {
	t.Parallel()
	o := open(t, named(t, "routed"), testbed.Spec{})
	p := path.NewUnplannedProver(watched(t, o, testbed.ReachPod, "", 2))
	e := newEnds(t, o, 0, 2)
	run := e.trip(t, "tcp", 700, 60)
	from, to := roled{e.client.Pod}, roled{e.server.Pod}
	lie := func(ctx context.Context) (path.Load, error) {
		l, err := run(ctx)
		l.Requests *= 10
		return l, err
	}
	found, err := p.Prove(t.Context(), from, to, network.TCP, lie)
	if err != nil {
		t.Fatal(err)
	}
	told(t, found, "pod-client/eth0 sent", "bytes of payload must have passed it")
	told(t, found, "node0/eth0 sent", "of the load", "bytes of payload must have passed it")
	for _, c := range []struct {
		share unit.Bytes
		finds int
	}{{1, 0}, {10, 4}} {
		if err := p.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		l, err := run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		a, err := p.End(t.Context(), []path.Moved{{From: from, To: to, Protocol: network.TCP, Requests: c.share * l.Requests, Responses: l.Responses}})
		if err != nil || len(a.Findings) != c.finds {
			t.Errorf("%d times the load: %v, findings %q, want %d", c.share, err, a.Findings, c.finds)
		}
	}
}
