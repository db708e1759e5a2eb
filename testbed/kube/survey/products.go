package survey

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// calicoGroup is the API group of Calico's own objects.
const calicoGroup = "crd.projectcalico.org"

// pool is what matters here of Calico's IPPool.
type pool struct {
	Spec struct {
		CIDR      string `json:"cidr"`
		Disabled  bool   `json:"disabled"`
		IPIPMode  string `json:"ipipMode"`
		VXLANMode string `json:"vxlanMode"`
	} `json:"spec"`
}

// felixConfiguration is what matters here of Calico's FelixConfiguration.
type felixConfiguration struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		BPFEnabled         bool `json:"bpfEnabled"`
		WireguardEnabled   bool `json:"wireguardEnabled"`
		WireguardEnabledV6 bool `json:"wireguardEnabledV6"`
	} `json:"spec"`
}

// parseItems reads what a list of objects has. The error says what is wrong with the text.
func parseItems[T any](kind string, text []byte) ([]T, error) {
	var list struct {
		Items []T `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("the %s of Calico: %w", kind, err)
	}
	return list.Items, nil
}

// calico is recognised by its DaemonSet, by what it notes on nodes, or by its pools of addresses.
func calico(e evidence) *trace {
	daemon := e.daemon("calico-node", "canal", "rke2-canal")
	ipip, vxlan := e.annotations("projectcalico.org/IPv4IPIPTunnelAddr"), e.annotations("projectcalico.org/IPv4VXLANTunnelAddr")
	noted := len(ipip)+len(vxlan)+len(e.annotations("projectcalico.org/IPv4Address"))+len(e.annotations("projectcalico.org/IPv6Address")) > 0
	if daemon == nil && !noted && len(e.pools) == 0 && !e.up("CalicoIsUp") {
		return nil
	}
	t := &trace{Network: Network{Plugin: "calico", Policies: "calico", EBPF: "no", Encryption: "none", By: named(daemon)}}
	if noted {
		t.By = append(t.By, "annotations of nodes")
	}
	t.forwards = calicoForwards(e)
	for _, f := range e.felix {
		if f.Metadata.Name != "default" {
			continue
		}
		if f.Spec.BPFEnabled {
			t.EBPF = "yes"
		}
		if f.Spec.WireguardEnabled || f.Spec.WireguardEnabledV6 {
			t.Encryption = "wireguard"
		}
	}
	if len(e.pools) > 0 {
		t.pooled(e.pools)
	} else {
		t.Doubt = "its IPPools could not be read: whether it encapsulates always or only between subnets is not known"
		switch {
		case len(ipip) > 0 && len(vxlan) == 0:
			t.Mode, t.Encapsulation = "IPIP", "ipip"
		case len(vxlan) > 0 && len(ipip) == 0:
			t.Mode, t.Encapsulation = "VXLAN", "vxlan"
		case noted && len(ipip)+len(vxlan) == 0:
			t.Mode, t.Encapsulation, t.Doubt = "native", "none", "its IPPools could not be read; no node has a tunnel's address"
		}
	}
	if t.Encryption == "wireguard" {
		t.Encapsulation, t.OnlyAcross = "wireguard", false // it takes the place of the pool's
	}
	t.MTU = mtu(e.config("kube-system/calico-config")["veth_mtu"])
	return t
}

// calicoForwards says whether Calico forwards packets, or only guards those that another plugin forwards.
func calicoForwards(e evidence) bool {
	if e.daemon("canal", "rke2-canal") != nil || e.config("kube-system/canal-config") != nil {
		return false
	}
	if backend, ok := variable(container(e.daemon("calico-node"), "calico-node"), "CALICO_NETWORKING_BACKEND"); ok && backend != "" {
		return backend != "none"
	}
	return true
}

// pooled takes the mode from pools of addresses.
func (t *trace) pooled(pools []pool) {
	var modes []string
	for _, p := range pools {
		if prefix, err := netip.ParsePrefix(p.Spec.CIDR); p.Spec.Disabled || err != nil || !prefix.Addr().Is4() && len(pools) > 1 {
			continue
		}
		mode, encapsulation, when := "native", "none", ""
		switch {
		case set(p.Spec.IPIPMode):
			mode, encapsulation, when = "IPIP", "ipip", p.Spec.IPIPMode
		case set(p.Spec.VXLANMode):
			mode, encapsulation, when = "VXLAN", "vxlan", p.Spec.VXLANMode
		}
		t.OnlyAcross = strings.EqualFold(when, "CrossSubnet")
		t.Encapsulation = encapsulation
		modes = append(modes, strings.TrimSpace(mode+" "+when))
	}
	t.Mode = join(modes)
	t.By = append(t.By, "its IPPools: "+t.Mode)
	if strings.Contains(t.Mode, ",") {
		t.Encapsulation, t.OnlyAcross = "", false
		t.Doubt = "its IPPools differ: a pod's packets travel as its own pool says"
	}
}

// set says that a mode of encapsulation is on.
func set(mode string) bool { return mode != "" && !strings.EqualFold(mode, "Never") }

// ciliumConfig is where Cilium keeps its configuration: options of its agent by name.
const ciliumConfig = "cilium-config"

// ciliumGroup is the API group of Cilium's own objects.
const ciliumGroup = "cilium.io"

// cilium is recognised by its ConfigMap, its DaemonSet or what its agent tells nodes.
func cilium(e evidence) *trace {
	config := e.config("kube-system/"+ciliumConfig, "cilium/"+ciliumConfig)
	daemon := e.daemon("cilium", "anetd")
	if config == nil && daemon == nil && !e.up("CiliumIsUp") {
		return nil
	}
	t := &trace{Network: Network{Plugin: "cilium", Policies: "cilium", EBPF: "yes", By: named(daemon)}, forwards: true}
	if daemon == nil && config == nil {
		t.By = append(t.By, "what nodes say of their network: CiliumIsUp")
	}
	if config == nil {
		t.Doubt = "its ConfigMap could not be read: mode, encryption and MTU are not known"
		return t
	}
	t.By = append(t.By, "ConfigMap "+ciliumConfig)
	if chained := config["cni-chaining-mode"]; chained != "" && chained != "none" {
		t.forwards = false
		t.By = append(t.By, "it is chained: "+chained)
	}
	t.Mode, t.Encapsulation = ciliumMode(config)
	switch t.Encryption = "none"; {
	case config["enable-wireguard"] == "true":
		t.Encryption = "wireguard"
	case config["enable-ipsec"] == "true":
		t.Encryption = "ipsec"
	}
	if path := config["datapath-mode"]; strings.HasPrefix(path, "netkit") {
		t.Mode += ", " + path
	}
	t.ThroughStack = t.forwards && !ciliumBypass(config)
	t.MTU = mtu(config["mtu"])
	return t
}

// ciliumBypass says whether packets of pods go past their node's stack and firewall. Cilium's documentation on tuning says what that
// takes: services and masquerading by eBPF, and no IPsec. Pods with netkit devices have it always.
func ciliumBypass(config map[string]string) bool {
	if strings.HasPrefix(config["datapath-mode"], "netkit") {
		return true
	}
	masquerades := config["enable-bpf-masquerade"] == "true" || config["enable-ipv4-masquerade"] == "false"
	return ciliumServices(config) && masquerades && config["enable-host-legacy-routing"] != "true" && config["enable-ipsec"] != "true"
}

// ciliumMode is how packets travel between nodes. Releases before 1.14 said it with one option: the tunnel, or "disabled".
func ciliumMode(config map[string]string) (mode, encapsulation string) {
	protocol := cmp.Or(config["tunnel-protocol"], "vxlan")
	switch {
	case config["routing-mode"] == "native", config["routing-mode"] == "" && config["tunnel"] == "disabled":
		return "native", "none"
	case config["routing-mode"] == "" && config["tunnel"] != "":
		protocol = config["tunnel"]
	}
	if protocol != "vxlan" && protocol != "geneve" {
		return protocol, ""
	}
	return protocol, protocol
}

// ciliumServices says whether Cilium takes kube-proxy's place.
func ciliumServices(config map[string]string) bool {
	switch config["kube-proxy-replacement"] {
	case "true", "strict":
		return true
	}
	return false
}

// Where flannel keeps its configuration, and what it notes on nodes.
const (
	flannelConfig      = "kube-flannel-cfg"
	flannelBackendType = "flannel.alpha.coreos.com/backend-type"
)

// flannelConf is flannel's net-conf.json.
type flannelConf struct {
	Backend struct {
		Type          string
		MTU           int
		DirectRouting bool
	}
}

// parseFlannel reads net-conf.json. The error says what is wrong with the text.
func parseFlannel(text string) (flannelConf, error) {
	var c flannelConf
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return flannelConf{}, fmt.Errorf("flannel's net-conf.json: %w", err)
	}
	c.Backend.MTU = mtu(fmt.Sprint(c.Backend.MTU))
	return c, nil
}

// flannel is recognised by what it notes on nodes, which it does as a process as well as in a DaemonSet (k3s has it built in), or
// by its DaemonSet.
func flannel(e evidence) *trace {
	types := e.annotations(flannelBackendType)
	daemon := e.daemon("kube-flannel-ds", "kube-flannel", "kube-flannel-ds-amd64", "canal", "rke2-canal")
	if len(types) == 0 && daemon == nil {
		return nil
	}
	t := &trace{Network: Network{Plugin: "flannel", EBPF: "no", Policies: "none", Encryption: "none"}, forwards: true}
	if len(types) > 0 {
		t.By = append(t.By, "annotations of nodes: backend-type "+strings.Join(types, ", "))
	}
	t.By = append(t.By, named(daemon)...)
	var conf flannelConf
	if c := e.config("kube-flannel/"+flannelConfig, "kube-system/"+flannelConfig, "kube-system/canal-config"); c != nil {
		var err error
		if conf, err = parseFlannel(c["net-conf.json"]); err != nil {
			t.Doubt = err.Error()
		} else {
			t.By = append(t.By, "its ConfigMap: backend "+conf.Backend.Type)
		}
	}
	// What it noted on nodes is what it did; the ConfigMap may have been changed since it was started.
	switch {
	case len(types) == 1:
		t.Mode = types[0]
	case len(types) > 1:
		t.Doubt = "its nodes differ in their backend: " + strings.Join(types, ", ")
	default:
		t.Mode = conf.Backend.Type
	}
	t.Encapsulation, t.OnlyAcross = flannelBackend(t.Mode, conf.Backend.DirectRouting)
	if t.Encapsulation == "wireguard" || t.Encapsulation == "ipsec" {
		t.Encryption = t.Encapsulation
	}
	t.MTU = conf.Backend.MTU
	switch {
	case container(daemon, "kube-network-policies") != nil:
		t.Policies = "kube-network-policies"
	case e.k3s():
		t.Policies = "kube-router, within k3s"
	}
	if daemon == nil && t.Doubt == "" && !e.k3s() {
		t.Doubt = "annotations stay behind when flannel is taken away; a node agent sees whether its devices are there"
	}
	return t
}

// flannelBackend is what packets between nodes travel in, by the backend's name.
func flannelBackend(name string, direct bool) (encapsulation string, onlyAcross bool) {
	switch strings.ToLower(name) {
	case "vxlan", "ipip":
		return strings.ToLower(name), direct
	case "host-gw", "alloc", "ali-vpc", "tencent-vpc":
		return "none", false
	case "udp", "wireguard", "ipsec":
		return strings.ToLower(name), false
	}
	return "", false
}

// k3s says that nodes run k3s, which has flannel and kube-router's guard built in.
func (e evidence) k3s() bool {
	other := func(n corev1.Node) bool { return !strings.Contains(n.Status.NodeInfo.KubeletVersion, "+k3s") }
	return len(e.nodes) > 0 && !slices.ContainsFunc(e.nodes, other)
}

// join writes different values once each, for a mode that pools or nodes do not share.
func join(values []string) string {
	values = slices.Clone(values)
	slices.Sort(values)
	return strings.Join(slices.Compact(values), ", ")
}
