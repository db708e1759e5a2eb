package survey

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	corev1 "k8s.io/api/core/v1"
)

// antreaConf is what matters here of Antrea's antrea-agent.conf.
type antreaConf struct {
	TrafficEncapMode      string `yaml:"trafficEncapMode"`
	TunnelType            string `yaml:"tunnelType"`
	TrafficEncryptionMode string `yaml:"trafficEncryptionMode"`
	DefaultMTU            int    `yaml:"defaultMTU"`
	AntreaProxy           struct {
		ProxyAll bool `yaml:"proxyAll"`
	} `yaml:"antreaProxy"`
}

// parseYAML reads a plugin's configuration. The error says what is wrong with the text.
func parseYAML[T any](what, text string) (c T, err error) {
	if err = yaml.Unmarshal([]byte(text), &c); err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return c, err
}

// antrea reads Antrea's configuration where it could be read.
func (e evidence) antrea() (c antreaConf, found bool, err error) {
	config := e.config("kube-system/" + antreaConfig)
	if config != nil {
		c, err = parseYAML[antreaConf]("antrea-agent.conf of Antrea", config["antrea-agent.conf"])
	}
	return c, config != nil, err
}

// antreaConfig is where Antrea keeps its configuration.
const antreaConfig = "antrea-config"

// antrea forwards by Open vSwitch.
func antrea(e evidence) *trace {
	c, found, err := e.antrea()
	if e.daemon("antrea-agent") == nil && !found && len(e.annotations("node.antrea.io/mac-address")) == 0 {
		return nil
	}
	t := &trace{Network: Network{Plugin: "antrea", Policies: "antrea", EBPF: "no", By: []string{"its annotations, DaemonSet or ConfigMap"}}, forwards: true}
	if !found {
		t.Doubt = "its ConfigMap could not be read: mode, encryption and MTU are not known"
		return t
	}
	if err != nil {
		t.Doubt = err.Error()
		return t
	}
	tunnel := strings.ToLower(cmp.Or(c.TunnelType, "geneve"))
	t.Encryption = strings.ToLower(cmp.Or(c.TrafficEncryptionMode, "none"))
	t.MTU = mtu(fmt.Sprint(c.DefaultMTU))
	t.Mode = cmp.Or(c.TrafficEncapMode, "encap")
	switch strings.ToLower(t.Mode) {
	case "encap":
		t.Encapsulation = tunnel
	case "hybrid":
		t.Encapsulation, t.OnlyAcross = tunnel, true
	case "noencap":
		t.Encapsulation = "none"
	case "networkpolicyonly":
		t.Encapsulation, t.forwards = "none", false
	}
	return t
}

// ovnKubernetes forwards by Open vSwitch, under OVN; it is also OpenShift's.
func ovnKubernetes(e evidence) *trace {
	if len(e.annotations("k8s.ovn.org/node-subnets")) == 0 && e.daemon("ovnkube-node") == nil {
		return nil
	}
	return &trace{forwards: true, Network: Network{
		Plugin: "ovn-kubernetes", Mode: "geneve", Encapsulation: "geneve", Policies: "ovn", EBPF: "no",
		MTU: mtu(e.config("ovn-kubernetes/ovn-config")["mtu"]), By: []string{"annotations of nodes, or DaemonSet ovnkube-node"},
	}}
}

// kubeOVN forwards by Open vSwitch, under OVN.
func kubeOVN(e evidence) *trace {
	daemon := e.daemon("kube-ovn-cni")
	if daemon == nil && len(e.annotations("ovn.kubernetes.io/allocated")) == 0 {
		return nil
	}
	t := &trace{forwards: true, Network: Network{
		Plugin: "kube-ovn", Mode: "geneve", Encapsulation: "geneve", Policies: "ovn", EBPF: "no", By: []string{"annotations of nodes, or DaemonSet kube-ovn-cni"},
	}}
	cni := container(daemon, "cni-server")
	if kind, ok := option(cni, "network-type"); ok {
		switch t.Mode = kind; kind {
		case "geneve", "vxlan", "stt":
			t.Encapsulation = kind
		case "vlan", "hybrid":
			t.Encapsulation = "none"
		default:
			t.Encapsulation = ""
		}
	}
	if size, ok := option(cni, "mtu"); ok {
		t.MTU = mtu(size)
	}
	return t
}

// weave has a fast path through Open vSwitch, and a slow one through a process.
func weave(e evidence) *trace {
	daemon := e.daemon("weave-net")
	if daemon == nil {
		return nil
	}
	c := container(daemon, "weave")
	t := &trace{forwards: true, Network: Network{
		Plugin: "weave", Mode: "fastdp", Encapsulation: "vxlan", Policies: "none", EBPF: "no", Encryption: "none", MTU: 1376,
		By: named(daemon),
	}}
	if size, ok := variable(c, "WEAVE_MTU"); ok {
		t.MTU = mtu(size)
	}
	if off, ok := variable(c, "WEAVE_NO_FASTDP"); ok && off != "" {
		t.Mode, t.Encapsulation = "sleeve", "udp"
	}
	if _, ok := variable(c, "WEAVE_PASSWORD"); ok {
		t.Encryption = "ipsec"
	}
	if container(daemon, "weave-npc") != nil {
		t.Policies = "weave-npc"
	}
	return t
}

// kubeRouter routes by BGP, and encapsulates between subnets.
func kubeRouter(e evidence) *trace {
	daemon := e.daemon("kube-router")
	if daemon == nil {
		return nil
	}
	c := container(daemon, "kube-router")
	t := &trace{Network: Network{
		Plugin: "kube-router", Mode: "routes", Encapsulation: "none", Policies: "kube-router", EBPF: "no", Encryption: "none",
		By: named(daemon),
	}}
	if on, ok := option(c, "run-firewall"); ok && on == "false" {
		t.Policies = "none"
	}
	on, ok := option(c, "run-router")
	t.forwards = !ok || on != "false"
	overlay, _ := option(c, "enable-overlay")
	if overlay == "false" {
		return t
	}
	kind, _ := option(c, "overlay-type")
	encapsulation, _ := option(c, "overlay-encap")
	t.Encapsulation = cmp.Or(encapsulation, "ipip")
	t.OnlyAcross = kind != "full"
	t.Mode = "overlay between subnets"
	if !t.OnlyAcross {
		t.Mode = "full overlay"
	}
	return t
}

// kindnet is what clusters of kind have.
func kindnet(e evidence) *trace {
	daemon := e.daemon("kindnet")
	if daemon == nil {
		return nil
	}
	return &trace{forwards: true, Network: Network{
		Plugin: "kindnet", Mode: "routes", Encapsulation: "none", EBPF: "no", Encryption: "none", By: named(daemon),
	}}
}

// aws gives pods addresses of the cloud's own network.
func aws(e evidence) *trace {
	daemon := e.daemon("aws-node")
	if daemon == nil {
		return nil
	}
	t := &trace{forwards: true, Network: Network{
		Plugin: "aws-vpc", Mode: "addresses of the cloud", Encapsulation: "none", Policies: "none", EBPF: "no", Encryption: "none", MTU: 9001,
		By: named(daemon),
	}}
	if size, ok := variable(container(daemon, "aws-node"), "AWS_VPC_ENI_MTU"); ok {
		t.MTU = mtu(size)
	}
	if on, _ := option(container(daemon, "aws-eks-nodeagent"), "enable-network-policy"); on == "true" {
		t.Policies = "aws-network-policy-agent"
	}
	return t
}

// azure gives pods addresses of the cloud's own network, or of an overlay that the cloud carries.
func azure(e evidence) *trace {
	daemon := e.daemon("azure-cns", "azure-cni-networkmonitor")
	if daemon == nil {
		return nil
	}
	t := &trace{forwards: true, Network: Network{
		Plugin: "azure", Mode: "addresses of the cloud", Encapsulation: "none", Policies: "none", EBPF: "no",
		By: named(daemon),
	}}
	if slices.ContainsFunc(e.nodes, func(n corev1.Node) bool { return n.Labels["kubernetes.azure.com/podnetwork-type"] == "overlay" }) {
		t.Mode = "overlay of the cloud"
	}
	if e.daemon("azure-npm") != nil {
		t.Policies = "azure-npm"
	}
	return t
}

// gke gives pods addresses of the cloud's own network.
func gke(e evidence) *trace {
	if !e.labelled("cloud.google.com/gke-nodepool") {
		return nil
	}
	return &trace{forwards: true, Network: Network{
		Plugin: "gke", Mode: "addresses of the cloud", Encapsulation: "none", Policies: "none", EBPF: "no", By: []string{"labels of nodes: cloud.google.com/gke-nodepool"},
	}}
}
