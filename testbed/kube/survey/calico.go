package survey

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
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
