package survey

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/testbed"
	"netdelta/testbed/kube"
	"netdelta/unit"
)

// well is a cluster of which there is nothing to say.
func well() Survey {
	node := func(name, address string) Node {
		return Node{
			Name: name, Kubelet: "v1.34.4", Kernel: "6.12.9", Ready: true, Addresses: []string{address}, MilliCPU: 4000, FreeMilliCPU: 4000,
			Clock: &Offset{Low: -time.Second, High: time.Second},
			Devices: []testbed.Interface{
				{Name: "eth0", Kind: hardware, MTU: 1500, Up: true, Speed: unit.Gbit, Addresses: []netip.Prefix{netip.MustParsePrefix(address + "/24")}},
			},
		}
	}
	s := Survey{
		Version: "v1.34.4", Nodes: []Node{node("a", "192.0.2.11"), node("b", "192.0.2.12")}, Devices: true, Asks: Asks{MilliCPU: 100, Memory: 32 << 20},
		Network:  Network{Plugin: "calico", Mode: "native", Encapsulation: "none", MTU: 1500, Policies: "calico", EBPF: "no"},
		Services: Services{Mode: "nftables", Count: 5000}, Namespace: Namespace{Name: "measurements"},
		Admission: []Admission{{Pod: PodPlain, Admitted: true}, {Pod: PodHost, Admitted: true}},
	}
	for _, need := range Needs("measurements") {
		s.Rights = append(s.Rights, Right{Need: need, Allowed: true})
	}
	return s
}

// TestJudge: each fact that means something is a finding of its own, of the severity that it has for a run, and no other is.
func TestJudge(t *testing.T) {
	refuse := func(s *Survey, resource, verb string) {
		for i, r := range s.Rights {
			if r.For != ForDoctor && r.Resource == resource && r.Verb == verb {
				s.Rights[i].Allowed = false
			}
		}
	}
	bond := func(s *Survey, hash, encapsulation string) {
		s.Network.Encapsulation, s.Network.OnlyAcross, s.Network.MTU = encapsulation, true, 0
		s.Nodes[0].Devices = append(s.Nodes[0].Devices, testbed.Interface{Name: "bond0", Kind: "bond", BondMode: "802.3ad", HashPolicy: hash})
	}
	for name, c := range map[string]struct {
		change func(*Survey)
		want   string   // severities and topics
		says   []string // parts of what is printed
	}{
		"well": {func(*Survey) {}, "", nil},
		"no exec": {
			func(s *Survey) { refuse(s, "pods/exec", "create"); refuse(s, "pods/exec", "get") }, "missing rights",
			[]string{"you may not create, get pods/exec in measurements", "no run is possible", "--rbac"},
		},
		"no services": {func(s *Survey) { refuse(s, "services", "create") }, "warning rights", []string{"clusterip, nodeport and headless can't be measured"}},
		"no jobs":     {func(s *Survey) { refuse(s, "jobs", "create") }, "warning rights", []string{"create jobs.batch in measurements"}},
		"rights unknown": {
			func(s *Survey) { s.Rights[0].Allowed, s.Rights[0].Unknown = false, "timeout" }, "warning rights", []string{"did not say whether you may create pods in measurements: timeout"},
		},
		"what only the doctor reads": {
			func(s *Survey) {
				for i, r := range s.Rights {
					s.Rights[i].Allowed = r.For != ForDoctor
				}
			}, "", nil,
		},
		"no namespace": {
			func(s *Survey) { s.Namespace.Missing, s.Admission[0].Admitted = true, false }, "missing namespace", []string{"kubectl create namespace measurements"},
		},
		"host refused": {
			func(s *Survey) { s.Admission[1] = Admission{Pod: PodHost, Refusal: `violates PodSecurity "baseline"`} }, "missing admission",
			[]string{"pod-security.kubernetes.io/enforce=privileged", "--baseline pod"},
		},
		"plain refused by another": {
			func(s *Survey) { s.Admission[0] = Admission{Pod: PodPlain, Refusal: "exceeded quota"} }, "missing admission", []string{"a quota, a limit or an admission webhook"},
		},
		"quota wants limits": {
			func(s *Survey) {
				s.Admission[0] = Admission{Pod: PodPlain, Refusal: "failed quota: q: must specify limits.memory for: netdelta"}
			}, "missing admission",
			[]string{"--memory 64Mi"},
		},
		"kube-proxy not to be read": {
			func(s *Survey) { s.Services = Services{By: unreadProxy, Count: -1} }, "note services", []string{"you may not read"},
		},
		"not tried": {func(s *Survey) { s.Admission[0] = Admission{Pod: PodPlain, Untried: "timeout"} }, "warning admission", nil},
		"not tried for want of rights": {
			func(s *Survey) {
				refuse(s, "pods", "create")
				s.Admission[0] = Admission{Pod: PodPlain, Untried: "it takes the right"}
			}, "missing rights", nil,
		},
		"one node":  {func(s *Survey) { s.Nodes[1].Shut = "it is cordoned" }, "warning nodes", []string{"--placement same-node"}},
		"no node":   {func(s *Survey) { s.Nodes[1].Shut, s.Nodes[0].Shut = "it is cordoned", "it is cordoned" }, "missing nodes", nil},
		"not ready": {func(s *Survey) { s.Nodes[1].Ready, s.Nodes[1].Unready = false, "KubeletNotReady" }, "warning nodes; warning nodes", []string{"b (KubeletNotReady)"}},
		"full":      {func(s *Survey) { s.Nodes[0].FreeMilliCPU, s.Nodes[1].FreeMilliCPU = 199, 0 }, "missing room", []string{"a 0.199, b 0"}},
		"one full":  {func(s *Survey) { s.Nodes[0].FreeMilliCPU = 199 }, "warning room", []string{"across nodes"}},
		"narrow":    {func(s *Survey) { s.Nodes[0].FreeMilliCPU = 999 }, "warning room", []string{"asks for 2; free processors: a 0.999, b 4"}},
		"just enough": {func(s *Survey) {
			s.Nodes[0].FreeMilliCPU = 1000
			s.Namespace.Quota = []Quota{{Resource: "pods", Hard: 20}, {Resource: "limits.cpu", Hard: 2000}, {Resource: "services.nodeports", Hard: 2}}
		}, "", nil},
		"quota gone": {func(s *Survey) { s.Namespace.Quota = []Quota{{Name: "q", Resource: "pods", Hard: 4, Used: 3}} }, "missing quota", []string{"quota q leaves 1 of pods"}},
		"quota of storage": {
			func(s *Survey) {
				s.Namespace.Quota = []Quota{{Name: "q", Resource: "fast.storageclass.storage.k8s.io/requests.storage", Hard: 4 << 30, Used: 2 << 30}, {Name: "q", Resource: "persistentvolumeclaims", Hard: 3}}
			}, "warning quota", []string{"leaves 2048 MiB of fast.storageclass", "take 3072 MiB"},
		},
		"quota narrow": {func(s *Survey) { s.Namespace.Quota = []Quota{{Name: "q", Resource: "requests.cpu", Hard: 1900}} }, "warning quota", []string{"leaves 1.9 processors of requests.cpu"}},
		"no services left": {
			func(s *Survey) { s.Namespace.Quota = []Quota{{Name: "q", Resource: "services", Hard: 3, Used: 3}} }, "warning quota", []string{"takes 4"},
		},
		"limits": {func(s *Survey) {
			s.Namespace.Limits = []Limit{{Name: "r", Kind: "Pod", Bound: "max", Resource: "memory", Value: 16 << 20}}
		}, "missing limits", []string{"16 MiB for each pod"}},
		"kubelet newer": {func(s *Survey) { s.Nodes[0].Kubelet = "v1.35.0" }, "warning versions", []string{"a v1.35.0"}},
		"kubelet old":   {func(s *Survey) { s.Nodes[0].Kubelet = "v1.30.9" }, "warning versions", []string{"more than 3 minor releases"}},
		"kubelets differ": {
			func(s *Survey) { s.Nodes[0].Kubelet = "v1.31.0+k3s1" }, "note versions", []string{"v1.31.0+k3s1, v1.34.4"},
		},
		"kernels": {func(s *Survey) { s.Nodes[0].Kernel = "5.4.0" }, "warning kernels", []string{"5.4.0 on a; 6.12.9 on b"}},
		"clocks": {
			func(s *Survey) {
				s.Nodes[0].Clock = &Offset{Low: 1001 * time.Millisecond, High: 3 * time.Second}
				s.Clock = &Offset{Low: -time.Minute, High: -time.Minute + time.Second}
			}, "warning clocks; warning clocks", []string{"a +2.0 s (within 1.0 s)", "-59.5 s (within 0.5 s)"},
		},
		"unknown plugin": {func(s *Survey) { s.Network = Network{Policies: "x", Doubt: "why"} }, "note network", []string{"not known: why"}},
		"no policies":    {func(s *Survey) { s.Network.Policies = "none" }, "note policies", nil},
		"others":         {func(s *Survey) { s.Network.Others = []string{"weave"} }, "note network", []string{"besides calico there are traces of weave"}},
		"encapsulated for nothing": {
			func(s *Survey) { s.Network.Encapsulation, s.Network.MTU = "ipip", 1480 }, "warning encapsulation",
			[]string{"all nodes are in the subnet 192.0.2.0/24", "9% fewer reads of 4 KiB with VXLAN", "CrossSubnet"},
		},
		"encapsulated, subnets not seen": {
			func(s *Survey) {
				s.Network.Encapsulation = "vxlan"
				s.Nodes[0].Devices, s.Nodes[1].Devices = nil, nil
			}, "warning encapsulation", []string{"within 192.0.2.0/24, so probably"},
		},
		"encapsulated between subnets": {
			func(s *Survey) {
				s.Network.Encapsulation, s.Network.MTU = "vxlan", 1450
				s.Nodes[0].Devices[0].Addresses[0] = netip.MustParsePrefix("192.0.2.11/30")
			}, "", nil,
		},
		"encrypted":                               {func(s *Survey) { s.Network.Encapsulation, s.Network.MTU = "wireguard", 1440 }, "", nil},
		"through the node's firewall":             {func(s *Survey) { s.Network.ThroughStack = true }, "warning host routing", []string{"through their node's stack", "kubeProxyReplacement"}},
		"through the node's firewall, with IPsec": {func(s *Survey) { s.Network.ThroughStack, s.Network.Encryption = true, "ipsec" }, "", nil},
		"policies by a program":                   {func(s *Survey) { s.Network.Policies = "kube-network-policies" }, "note policies", []string{"added 391 µs to a new connection"}},
		"userspace":                               {func(s *Survey) { s.Network.Encapsulation, s.Network.MTU = "udp", 1472 }, "warning encapsulation", []string{"through a process"}},
		"jumbo": {
			func(s *Survey) { s.Nodes[0].Devices[0].MTU = 9000 }, "warning mtu", []string{"pods have an MTU of 1500, and cards take more: a (eth0: 9000)"},
		},
		"too large": {func(s *Survey) { s.Network.MTU = 1501 }, "warning mtu", []string{"with their headers is more than cards take"}},
		"one node's pods are too large": {
			func(s *Survey) {
				s.Network.Encapsulation, s.Network.OnlyAcross, s.Network.MTU = "vxlan", true, 0
				s.Nodes[0].Devices = append(s.Nodes[0].Devices, testbed.Interface{Name: "veth1", Kind: "veth", MTU: 1450})
				s.Nodes[1].Devices = append(s.Nodes[1].Devices, testbed.Interface{Name: "veth1", Kind: "veth", MTU: 1450}, testbed.Interface{Name: "veth2", Kind: "veth", MTU: 1500})
			}, "warning mtu", []string{"an MTU of 1450 or 1500", "more than cards take: b (eth0: 1500)"},
		},
		"another node's card takes less": {
			func(s *Survey) {
				s.Network.Encapsulation, s.Network.OnlyAcross, s.Network.MTU = "vxlan", true, 0
				s.Nodes[0].PodMTU = 1450
				s.Nodes[1].Devices[0].MTU = 1450
				s.Nodes[1].Devices = append(s.Nodes[1].Devices, testbed.Interface{Name: "vxlan.calico", Kind: "vxlan", MTU: 1400})
			}, "warning mtu", []string{"with the 50 bytes of vxlan is more than cards take: a to b (eth0: 1450)"},
		},
		"packets vanish": {
			func(s *Survey) {
				s.Tried, s.Broken = 1, []Broken{{"packets above 1450 bytes vanish from a to b, over network pod", "raise it"}}
			}, "missing broken network", []string{"packets above 1450 bytes vanish from a to b", "raise it"},
		},
		"denied": {
			func(s *Survey) {
				s.Namespace.Denials = []kube.Denial{{Namespace: "measurements", Direction: "ingress", Names: []string{"default-deny"}}}
			}, "warning policies", []string{"default-deny in namespace measurements", "kubectl --namespace measurements apply"},
		},
		"denied, not enforced": {
			func(s *Survey) {
				s.Network.Policies = "none"
				s.Namespace.Denials = []kube.Denial{{Namespace: "measurements", Direction: "ingress", Names: []string{"default-deny"}}}
			}, "note policies; note policies", []string{"default-deny in namespace measurements", "nothing that was found enforces them"},
		},
		"hash": {
			func(s *Survey) { bond(s, "layer2", "none") }, "warning bonds", []string{"bonds hash by layer2: a bond0", "xmit_hash_policy layer2+3"},
		},
		"hash that fits":               {func(s *Survey) { bond(s, "layer2+3", "none") }, "", nil},
		"hash of outer addresses":      {func(s *Survey) { bond(s, "layer2+3", "vxlan") }, "warning bonds", []string{"encap3+4"}},
		"hash of outer ports":          {func(s *Survey) { bond(s, "layer3+4", "vxlan") }, "", nil},
		"hash of outer ports, no port": {func(s *Survey) { bond(s, "layer3+4", "ipip") }, "warning bonds", nil},
		"hash that looks inside":       {func(s *Survey) { bond(s, "encap3+4", "ipip") }, "", nil},
		"slow card": {
			func(s *Survey) {
				s.Nodes[0].Devices = append(s.Nodes[0].Devices, testbed.Interface{
					Name: "eth1", Kind: hardware, MTU: 1500, Up: true, Speed: 25 * unit.Gbit, Addresses: []netip.Prefix{netip.MustParsePrefix("198.51.100.1/24")},
				})
			}, "warning cards", []string{"a (eth0 at 1Gbit/s, though eth1 has 25Gbit/s)"},
		},
		"services in iptables": {func(s *Survey) { s.Services.Mode = "iptables" }, "warning services", []string{"5000 services in iptables"}},
		"few in iptables":      {func(s *Survey) { s.Services = Services{Mode: "iptables", Count: 999} }, "", nil},
		"services unknown":     {func(s *Survey) { s.Services = Services{Count: -1} }, "note services", []string{"127.0.0.1:10249/proxyMode"}},
		"best effort":          {func(s *Survey) { s.BestEffort, s.Pods = 3, 9 }, "warning best-effort", []string{"3 of 9 pods"}},
		"no devices":           {func(s *Survey) { s.Devices, s.Nodes[0].Devices = false, nil }, "note node agent", []string{"--node-agent"}},
		"runs see devices":     {func(s *Survey) { s.Devices, s.NodeAgent, s.Nodes[0].Devices = false, true, nil }, "", nil},
		"gap":                  {func(s *Survey) { s.Gaps = []Gap{{What: "nodes", Right: "list nodes of the cluster"}} }, "note not known", []string{"it takes the right to list nodes of the cluster"}},
		"gravest first": {
			func(s *Survey) {
				s.Services, s.BestEffort, s.Namespace.Missing = Services{}, 1, true
			}, "missing namespace; warning best-effort; note services", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := well()
			c.change(&s)
			var got []string
			text := ""
			for _, f := range Judge(s) {
				got = append(got, fmt.Sprintf("%s %s", f.Severity, f.Topic))
				text += fmt.Sprintf("%+v\n", f)
				if f.Says == "" || f.Severity != Note && f.Why == "" {
					t.Errorf("it does not say what, or why: %+v", f)
				}
			}
			if list := strings.Join(got, "; "); list != c.want {
				t.Errorf("got %q, want %q\n%s", list, c.want, text)
			}
			for _, part := range c.says {
				if !strings.Contains(text, part) {
					t.Errorf("%q is not said:\n%s", part, text)
				}
			}
		})
	}
}

// TestRBACHoldsAllNeeds: each right that a run takes is granted, with the survey's own only where they are asked for, and nothing else.
func TestRBACHoldsAllNeeds(t *testing.T) {
	for _, all := range []bool{false, true} {
		granted := granted(t, manifest(t, User{Name: "alice"}, "measurements", false, all), "alice")
		var needed []string
		for _, n := range Needs("measurements") {
			if n.For != ForDoctor || all {
				needed = append(needed, n.String())
			}
		}
		slices.Sort(needed)
		needed = slices.Compact(needed)
		if !slices.Equal(granted, needed) {
			t.Errorf("granted are %q,\nneeded %q", granted, needed)
		}
	}
}
