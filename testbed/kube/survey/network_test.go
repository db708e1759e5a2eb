package survey

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestNetworks: what the plugins leave in a cluster, in the formats that they document, is recognised as what it is.
func TestNetworks(t *testing.T) {
	kubeProxy := func(mode string) Services { return Services{Mode: mode, By: "kube-proxy's ConfigMap"} }
	for name, want := range map[string]struct {
		network  Network
		services Services
		doubt    string // part of it
	}{
		"flannel-vxlan": {network: Network{Plugin: "flannel", Mode: "vxlan", Encapsulation: "vxlan", Policies: "none", EBPF: "no", Encryption: "none"}, services: kubeProxy("iptables")},
		"flannel-process": {
			network: Network{Plugin: "flannel", Mode: "host-gw", Encapsulation: "none", Policies: "none", EBPF: "no", Encryption: "none"}, doubt: "annotations stay behind",
		},
		"flannel-direct": {
			network:  Network{Plugin: "flannel", Mode: "vxlan", Encapsulation: "vxlan", OnlyAcross: true, MTU: 8950, Policies: "kube-network-policies", EBPF: "no", Encryption: "none"},
			services: kubeProxy("nftables"),
		},
		"k3s":   {network: Network{Plugin: "flannel", Mode: "vxlan", Encapsulation: "vxlan", Policies: "kube-router, within k3s", EBPF: "no", Encryption: "none"}},
		"canal": {network: Network{Plugin: "flannel", Mode: "vxlan", Encapsulation: "vxlan", Policies: "calico", EBPF: "no", Encryption: "none", Others: []string{"calico"}}, services: kubeProxy("ipvs")},
		"calico-ipip": {
			network: Network{Plugin: "calico", Mode: "IPIP CrossSubnet", Encapsulation: "ipip", OnlyAcross: true, Policies: "calico", EBPF: "no", Encryption: "none"}, services: kubeProxy("iptables"),
		},
		"calico-ebpf": {
			network:  Network{Plugin: "calico", Mode: "VXLAN Always", Encapsulation: "vxlan", Policies: "calico", EBPF: "yes", Encryption: "none"},
			services: Services{Mode: "ebpf", By: "Calico's eBPF takes kube-proxy's place"},
		},
		"calico-wireguard": {network: Network{Plugin: "calico", Mode: "native", Encapsulation: "wireguard", MTU: 8940, Policies: "calico", EBPF: "no", Encryption: "wireguard"}},
		"calico-nodes-only": {
			network: Network{Plugin: "calico", Mode: "VXLAN", Encapsulation: "vxlan", Policies: "calico", EBPF: "no", Encryption: "none"}, doubt: "IPPools could not be read",
		},
		"calico-pools": {network: Network{Plugin: "calico", Mode: "IPIP Always, native", Policies: "calico", EBPF: "no", Encryption: "none"}, doubt: "its IPPools differ"},
		"cilium": {
			network:  Network{Plugin: "cilium", Mode: "geneve, netkit", Encapsulation: "geneve", MTU: 8900, Policies: "cilium", EBPF: "yes", Encryption: "wireguard"},
			services: Services{Mode: "ebpf", By: "Cilium takes kube-proxy's place"},
		},
		"cilium-native":     {network: Network{Plugin: "cilium", Mode: "native", Encapsulation: "none", Policies: "cilium", EBPF: "yes", ThroughStack: true, Encryption: "ipsec"}, services: kubeProxy("iptables")},
		"cilium-kinds-only": {network: Network{Plugin: "cilium", Policies: "cilium", EBPF: "yes"}, doubt: "neither its ConfigMap nor its DaemonSet"},
		"cilium-chained": {
			network:  Network{Plugin: "aws-vpc", Mode: "addresses of the cloud", Encapsulation: "none", MTU: 9001, Policies: "cilium", EBPF: "no", Encryption: "none", Others: []string{"cilium"}},
			services: kubeProxy("iptables"),
		},
		"antrea": {
			network:  Network{Plugin: "antrea", Mode: "hybrid", Encapsulation: "vxlan", OnlyAcross: true, Policies: "antrea", EBPF: "no", Encryption: "none"},
			services: Services{Mode: "ovs", By: "AntreaProxy takes kube-proxy's place"},
		},
		"ovn-kubernetes": {
			network:  Network{Plugin: "ovn-kubernetes", Mode: "geneve", Encapsulation: "geneve", MTU: 1400, Policies: "ovn", EBPF: "no"},
			services: Services{Mode: "ovn", By: "OVN has load balancers of its own"},
		},
		"kube-ovn": {network: Network{Plugin: "kube-ovn", Mode: "vxlan", Encapsulation: "vxlan", MTU: 1400, Policies: "ovn", EBPF: "no"}, services: kubeProxy("ipvs")},
		"weave":    {network: Network{Plugin: "weave", Mode: "sleeve", Encapsulation: "udp", MTU: 8912, Policies: "weave-npc", EBPF: "no", Encryption: "ipsec"}, services: kubeProxy("iptables")},
		"kube-router": {
			network:  Network{Plugin: "kube-router", Mode: "full overlay", Encapsulation: "fou", Policies: "kube-router", EBPF: "no", Encryption: "none"},
			services: Services{Mode: "ipvs", By: "kube-router takes kube-proxy's place"},
		},
		"kube-router-subnets": {
			network:  Network{Plugin: "kube-router", Mode: "overlay between subnets", Encapsulation: "ipip", OnlyAcross: true, Policies: "none", EBPF: "no", Encryption: "none"},
			services: kubeProxy("iptables"),
		},
		"kindnet": {network: Network{Plugin: "kindnet", Mode: "routes", Encapsulation: "none", EBPF: "no", Encryption: "none"}, services: kubeProxy("iptables")},
		"aws": {
			network:  Network{Plugin: "aws-vpc", Mode: "addresses of the cloud", Encapsulation: "none", MTU: 9001, Policies: "aws-network-policy-agent", EBPF: "no", Encryption: "none"},
			services: kubeProxy("iptables"),
		},
		"azure": {network: Network{Plugin: "azure", Mode: "overlay of the cloud", Encapsulation: "none", Policies: "azure-npm", EBPF: "no"}, services: kubeProxy("iptables")},
		"gke":   {network: Network{Plugin: "gke", Mode: "addresses of the cloud", Encapsulation: "none", Policies: "calico", EBPF: "no", Others: []string{"calico"}}, services: kubeProxy("iptables")},
		"bridge": {
			network: Network{Plugin: "bridge", Mode: "routes", Encapsulation: "none", Policies: "none", EBPF: "no"}, doubt: "leaves no trace in the cluster's objects",
		},
		"unnamed": {doubt: "not every node has a range"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{objects: objects(t, filepath.Join("testdata/networks", name+".yaml"))}
			if strings.HasPrefix(name, "calico-") && name != "calico-nodes-only" {
				s.groups = []string{calicoGroup}
			}
			if name == "cilium-kinds-only" {
				s.groups = []string{ciliumGroup}
			}
			l, err := begin(t.Context(), s.start(t), Options{})
			if err != nil {
				t.Fatal(err)
			}
			l.readNodes(t.Context())
			l.readNetwork(t.Context())
			got := l.survey
			got.Services.Count = 0
			if len(got.Gaps) > 0 {
				t.Errorf("gaps: %+v", got.Gaps)
			}
			want.services.Count = 0
			if diff := cmp.Diff(want.network, got.Network, cmpopts.IgnoreFields(Network{}, "By", "Doubt")); diff != "" {
				t.Errorf("network (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.services, got.Services); diff != "" {
				t.Errorf("services (-want +got):\n%s", diff)
			}
			if doubt := got.Network.Doubt; (want.doubt == "") != (doubt == "") || !strings.Contains(doubt, want.doubt) {
				t.Errorf("doubt is %q, want %q", doubt, want.doubt)
			}
			if got.Network.Plugin != "" && len(got.Network.By) == 0 {
				t.Error("it is not said what it was recognised by")
			}
		})
	}
	fixtures, err := filepath.Glob("testdata/networks/*.yaml")
	if err != nil || len(fixtures) != 26 {
		t.Errorf("%d fixtures, 26 of them in the table; %v", len(fixtures), err)
	}
}

// Cilium leads pods past their node's stack only where nothing that it does needs the stack.
func TestCiliumBypass(t *testing.T) {
	whole := map[string]string{"kube-proxy-replacement": "true", "enable-bpf-masquerade": "true"}
	for _, c := range []struct {
		key, value string
		want       bool
	}{
		{"", "", true},
		{"kube-proxy-replacement", "false", false},
		{"enable-bpf-masquerade", "false", false},
		{"enable-host-legacy-routing", "true", false},
		{"enable-ipsec", "true", false},
		{"routing-mode", "tunnel", true},
	} {
		config := maps.Clone(whole)
		config[c.key] = c.value
		if got := ciliumBypass(config); got != c.want {
			t.Errorf("%s=%s: %v", c.key, c.value, got)
		}
	}
	if !ciliumBypass(map[string]string{"datapath-mode": "netkit"}) || !ciliumBypass(map[string]string{"kube-proxy-replacement": "true", "enable-ipv4-masquerade": "false"}) {
		t.Error("netkit, or no masquerading, needs no stack")
	}
}
