package cluster

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netdelta/internal/golden"
	"netdelta/report/ui"
	"netdelta/testbed"
	"netdelta/testbed/kube/survey"
	"netdelta/unit"
)

// healthy is a cluster on which a run lacks nothing.
func healthy() survey.Survey {
	node := func(name, address string) survey.Node {
		return survey.Node{
			Name: name, Kubelet: "v1.34.4", Kernel: "6.12.9", OS: "Debian GNU/Linux 13", Runtime: "containerd://2.1.4", Zone: "north", Ready: true,
			Addresses: []string{address}, PodRanges: []string{"10.244.1.0/24"}, MilliCPU: 8000, FreeMilliCPU: 6500,
			Clock: &survey.Offset{Low: -600 * time.Millisecond, High: 1400 * time.Millisecond, By: "its lease"},
		}
	}
	s := survey.Survey{
		Cluster: "lab", Version: "v1.34.4", User: survey.User{Name: "alice"}, Nodes: []survey.Node{node("w1", "192.0.2.11"), node("w2", "192.0.2.12")},
		Clock: &survey.Offset{Low: -20 * time.Millisecond, High: 130 * time.Millisecond, By: "the dates of its answers"},
		Network: survey.Network{
			Plugin: "cilium", Mode: "native", Encapsulation: "none", Encryption: "none", MTU: 1500, Policies: "cilium", EBPF: "yes",
			By: []string{"DaemonSet kube-system/cilium", "ConfigMap cilium-config"},
		},
		Services:  survey.Services{Mode: "ebpf", By: "Cilium takes kube-proxy's place", Count: 42},
		Secondary: survey.Secondary{Multus: true, SRIOV: []string{"intel.com/sriov_netdevice"}},
		Namespace: survey.Namespace{Name: "measurements", Level: "privileged"},
		Asks:      survey.Asks{MilliCPU: 10, Memory: 32 << 20},
		Admission: []survey.Admission{{Pod: survey.PodPlain, Admitted: true}, {Pod: survey.PodHost, Admitted: true}},
		Pods:      12,
	}
	for _, need := range survey.Needs("measurements") {
		s.Rights = append(s.Rights, survey.Right{Need: need, Allowed: true})
	}
	return s
}

// troubled is one on which much is wrong, and somebody has put escape sequences wherever the cluster takes text.
func troubled() survey.Survey {
	s := healthy()
	s.Cluster, s.User.Name = "prod\x1b[2J", "mallory\u202e"
	s.NodeAgent, s.Devices = true, true
	s.Clock = &survey.Offset{Low: -190 * time.Second, High: -189 * time.Second, By: "the dates of its answers"}
	prefix := func(text string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(text)} }
	s.Nodes[0].Devices = []testbed.Interface{
		{Name: "bond0", Kind: "bond", MTU: 9000, Up: true, Addresses: prefix("192.0.2.11/24"), Speed: 2 * unit.Gbit, BondMode: "802.3ad", HashPolicy: "layer2"},
		{Name: "eth0", Kind: "device", MTU: 9000, Up: true, Master: "bond0", Driver: "ixgbe", Speed: unit.Gbit},
		{Name: "eth9\x1b]0;title\a", Kind: "device", MTU: 9000, Up: true, Addresses: prefix("198.51.100.1/24"), Driver: "mlx5", Speed: 100 * unit.Gbit},
		{Name: "flannel.1", Kind: "vxlan", MTU: 1450, Up: true},
		{Name: "veth1", Kind: "veth", MTU: 1450, Up: true},
	}
	s.Nodes[1].Devices = []testbed.Interface{{Name: "eth0", Kind: "device", MTU: 1480, Up: true, Addresses: prefix("192.0.2.12/24")}}
	s.Nodes[0].Clock = &survey.Offset{Low: 61 * time.Second, High: 63 * time.Second, By: "its lease"}
	s.Nodes[0].FreeMilliCPU = 50
	s.Nodes[1].Kernel, s.Nodes[1].Kubelet = "5.4.0", "v1.29.0"
	s.Nodes = append(s.Nodes,
		survey.Node{Name: "w3", Kubelet: "v1.35.0", Kernel: "6.12.9", Unready: "KubeletNotReady: \x1b[31mred\nnetwork", Addresses: []string{"192.0.2.13"}, MilliCPU: 4000, FreeMilliCPU: -1},
		survey.Node{Name: "w4", Kubelet: "v1.34.4", Kernel: "6.12.9", Ready: true, Shut: "it has the taint dedicated\u009b", Addresses: []string{"192.0.2.14"}, MilliCPU: 4000, FreeMilliCPU: 4000},
	)
	s.Network = survey.Network{
		Plugin: "flannel", Mode: "vxlan", Encapsulation: "vxlan", Encryption: "none", MTU: 1450, Policies: "none", EBPF: "no",
		By: []string{"annotations of nodes: backend-type vxlan\x1b[8m"}, Doubt: "annotations stay behind", Others: []string{"calico"},
	}
	s.Services = survey.Services{Mode: "iptables", By: "kube-proxy's ConfigMap", Count: 2400}
	s.Namespace.Level = "restricted"
	s.Namespace.Quota = []survey.Quota{{Name: "tight", Resource: "pods", Hard: 10, Used: 9}, {Name: "tight", Resource: "requests.memory", Hard: 256 << 20}}
	s.Namespace.Limits = []survey.Limit{{Name: "range", Kind: "Container", Bound: "min", Resource: "cpu", Value: 100}}
	for i, r := range s.Rights {
		switch r.Resource {
		case "pods/exec", "services":
			s.Rights[i].Allowed = r.Verb == "get"
		case "nodes":
			s.Rights[i].Allowed, s.Rights[i].Unknown = false, "the server is currently unable\r to handle the request"
		}
	}
	s.Admission = []survey.Admission{
		{Pod: survey.PodPlain, Untried: "no answer"},
		{Pod: survey.PodHost, Refusal: "violates PodSecurity \"restricted:latest\": host namespaces\x07"},
		{Pod: survey.PodNodeAgent, Refusal: "admission webhook \"guard\" denied the request"},
	}
	s.BestEffort, s.Pods = 30, 40
	s.Gaps = []survey.Gap{{What: "the leases of nodes", Right: "list leases.coordination.k8s.io in kube-node-lease"}, {What: "quotas", Reason: "timeout\x1b[0m"}}
	return s
}

// bare is one of which next to nothing can be read.
func bare() survey.Survey {
	s := survey.Survey{
		Cluster: "far", Version: "v1.31.0", BestEffort: -1, Pods: -1, Namespace: survey.Namespace{Name: "mine", Missing: true}, Services: survey.Services{Count: -1},
		Network: survey.Network{Doubt: "nodes can't be listed"}, Gaps: []survey.Gap{{What: "nodes", Right: "list nodes of the cluster"}},
	}
	for _, need := range survey.Needs("mine") {
		s.Rights = append(s.Rights, survey.Right{Need: need})
	}
	return s
}

// TestClusterPage: what the doctor prints of clusters. Nothing that a cluster says is obeyed by a terminal.
func TestClusterPage(t *testing.T) {
	for name, s := range map[string]survey.Survey{"healthy": healthy(), "troubled": troubled(), "bare": bare()} {
		t.Run(name, func(t *testing.T) {
			findings := survey.Judge(s)
			var page, document bytes.Buffer
			if err := WriteText(&page, Document{s, findings}, ui.Terminal{Width: 132, Unicode: true}); err != nil {
				t.Fatal(err)
			}
			if err := WriteJSON(&document, Document{s, findings}); err != nil {
				t.Fatal(err)
			}
			for file, got := range map[string]*bytes.Buffer{name + ".txt": &page, name + ".json": &document} {
				for _, line := range bytes.Split(bytes.TrimSpace(got.Bytes()), []byte("\n")) {
					if clean := ui.Clean(string(line)); clean != string(line) {
						t.Errorf("%s: a terminal would obey %q", file, line)
					}
				}
				golden.Check(t, filepath.Join("testdata", file), got.String())
			}
			var again Document
			if err := json.Unmarshal(document.Bytes(), &again); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(s, again.Survey, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
				t.Errorf("the document says something else (-survey +document):\n%s", diff)
			}
			if lacks := survey.Lacks(findings); (lacks > 0) != (name != "healthy") {
				t.Errorf("%d things are missing", lacks)
			}
		})
	}
}
