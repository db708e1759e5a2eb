package survey

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

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
