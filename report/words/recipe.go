package words

import (
	"cmp"
	"strings"

	"netdelta/insight"
	"netdelta/network"
	"netdelta/result"
)

// recipe is how a change is made and undone, and what it risks.
type recipe struct {
	how, undo []string
	risk      string
}

// recipeOf is the recipe of a change.
func recipeOf(c insight.Change) recipe {
	switch {
	case c.Applied != nil:
		return recipe{c.Applied.Apply, c.Applied.Undo, "The study made this change and undid it: it is for all pods of the cluster."}
	case c.Factor != "":
		return conditionRecipe(c)
	case len(c.Moves) > 0:
		return joined(c.Moves)
	case c.From == "clusterip" && c.To == "headless":
		return recipe{
			[]string{"spec: {clusterIP: None}   # of the Service, made anew"},
			[]string{"spec: {}   # of the Service, made anew, gives it an address again"},
			"Clients must look names up anew to notice new pods, and choose among them themselves.",
		}
	case c.From == "nodeport" && c.To == "clusterip":
		return recipe{
			[]string{"Use the name of the Service within the cluster: SERVICE.NAMESPACE.svc, not NODE:PORT"}, nil,
			"Only clients within the cluster can.",
		}
	case c.From == "docker:published-proxy" && c.To == "docker:published":
		return recipe{
			[]string{"Call published ports at an address of the host, not at localhost", `# or, for all: {"userland-proxy": false} in /etc/docker/daemon.json, then restart the daemon`},
			[]string{`{"userland-proxy": true}`},
			"Without the proxy, the firewall's rules alone serve published ports: IPv6 takes ip6tables in the daemon's configuration.",
		}
	case strings.HasPrefix(c.From, "docker:") && c.To == "docker:host":
		return recipe{
			[]string{"docker run --network host ..."}, nil, "Ports collide on the host, and nothing isolates the container's network.",
		}
	case c.From == "pod" && c.To == "host":
		return recipe{
			[]string{"spec: {hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet}   # of the pod"},
			[]string{"spec: {hostNetwork: false}"},
			"Ports collide on a node, NetworkPolicy does not hold, and the pod sees the node's network.",
		}
	}
	return recipe{how: installed(c.To), risk: "Networks differ in features: check first what the other one has of policies, encryption and services."}
}

// findingRecipe is how what the doctor found in a run's testbed is fixed: in the doctor's words and, where the cluster's product is known, by
// the product's commands.
func findingRecipe(f result.Finding, run result.Run) recipe {
	r := recipe{how: []string{f.Fix}}
	plugin, _, _ := strings.Cut(f.Fix, ":")
	if f.Topic == "host routing" && plugin == "cilium" {
		return recipe{
			how:  append([]string{"# " + f.Fix}, helm("--set "+ciliumBypass+" --set bpf.hostLegacyRouting=false")...),
			undo: helm("--set kubeProxyReplacement=false --set bpf.masquerade=false"),
			risk: services,
		}
	}
	if f.Topic != insight.TopicEncapsulation || run.Environment.Cluster == nil {
		return r
	}
	for _, m := range network.Moves() {
		if m.From.Name == run.Environment.Cluster.Product && (m.To.Network == "routed" || m.To.Network == "ebpf-routed") {
			move := moveRecipe(m)
			return recipe{how: append([]string{"# " + f.Fix}, move.how...), undo: move.undo, risk: move.risk}
		}
	}
	return r
}

// installed says how a network is had, by the systems that use it.
func installed(name string) []string {
	if users, known := network.Users()[name]; known {
		return []string{"# " + name + " is used by " + strings.Join(users, ", ")}
	}
	return nil
}

// joined are the recipes of moves, each headed by its system where there are several.
func joined(moves []network.Move) recipe {
	var all recipe
	for _, m := range moves {
		r := moveRecipe(m)
		if len(moves) > 1 {
			all.how, all.undo = append(all.how, "# "+m.From.System), append(all.undo, "# "+m.From.System)
		}
		all.how, all.undo = append(all.how, r.how...), append(all.undo, r.undo...)
		all.risk = cmp.Or(all.risk, r.risk)
	}
	return all
}

// What several changes risk.
const (
	oneLink    = "All nodes must be on one link, or the routers between them must know the pods' addresses; connections break once."
	plain      = "Packets between nodes are readable on the wire."
	reconnects = "Packets are dropped while the agents restart, node by node."
	services   = "Connections through services break once. Before kube-proxy is removed, k8sServiceHost and k8sServicePort must name the API server."
)

// moveRecipe is how users of a system change from one of its configurations to another.
func moveRecipe(m network.Move) recipe {
	r := recipe{how: configured(m.To, m.From), undo: configured(m.From, m.To), risk: reconnects}
	switch {
	case m.From.Network == "wireguard" && m.To.Network != "wireguard" || m.From.Network == "ipsec" && m.To.Network != "wireguard":
		r.risk = plain + " " + oneLink
	case m.To.Network == "routed":
		r.risk = oneLink
	case m.To.Network == "ebpf-routed":
		r.risk, r.undo = oneLink+" "+services, append(r.undo, "# and kubeProxyReplacement and bpf.masquerade as they were")
	case m.To.Network == "netkit":
		r.risk = "It takes Linux 6.8 on every node; pods must be made anew."
	case m.To.Name == "docker-macvlan" || m.To.Name == "docker-ipvlan":
		r.risk = "Containers are on the host's own link, with addresses of it; they and their host can't reach each other; clouds often refuse further MAC addresses."
	case m.To.Network == "host":
		r.risk = "Ports collide on the host, and nothing isolates the container's network."
	}
	return r
}

// configured says how a system is put from one configuration into another.
func configured(p, from network.Product) []string {
	switch p.System {
	case "Calico":
		return calico(p.Name, from)
	case "Cilium":
		return cilium(p.Name, from)
	case "Flannel":
		return flannel(p.Name)
	}
	return configurations()[p.Name]
}

// calico changes the pool of addresses, whose packets are encapsulated or not.
func calico(name string, from network.Product) []string {
	const felix = "kubectl patch felixconfigurations.crd.projectcalico.org default --type merge -p "
	pool, known := map[string]struct{ modes, operator string }{
		// Never would take the routes between nodes with it, unless they are told by BGP.
		"calico-native": {`"vxlanMode":"CrossSubnet","ipipMode":"Never"`, "VXLANCrossSubnet"},
		"calico-vxlan":  {`"vxlanMode":"Always","ipipMode":"Never"`, "VXLAN"},
		"calico-ipip":   {`"vxlanMode":"Never","ipipMode":"Always"`, "IPIP"},
	}[name]
	if !known {
		return []string{felix + `'{"spec":{"wireguardEnabled":true}}'`}
	}
	commands := []string{
		"kubectl patch ippools.crd.projectcalico.org default-ipv4-ippool --type merge -p '{\"spec\":{" + pool.modes + "}}'",
		"# where the operator installed it, which would change that back:",
		`kubectl patch installation default --type json -p '[{"op":"replace","path":"/spec/calicoNetwork/ipPools/0/encapsulation","value":"` + pool.operator + `"}]'`,
	}
	if from.Network == "wireguard" {
		commands = append(commands, felix+`'{"spec":{"wireguardEnabled":false}}'`)
	}
	return commands
}

// cilium changes the values of the chart.
func cilium(name string, from network.Product) []string {
	values := map[string]string{
		"cilium":           "--set routingMode=tunnel --set tunnelProtocol=vxlan",
		"cilium-native":    "--set routingMode=native --set autoDirectNodeRoutes=true --set ipv4NativeRoutingCIDR=POD-CIDR --set bpf.datapathMode=veth --set " + ciliumBypass,
		"cilium-geneve":    "--set routingMode=tunnel --set tunnelProtocol=geneve",
		"cilium-netkit":    "--set bpf.datapathMode=netkit --set " + ciliumBypass,
		"cilium-wireguard": "--set encryption.enabled=true --set encryption.type=wireguard",
		"cilium-ipsec":     "--set encryption.enabled=true --set encryption.type=ipsec",
	}[name]
	if encrypted := from.Network == "wireguard" || from.Network == "ipsec"; encrypted && !strings.Contains(values, "encryption.enabled") {
		values += " --set encryption.enabled=false"
	}
	return helm(values)
}

// ciliumBypass are the values with which Cilium leads pods' packets past their node's firewall, as the lab's eBPF networks do. Beneath
// kube-proxy, native routing was found to gain nothing (docs/results/cnis.md).
const ciliumBypass = "kubeProxyReplacement=true --set bpf.masquerade=true"

// helm changes values of Cilium's chart.
func helm(values string) []string {
	return []string{
		"helm upgrade cilium cilium/cilium -n kube-system --reuse-values " + values,
		"kubectl -n kube-system rollout restart daemonset/cilium",
	}
}

// flannel changes the backend that its ConfigMap names.
func flannel(name string) []string {
	backend := strings.TrimPrefix(name, "flannel-")
	if name == "flannel" {
		backend = "vxlan"
	}
	return []string{
		`kubectl -n kube-flannel get configmap kube-flannel-cfg -o yaml | sed 's/"Type": "[a-z-]*"/"Type": "` + backend + `"/' | kubectl apply -f -`,
		"kubectl -n kube-flannel rollout restart daemonset/kube-flannel-ds",
	}
}

// configurations are the commands of systems of which each configuration stands for itself.
func configurations() map[string][]string {
	const parent = " --subnet LINK-SUBNET --ip-range FREE-RANGE -o parent=eth0 pods"
	return map[string][]string{
		"k3s":            {"k3s server --flannel-backend=vxlan   # or flannel-backend in /etc/rancher/k3s/config.yaml, on each server"},
		"k3s-host-gw":    {"k3s server --flannel-backend=host-gw   # or flannel-backend in /etc/rancher/k3s/config.yaml, on each server"},
		"docker":         {"docker run --network bridge ..."},
		"docker-host":    {"docker run --network host ..."},
		"docker-macvlan": {"docker network create -d macvlan" + parent, "docker run --network pods ..."},
		"docker-ipvlan":  {"docker network create -d ipvlan" + parent, "docker run --network pods ..."},
		"docker-overlay": {"docker network create -d overlay --attachable pods", "docker run --network pods ..."},
	}
}

// conditionRecipe is how a condition is brought from one level to another.
func conditionRecipe(c insight.Change) recipe {
	both := func(command func(level string) string, risk string) recipe {
		return recipe{[]string{command(c.To)}, []string{command(c.From)}, risk}
	}
	if offload, is := strings.CutPrefix(c.Factor, "offload."); is {
		return both(func(level string) string { return "ethtool -K eth0 " + offload + " " + level }, "Drivers with faults in an offload corrupt or stall traffic: watch errors and retransmits.")
	}
	switch c.Factor {
	case "mtu":
		r := both(func(level string) string { return "ip link set dev eth0 mtu " + level + "   # on every node" },
			"Every switch and every node of the link must carry packets of that size, or large ones vanish.")
		r.how = append(r.how, "# then the network of the pods, less what encapsulation takes",
			`kubectl -n kube-system patch configmap calico-config --type merge -p '{"data":{"veth_mtu":"0"}}'   # Calico finds it out`,
			"kubectl -n kube-system rollout restart daemonset/calico-node   # pods made afterwards have it",
			"helm upgrade cilium cilium/cilium -n kube-system --reuse-values --set MTU="+c.To+"   # Cilium")
		return r
	case "congestion_control":
		return both(func(level string) string { return "sysctl -w net.ipv4.tcp_congestion_control=" + level }, "It changes how connections share links with others.")
	case "busy_poll":
		return both(func(level string) string { return "sysctl -w net.core.busy_read=" + micros(level) }, "Processors spin while they wait.")
	case "bond":
		_, how, _ := strings.Cut(c.To, "x")
		mode, hash, _ := strings.Cut(how, ",")
		_, old, _ := strings.Cut(c.From, "x")
		oldMode, oldHash, _ := strings.Cut(old, ",")
		return recipe{
			[]string{"ip link set dev bond0 type bond mode " + mode + withHash(hash)}, []string{"ip link set dev bond0 type bond mode " + oldMode + withHash(oldHash)},
			"The switch must spread packets the same way; a mode can only be changed while the bond is down.",
		}
	case "rps":
		return both(func(level string) string {
			mask := map[string]string{"on": "ffffffff", "off": "0"}[level]
			return "echo " + mask + " | tee /sys/class/net/eth0/queues/rx-*/rps_cpus"
		}, "Packets wake other processors: throughput gains where latency may lose.")
	case "policy":
		return recipe{how: []string{"# fewer rules before the one that matches, or " + c.To + " in place of " + c.From}, risk: "A policy that is not there guards nothing: merge or order rules, don't drop what is needed."}
	case "service":
		return recipe{how: []string{"# kube-proxy: mode " + c.To + " in its ConfigMap, or headless Services for clients that choose a pod themselves"}, risk: "All Services of a cluster change at once."}
	case "encryption":
		r := recipe{how: []string{"# encrypt between nodes by " + c.To + " in place of " + c.From}, risk: "Keys and their rotation are the network's."}
		if c.To == "none" {
			r = recipe{[]string{"# leave encryption between nodes to what the programs do themselves (TLS)"}, nil, plain}
		}
		return r
	case "qos":
		return recipe{
			how:  []string{"resources: {requests: {cpu: 2, memory: 256Mi}, limits: {cpu: 2, memory: 256Mi}}   # of every container of the pod", "# and cpuManagerPolicy: static in the kubelet's configuration"},
			undo: []string{"resources: {}"}, risk: "The pod can use no more than that, and no other pod can use what it leaves.",
		}
	case "from":
		return recipe{how: []string{"# run the client with hostNetwork, or on the node"}, risk: "The client loses its own network and policies."}
	case "nagle":
		return recipe{how: []string{"# TCP_NODELAY in the program, as most have it by default"}, risk: "More, smaller packets."}
	case "storage_class":
		return recipe{how: []string{"spec: {storageClassName: " + c.To + "}   # of new PersistentVolumeClaims"}, risk: "Data has to be copied."}
	}
	return recipe{}
}

// withHash is the part of a command that chooses a bond's hash.
func withHash(policy string) string {
	if policy == "" {
		return ""
	}
	return " xmit_hash_policy " + policy
}

// micros is a time without its unit, as sysctls take it: "50us" is 50.
func micros(level string) string {
	return strings.TrimSuffix(strings.TrimSuffix(level, "us"), "µs")
}
