package survey

import (
	"cmp"
	"strings"
)

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
