package survey

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"netdelta/internal/gather"
)

// evidence is what network plugins leave in a cluster for all to see.
type evidence struct {
	groups  map[string]bool // of the API
	nodes   []corev1.Node
	daemons []appsv1.DaemonSet
	// configs are ConfigMaps by "namespace/name".
	configs map[string]map[string]string
	pools   []pool
	felix   []felixConfiguration
	// blind says that some of it could not be read, so that what is not there says nothing.
	blind bool
}

// trace is what one plugin left.
type trace struct {
	Network
	// forwards says that it is this plugin that forwards packets between pods. Others only guard them.
	forwards bool
}

// identify says which plugin forwards the pods' packets, how, and what guards them.
func identify(e evidence) Network {
	var main *trace
	var others []trace
	for _, recognise := range []func(evidence) *trace{
		cilium, calico, flannel, antrea, ovnKubernetes, kubeOVN, weave, kubeRouter, kindnet, aws, azure, gke,
	} {
		switch t := recognise(e); {
		case t == nil:
		case t.forwards && main == nil:
			main = t
		default:
			others = append(others, *t)
		}
	}
	if main == nil {
		main = unnamed(e)
	}
	for _, t := range others {
		main.Others = gather.Once(main.Others, t.Plugin)
		// The guard of a plugin that forwards nothing is in force; a plugin that left only traces may be gone.
		if !t.forwards && t.Policies != "" && t.Policies != "none" && (main.Policies == "none" || main.Policies == "") {
			main.Policies = t.Policies
		}
	}
	return main.Network
}

// unnamed is the network of a cluster in which no plugin left a trace.
func unnamed(e evidence) *trace {
	for _, n := range e.nodes {
		if len(podRanges(n)) == 0 {
			return &trace{Network: Network{Doubt: "no plugin left a trace, and not every node has a range of addresses for pods"}}
		}
	}
	switch {
	case len(e.nodes) == 0:
		return &trace{Network: Network{Doubt: "nodes can't be listed"}}
	case e.blind:
		return &trace{Network: Network{Doubt: "no plugin left a trace in what could be read"}}
	}
	if e.groups[ciliumGroup] {
		return &trace{forwards: true, Network: Network{
			Plugin: "cilium", Policies: "cilium", EBPF: "yes", By: []string{"the kinds of objects of " + ciliumGroup},
			Doubt: "neither its ConfigMap nor its DaemonSet is where it usually is: mode, encryption and MTU are not known, and kinds of objects may be left of one that is gone",
		}}
	}
	n := Network{
		Plugin: "bridge", Mode: "routes", Encapsulation: "none", Policies: "none", EBPF: "no",
		By:    []string{"every node has a range of addresses for pods, and nothing tells of another plugin"},
		Doubt: "a plugin that leaves no trace in the cluster's objects looks the same; a node agent sees the devices of nodes",
	}
	for _, c := range conditions(e.nodes, corev1.NodeNetworkUnavailable) {
		if c.Reason == "RouteCreated" {
			n.By = append(n.By, "the cloud's controller made routes for them")
			break
		}
	}
	return &trace{Network: n, forwards: true}
}

// podRanges are the addresses of a node's pods.
func podRanges(n corev1.Node) []string {
	if len(n.Spec.PodCIDRs) > 0 {
		return n.Spec.PodCIDRs
	}
	if n.Spec.PodCIDR != "" {
		return []string{n.Spec.PodCIDR}
	}
	return nil
}

// conditions of one type, of all nodes.
func conditions(nodes []corev1.Node, kind corev1.NodeConditionType) []corev1.NodeCondition {
	var all []corev1.NodeCondition
	for _, n := range nodes {
		for _, c := range n.Status.Conditions {
			if c.Type == kind {
				all = append(all, c)
			}
		}
	}
	return all
}

// up says that a plugin has told a node, by such a reason, that its network is there.
func (e evidence) up(reason string) bool {
	return slices.ContainsFunc(conditions(e.nodes, corev1.NodeNetworkUnavailable), func(c corev1.NodeCondition) bool { return c.Reason == reason })
}

// daemon finds a DaemonSet by one of its usual names.
func (e evidence) daemon(names ...string) *appsv1.DaemonSet {
	for i := range e.daemons {
		if slices.Contains(names, e.daemons[i].Name) {
			return &e.daemons[i]
		}
	}
	return nil
}

// named says by which DaemonSet a plugin is recognised, nothing where there is none.
func named(d *appsv1.DaemonSet) []string {
	if d == nil {
		return nil
	}
	return []string{"DaemonSet " + d.Namespace + "/" + d.Name}
}

// config finds a ConfigMap by its usual places.
func (e evidence) config(places ...string) map[string]string {
	for _, place := range places {
		if c, ok := e.configs[place]; ok {
			return c
		}
	}
	return nil
}

// annotations are the values of a key on all nodes that have it, each value once.
func (e evidence) annotations(key string) []string {
	var all []string
	for _, n := range e.nodes {
		if v, ok := n.Annotations[key]; ok && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all
}

// labelled says that a node has a label with this key.
func (e evidence) labelled(key string) bool {
	return slices.ContainsFunc(e.nodes, func(n corev1.Node) bool { _, ok := n.Labels[key]; return ok })
}

// container finds a container of a DaemonSet; "" is any.
func container(d *appsv1.DaemonSet, name string) *corev1.Container {
	if d == nil {
		return nil
	}
	all := d.Spec.Template.Spec.Containers
	for i := range all {
		if name == "" || all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// variable is a container's variable, where its value stands in the DaemonSet itself.
func variable(c *corev1.Container, name string) (string, bool) {
	if c == nil {
		return "", false
	}
	v, is := gather.First(c.Env, func(v corev1.EnvVar) bool { return v.Name == name })
	return v.Value, is
}

// option is the value of --name among a container's arguments: --name=value, --name value, or --name alone for "true".
func option(c *corev1.Container, name string) (string, bool) {
	if c == nil {
		return "", false
	}
	all := append(slices.Clone(c.Command), c.Args...)
	for i, a := range all {
		key, value, joined := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if key != name || !strings.HasPrefix(a, "-") {
			continue
		}
		if joined {
			return value, true
		}
		if i+1 < len(all) && !strings.HasPrefix(all[i+1], "-") {
			return all[i+1], true
		}
		return "true", true
	}
	return "", false
}

// maxMTU is the largest that a device of Linux takes.
const maxMTU = 65536

// mtu reads a plugin's setting. Most take 0 or nothing for finding it out by themselves; what is no MTU is unknown.
func mtu(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 68 || n > maxMTU {
		return 0
	}
	return n
}

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
	if e.blind {
		return Services{By: unreadProxy}
	}
	return Services{}
}

// unreadProxy is said where kube-proxy's configuration may be there and could not be read.
const unreadProxy = "you may not read the configuration of kube-proxy, or its DaemonSet"
