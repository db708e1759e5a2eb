package survey

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// proxyConf is what matters here of kube-proxy's configuration.
type proxyConf struct {
	Mode string `yaml:"mode"`
}

// parseProxy reads kube-proxy's config.conf. The error says what is wrong with the text.
func parseProxy(text string) (proxyConf, error) {
	var c proxyConf
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		return proxyConf{}, fmt.Errorf("kube-proxy's config.conf: %w", err)
	}
	return c, nil
}

// proxyConfig is where kubeadm, and most who do not use it, keep kube-proxy's configuration.
const proxyConfig = "kube-proxy"

// configNames are the ConfigMaps in kube-system that tell of the network.
func configNames() []string {
	return []string{proxyConfig, ciliumConfig, flannelConfig, antreaConfig, "calico-config", "canal-config"}
}

// reached is how services are reached.
func reached(e evidence, n Network) Services {
	if ciliumServices(e.config("kube-system/"+ciliumConfig, "cilium/"+ciliumConfig)) {
		return Services{Mode: "ebpf", By: "Cilium takes kube-proxy's place"}
	}
	switch {
	case n.Plugin == "calico" && n.EBPF == "yes":
		return Services{Mode: "ebpf", By: "Calico's eBPF takes kube-proxy's place"}
	case n.Plugin == "ovn-kubernetes":
		return Services{Mode: "ovn", By: "OVN has load balancers of its own"}
	}
	if c := e.config("kube-system/" + antreaConfig); c != nil {
		if conf, err := parseAntrea(c["antrea-agent.conf"]); err == nil && conf.AntreaProxy.ProxyAll {
			return Services{Mode: "ovs", By: "AntreaProxy takes kube-proxy's place"}
		}
	}
	daemon := e.daemon("kube-proxy")
	if mode, ok := option(container(daemon, ""), "proxy-mode"); ok {
		return Services{Mode: mode, By: "the arguments of DaemonSet kube-proxy"}
	}
	if c := e.config("kube-system/" + proxyConfig); c != nil {
		conf, err := parseProxy(c["config.conf"])
		if err != nil {
			return Services{By: err.Error()}
		}
		// What it takes on Linux where nothing is said.
		return Services{Mode: either(conf.Mode, "iptables"), By: "kube-proxy's ConfigMap"}
	}
	if daemon := e.daemon("kube-router"); daemon != nil {
		if on, ok := option(container(daemon, "kube-router"), "run-service-proxy"); !ok || on != "false" {
			return Services{Mode: "ipvs", By: "kube-router takes kube-proxy's place"}
		}
	}
	return Services{}
}
