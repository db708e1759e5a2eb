package network_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"netdelta/network"
	"netdelta/result"
)

// planned is the plan of a network under conditions, over two nodes with two pods each.
func planned(t *testing.T, name string, family result.Family, c result.Conditions) network.Plan {
	t.Helper()
	n, err := network.Find(network.Catalogue(), name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := n.Plan(topology(t, network.Layout{Family: family, Conditions: c}))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Each namespace in which traffic of pods ends has a guard with as many rules as asked for, and those that let pods in.
func TestPolicyGuardsWhereTrafficEnds(t *testing.T) {
	const rules = 100
	for _, family := range []result.Family{result.IPv4, result.IPv6} {
		for name, want := range map[string]int{"host": 2, "bridge": 4, "routed": 4, "bridge-nat": 4} {
			for _, policy := range []string{result.PolicyIPTables, result.PolicyNFTables} {
				plain := planned(t, name, family, result.Conditions{})
				p := planned(t, name, family, result.Conditions{Policy: policy, PolicyRules: rules})
				var guarded []network.Space
				for _, op := range p.Ops[len(plain.Ops):] {
					in, drops, accepts := guard(t, op)
					guarded = append(guarded, in)
					if drops != rules || accepts < 3 {
						t.Errorf("%s, %s, %s: %s has %d rules that drop and %d that accept", name, family, policy, in, drops, accepts)
					}
				}
				for _, e := range p.Pods {
					if !slices.Contains(guarded, e.In) {
						t.Errorf("%s, %s, %s: %s is not guarded", name, family, policy, e.In)
					}
				}
				if len(guarded) != want {
					t.Errorf("%s, %s, %s: %d guards, want %d", name, family, policy, len(guarded), want)
				}
			}
		}
	}
}

// guard counts the rules of a guard.
func guard(t *testing.T, op network.Op) (in network.Space, drops, accepts int) {
	t.Helper()
	switch op := op.(type) {
	case network.IPTables:
		if !strings.Contains(op.Text(), "*filter\n:INPUT DROP [0:0]\n") || !strings.HasSuffix(op.Text(), "\nCOMMIT\n") {
			t.Errorf("the table is\n%s", op.Text())
		}
		return op.In, strings.Count(op.Text(), "-j DROP\n"), strings.Count(op.Text(), "-j ACCEPT\n")
	case network.Rules:
		c := op.Chains[0]
		if !c.Drop || c.Hook != network.Input {
			t.Errorf("the chain is %+v", c)
		}
		for _, r := range c.Rules {
			if r.Do == network.Drop {
				drops++
			} else {
				accepts++
			}
		}
		return op.In, drops, accepts
	}
	t.Fatalf("%T is no guard", op)
	return in, 0, 0
}

// Virtual addresses have no owner: no pod, node or gateway has one, they differ, and they lead to the pods in their order.
func TestServicesAreNobodys(t *testing.T) {
	const most = 10_000
	for _, family := range []result.Family{result.IPv4, result.IPv6} {
		for _, name := range []string{"bridge", "bridge-nat"} {
			plain := planned(t, name, family, result.Conditions{})
			p := planned(t, name, family, result.Conditions{Service: result.ServiceNFTables, Services: most})
			services := servicesOf(t, p)
			if len(services) != most {
				t.Fatalf("%d services, want %d", len(services), most)
			}
			top := topology(t, network.Layout{Family: family})
			seen := map[netip.Addr]bool{}
			for _, s := range services {
				if seen[s.Virtual] {
					t.Errorf("%s is the address of two services", s.Virtual)
				}
				seen[s.Virtual] = true
				for _, n := range top.Nodes {
					if n.PodPrefix.Contains(s.Virtual) || n.Address.Addr() == s.Virtual {
						t.Errorf("%s is an address of node %s", s.Virtual, n.Name)
					}
				}
			}
			for j := range p.Pods {
				own := services[most-len(p.Pods)+j]
				if at := p.Endpoint(0, j, 20000).Addr(); at != own.Virtual {
					t.Errorf("pod %d is called at %s, want %s", j, at, own.Virtual)
				}
				if want := plain.Endpoint(0, j, 20000).Addr(); own.Backend != want || p.Backend(0, j) != want {
					t.Errorf("pod %d is behind %s and %s, want %s", j, own.Backend, p.Backend(0, j), want)
				}
			}
		}
	}
}

func servicesOf(t *testing.T, p network.Plan) []network.VirtualAddress {
	t.Helper()
	for _, op := range p.Ops {
		if m, ok := op.(network.ServiceMap); ok {
			return m.Services
		}
	}
	t.Fatal("the plan has no services")
	return nil
}

// As kube-proxy has them, the rules of all services are passed one after the other, and the rules of the pods come last.
func TestServicesOfIPTables(t *testing.T) {
	p := planned(t, "routed", result.IPv4, result.Conditions{Service: result.ServiceIPTables, Services: 5})
	i := slices.IndexFunc(p.Ops, func(op network.Op) bool { _, is := op.(network.IPTables); return is })
	want := `*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-0 - [0:0]
:KUBE-SVC-1 - [0:0]
:KUBE-SVC-2 - [0:0]
:KUBE-SVC-3 - [0:0]
:KUBE-SVC-4 - [0:0]
-A OUTPUT -j KUBE-SERVICES
-A KUBE-SERVICES -d 198.18.128.0/32 -j KUBE-SVC-0
-A KUBE-SERVICES -d 198.18.128.1/32 -j KUBE-SVC-1
-A KUBE-SERVICES -d 198.18.128.2/32 -j KUBE-SVC-2
-A KUBE-SERVICES -d 198.18.128.3/32 -j KUBE-SVC-3
-A KUBE-SERVICES -d 198.18.128.4/32 -j KUBE-SVC-4
-A KUBE-SVC-0 -j DNAT --to-destination 100.64.0.0
-A KUBE-SVC-1 -j DNAT --to-destination 198.19.0.10
-A KUBE-SVC-2 -j DNAT --to-destination 198.19.0.11
-A KUBE-SVC-3 -j DNAT --to-destination 198.19.1.10
-A KUBE-SVC-4 -j DNAT --to-destination 198.19.1.11
COMMIT
`
	if got := p.Ops[i].(network.IPTables).Text(); got != want {
		t.Errorf("got\n%s", got)
	}
}

// A plan with thousands of rules can be read all the same.
func TestLongListsAreShortened(t *testing.T) {
	for _, c := range []result.Conditions{
		{Policy: result.PolicyIPTables, PolicyRules: 10_000}, {Policy: result.PolicyNFTables, PolicyRules: 10_000},
		{Service: result.ServiceIPTables, Services: 10_000}, {Service: result.ServiceNFTables, Services: 10_000},
		{Service: result.ServiceIPVS, Services: 10_000},
	} {
		text := planned(t, "bridge", result.IPv4, c).String()
		if lines := strings.Count(text, "\n"); lines > 250 || !strings.Contains(text, "more") {
			t.Errorf("%+v: the plan has %d lines", c, lines)
		}
	}
}

// Policies of a cluster are for clusters.
func TestClusterPolicy(t *testing.T) {
	n := network.Catalogue()[0]
	_, err := n.Plan(topology(t, network.Layout{Conditions: result.Conditions{Policy: result.PolicyKubernetes}}))
	if not := (*network.NotPossibleError)(nil); !errors.As(err, &not) || !strings.Contains(err.Error(), "--testbed kubernetes") {
		t.Errorf("got %v", err)
	}
}

// Unknown kinds are refused.
func TestUnknownPolicyAndService(t *testing.T) {
	for _, c := range []result.Conditions{{Policy: "moat"}, {Service: "oracle"}} {
		n := network.Catalogue()[0]
		if _, err := n.Plan(topology(t, network.Layout{Conditions: c})); err == nil || !strings.Contains(err.Error(), "unknown") {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}
