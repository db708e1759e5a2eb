package survey

import "cmp"

// proxyConf is what matters here of kube-proxy's configuration.
type proxyConf struct {
	Mode string `yaml:"mode"`
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
	if c, _, err := e.antrea(); err == nil && c.AntreaProxy.ProxyAll {
		return Services{Mode: "ovs", By: "AntreaProxy takes kube-proxy's place"}
	}
	daemon := e.daemon("kube-proxy")
	if mode, ok := option(container(daemon, ""), "proxy-mode"); ok {
		return Services{Mode: mode, By: "the arguments of DaemonSet kube-proxy"}
	}
	if c := e.config("kube-system/" + proxyConfig); c != nil {
		conf, err := parseYAML[proxyConf]("kube-proxy's config.conf", c["config.conf"])
		if err != nil {
			return Services{By: err.Error()}
		}
		// What it takes on Linux where nothing is said.
		return Services{Mode: cmp.Or(conf.Mode, "iptables"), By: "kube-proxy's ConfigMap"}
	}
	if daemon := e.daemon("kube-router"); daemon != nil {
		if on, ok := option(container(daemon, "kube-router"), "run-service-proxy"); !ok || on != "false" {
			return Services{Mode: "ipvs", By: "kube-router takes kube-proxy's place"}
		}
	}
	return Services{}
}
