package survey

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube"
)

// judgeNetwork: whether the plugin is known, and what it can't do.
func judgeNetwork(s Survey, f *findings) {
	n := s.Network
	if n.Plugin == "" {
		f.note("network", "the network plugin is not known: "+n.Doubt,
			"the path of packets is recorded as found; nothing says how it should be", "say what must be seen, with expect: in the study")
	}
	switch n.Policies {
	case "none":
		f.note("policies", "nothing enforces NetworkPolicies: they are taken, and do nothing", "what policies cost can't be measured here", "")
	case "kube-network-policies":
		f.note("policies", "a program on each node judges the first packet of each connection to a pod that a NetworkPolicy selects (kube-network-policies)",
			"on netdelta's own cluster it added 391 µs to a new connection between nodes, and nothing that was seen to one that stands; under Calico and "+
				"Cilium, where the kernel judges, a new connection took at most 3.7% longer",
			"keep connections to such pods open; to see what it costs here: netdelta run --testbed kubernetes --workloads tcp-crr --factor policy=none,kubernetes")
	}
	if len(n.Others) > 0 && n.Plugin != "" {
		f.note("network", "besides "+n.Plugin+" there are traces of "+strings.Join(n.Others, ", "),
			"they may guard or extend it, or have stayed behind when they were taken away", "")
	}
}

// encapsulates says that packets between nodes of one subnet travel in others.
func (n Network) encapsulates() bool {
	return n.Encapsulation != "" && n.Encapsulation != "none" && !n.OnlyAcross
}

// judgeEncapsulation: whether it is needed.
func judgeEncapsulation(s Survey, f *findings) {
	n := s.Network
	if n.Encapsulation == "udp" {
		f.warn("encapsulation", n.Plugin+" tunnels through a process ("+n.Mode+")",
			"each packet is copied to a process and back: tunnels in userspace were found to add latency and to use processors", direct(n.Plugin))
		return
	}
	subnet, certain := s.subnet()
	if !n.encapsulates() || subnet == "" || n.Encapsulation == "wireguard" || n.Encapsulation == "ipsec" {
		return
	}
	where := "all nodes are in the subnet " + subnet
	if !certain {
		where = "all nodes' addresses are within " + subnet + ", so probably in one subnet"
	}
	f.warn("encapsulation", fmt.Sprintf("packets between nodes are encapsulated (%s), and %s", n.Encapsulation, where),
		"between nodes of one subnet it is not needed; a client of Ceph did 9% fewer reads of 4 KiB with VXLAN in a run of "+
			"netdelta's own, and 20 to 50% fewer in a published comparison",
		direct(n.Plugin))
}

// direct is how a plugin is told not to encapsulate within a subnet.
func direct(plugin string) string {
	how := map[string]string{
		"flannel":     "flannel: Backend.Type host-gw, or vxlan with DirectRouting true",
		"calico":      "calico: ipipMode or vxlanMode CrossSubnet in its IPPools",
		"cilium":      "cilium: routing-mode native with auto-direct-node-routes true",
		"antrea":      "antrea: trafficEncapMode hybrid",
		"kube-router": "kube-router: --overlay-type=subnet",
	}
	switch plugin {
	case "kube-ovn", "ovn-kubernetes", "weave":
		return plugin + " always encapsulates; a plugin that routes would not"
	}
	return cmp.Or(how[plugin], "see the plugin's documentation for routing without encapsulation")
}

// judgeHostRouting: whether eBPF takes pods past their node's firewall. With IPsec it can't.
func judgeHostRouting(s Survey, f *findings) {
	n := s.Network
	if !n.ThroughStack || n.Encryption == "ipsec" {
		return
	}
	f.warn("host routing", n.Plugin+" leads pods' packets through their node's stack and firewall",
		"on netdelta's own cluster a round trip between pods took 34% longer than between nodes with it, and 5% less without; native routing "+
			"in place of VXLAN gained nothing there as long as it was so",
		n.Plugin+": kubeProxyReplacement true, bpf.masquerade true, bpf.hostLegacyRouting false")
}

// likelySubnet is the length of a prefix of IPv4 that is probably not divided into several subnets.
const likelySubnet = 24

// subnet is the one that all nodes are in: certainly where their devices were seen, else by their addresses. It is "" where there is
// none, or fewer than two nodes.
func (s Survey) subnet() (subnet string, certain bool) {
	if len(s.Nodes) < 2 {
		return "", false
	}
	if own, ok := s.deviceSubnet(); ok {
		return own, true
	}
	var low, high netip.Addr
	for _, n := range s.Nodes {
		i := slices.IndexFunc(n.Addresses, func(a string) bool { ip, err := netip.ParseAddr(a); return err == nil && ip.Is4() })
		if i < 0 {
			return "", false
		}
		ip := netip.MustParseAddr(n.Addresses[i])
		if !low.IsValid() || ip.Less(low) {
			low = ip
		}
		if !high.IsValid() || high.Less(ip) {
			high = ip
		}
	}
	prefix := netip.PrefixFrom(low, likelySubnet).Masked()
	if !prefix.Contains(high) {
		return "", false
	}
	return prefix.String(), false
}

// deviceSubnet is the subnet of all nodes' own addresses as their devices have it. It says false where not all were seen.
func (s Survey) deviceSubnet() (subnet string, seen bool) {
	var own netip.Prefix
	for _, n := range s.Nodes {
		device, ok := n.Card()
		if !ok {
			return "", false
		}
		i := slices.IndexFunc(device.Addresses, func(p netip.Prefix) bool { return slices.Contains(n.Addresses, p.Addr().String()) })
		if i < 0 {
			return "", false
		}
		prefix := device.Addresses[i].Masked()
		if own.IsValid() && prefix != own {
			return "", true
		}
		own = prefix
	}
	return own.String(), true
}

// overhead is what an encapsulation adds to each packet under IPv4, in bytes.
func overhead(encapsulation string) int {
	return map[string]int{
		"vxlan": 50, "geneve": 50, "ipip": 20, "gre": 24, "udp": 28, "fou": 28, "wireguard": 60, "stt": 76, "ipsec": 80,
	}[encapsulation]
}

// worthwhile is the share of a packet that pods leave unused before it is a finding, as one in so many.
const worthwhile = 10

// judgeMTU: whether pods use what the cards take, and no more: those of their own node and those of every other.
func judgeMTU(s Survey, f *findings) {
	var small, large []string
	sizes := map[int]bool{}
	for _, n := range s.Nodes {
		pods := s.podMTU(n)
		own, ok := s.room(n)
		if pods == 0 || !ok {
			continue
		}
		sizes[pods] = true
		card, _ := n.Card()
		switch {
		case pods > own:
			large = append(large, fmt.Sprintf("%s (%s: %d)", n.Name, card.Name, card.MTU))
			continue
		case own-pods > own/worthwhile:
			small = append(small, fmt.Sprintf("%s (%s: %d)", n.Name, card.Name, card.MTU))
		}
		for _, other := range s.Nodes {
			if room, ok := s.room(other); ok && pods > room && s.podMTU(other) <= room { // else it is named for its own pods
				to, _ := other.Card()
				large = append(large, fmt.Sprintf("%s to %s (%s: %d)", n.Name, other.Name, to.Name, to.MTU))
			}
		}
	}
	pods := "pods have an MTU of " + strings.Join(gather.Each(slices.Sorted(maps.Keys(sizes)), strconv.Itoa), " or ")
	if len(small) > 0 {
		f.warn("mtu", pods+", and cards take more: "+some(small),
			"large packets were found to help tunnels much, and direct routing little; each packet costs the same, however much is in it",
			"raise the plugin's MTU to the cards' less what encapsulation takes; to see what it brings: netdelta run --factor mtu=1500,9000")
	}
	if len(large) > 0 {
		f.warn("mtu", fmt.Sprintf("%s, which with %s is more than cards take: %s", pods, wrapped(s.Network), some(large)),
			"full packets are cut up, or lost", "lower the plugin's MTU, or raise the MTU of the cards and the switches between them")
	}
}

// room is the size of a pod's largest packet that a node's card takes, with what the network wraps around it; false where the card is not known.
func (s Survey) room(n Node) (int, bool) {
	card, ok := n.Card()
	return card.MTU - overhead(s.Network.Encapsulation), ok
}

// judgeWays: whether packets get from pods of each node to pods of the others, where that was tried.
func judgeWays(s Survey, f *findings) {
	for _, b := range s.Broken {
		f.missing(result.TopicBroken, b.Says, "nothing can be measured over it, and your own pods may meet the same", b.Fix)
	}
}

// judgeDenials: whether policies keep the pods of a run from each other.
func judgeDenials(s Survey, f *findings) {
	if len(s.Namespace.Denials) == 0 {
		return
	}
	says := "NetworkPolicies keep netdelta's pods from each other: " + strings.Join(gather.Each(s.Namespace.Denials, kube.Denial.String), "; ")
	if s.Network.Policies == "none" {
		f.note("policies", says+"; nothing that was found enforces them", "", "")
		return
	}
	f.warn("policies", says, "nothing can be measured over the pods' network while they are enforced", kube.CommandToAdmit(s.Namespace.Denials))
}

// wrapped names what packets travel in.
func wrapped(n Network) string {
	if overhead(n.Encapsulation) == 0 {
		return "their headers"
	}
	return fmt.Sprintf("the %d bytes of %s", overhead(n.Encapsulation), n.Encapsulation)
}

// judgeBonds: whether bonds can share what runs between two nodes.
func judgeBonds(s Survey, f *findings) {
	found := map[string][]string{}
	var policies []string
	for _, n := range s.Nodes {
		for _, d := range n.Devices {
			if d.Kind != "bond" || !spreads(d.BondMode) || suits(d.HashPolicy, s.Network.Encapsulation) {
				continue
			}
			if found[d.HashPolicy] == nil {
				policies = append(policies, d.HashPolicy)
			}
			found[d.HashPolicy] = append(found[d.HashPolicy], n.Name+" "+d.Name)
		}
	}
	for _, policy := range policies {
		f.warn("bonds", fmt.Sprintf("bonds hash by %s: %s", policy, some(found[policy])),
			"all packets between two nodes take the same link: with the default hash, two links were found to carry no more than one, and the "+
				"right one to bring up to 40% more large block operations",
			"xmit_hash_policy "+hash(s.Network.Encapsulation)+" for pods, layer3+4 for pods in their node's network; to see what it brings: netdelta run bonding")
	}
}

// spreads says that a bond in this mode chooses a link by a hash of each packet.
func spreads(mode string) bool { return mode == "802.3ad" || mode == "balance-xor" }

// suits says that a hash can tell flows between two nodes apart.
func suits(policy, encapsulation string) bool {
	if encapsulation == "wireguard" || encapsulation == "ipsec" {
		return true // no hash can spread what is encrypted between two nodes: there is nothing to fix
	}
	switch policy {
	case "layer2", "vlan+srcmac":
		return false
	case "layer2+3":
		// Between two nodes of a tunnel, the outer addresses are always the same.
		return encapsulation == "none" || encapsulation == ""
	case "layer3+4":
		// The outer ports of VXLAN and Geneve are drawn from the inner ones; IPIP and GRE have none.
		return encapsulation != "ipip" && encapsulation != "gre"
	}
	return true
}

// hash is the policy that suits an encapsulation.
func hash(encapsulation string) string {
	switch encapsulation {
	case "", "none":
		return "layer2+3"
	}
	return "encap3+4"
}

// judgeCards: whether nodes speak to each other across their fastest card.
func judgeCards(s Survey, f *findings) {
	var slow []string
	for _, n := range s.Nodes {
		own, ok := n.Card()
		if !ok || own.Speed <= 0 {
			continue
		}
		for _, d := range n.Devices {
			if d.Name != own.Name && d.Up && d.Master == "" && d.Speed > own.Speed && (d.Kind == hardware || d.Kind == "bond") && addressed(d) {
				slow = append(slow, fmt.Sprintf("%s (%s at %s, though %s has %s)", n.Name, own.Name, own.Speed, d.Name, d.Speed))
				break
			}
		}
	}
	if len(slow) == 0 {
		return
	}
	f.warn("cards", "nodes' own addresses are on their slower card: "+some(slow),
		"plugins may take the slower card without a word: in a published comparison three did",
		"tell the plugin which card to take, or give the kubelet the other card's address with --node-ip")
}

// addressed says that a device can be reached by others.
func addressed(d testbed.Interface) bool {
	return slices.ContainsFunc(d.Addresses, func(p netip.Prefix) bool { return !p.Addr().IsLinkLocalUnicast() })
}

// manyServices is the number from which on rules of iptables for each of them are worth a look.
const manyServices = 1000

// judgeServices: whether they are found without walking through rules.
func judgeServices(s Survey, f *findings) {
	switch {
	case s.Services.Mode == "":
		says := "how services are reached is not known: there is no configuration of kube-proxy where it usually is"
		if s.Services.By != "" {
			says = "how services are reached is not known: " + s.Services.By
		}
		f.note("services", says, "", "on a node, 127.0.0.1:10249/proxyMode says it")
	case s.Services.Mode == "iptables" && s.Services.Count >= manyServices:
		f.warn("services", fmt.Sprintf("%d services in iptables", s.Services.Count),
			"the first packet of each connection is held against one rule after the other, and each change writes them anew",
			"kube-proxy's mode nftables, which looks services up; to see what it brings: netdelta run --factor service=iptables,nftables --factor service.count=10,1000")
	}
}

// judgeSight: what is not seen without a node agent.
func judgeSight(s Survey, f *findings) {
	if s.Devices || s.NodeAgent {
		return
	}
	f.note("node agent", "the nodes' cards and bonds were not looked at",
		"whether pods use all that they take is not known, and runs prove the path of packets from within the pods alone",
		"--node-agent, in a namespace that admits it")
}

// sign is what a product has on nodes while it runs, by the beginnings of the names that nsmonitor.Standing has for it.
type sign struct {
	product string
	names   []string
	proxy   string // the mode of kube-proxy whose sign it is, "" for a plugin's
}

func signs() []sign {
	return []sign{
		{product: "antrea", names: []string{"device antrea-", "chains ANTREA-"}},
		{product: "calico", names: []string{"device vxlan.calico", "device wireguard.cali", "device bpfin.cali", "chains cali-"}},
		{product: "cilium", names: []string{"device cilium_", "chains CILIUM_"}},
		{product: "flannel", names: []string{"device flannel", "chains FLANNEL-"}},
		{product: "kube-ovn", names: []string{"device ovn0 "}},
		{product: "kube-router", names: []string{"chains KUBE-ROUTER", "chains KUBE-NWPLCY"}},
		{product: "ovn-kubernetes", names: []string{"device ovn-k8s-"}},
		{product: "weave", names: []string{"device vxlan-6784", "chains WEAVE-"}},
		{product: "kube-proxy with iptables", names: []string{"chains KUBE-SVC", "chains KUBE-SEP"}, proxy: "iptables"},
		{product: "kube-proxy with nftables", names: []string{"table kube-proxy"}, proxy: "nftables"},
		{product: "kube-proxy with ipvs", names: []string{"device kube-ipvs0"}, proxy: "ipvs"},
	}
}

// Foreign says which nodes have what other products make than those that join the cluster's pods and lead to its services: what stands on
// nodes, by node, is named as nsmonitor.Standing does. Where the plugin is not known, nothing is foreign.
func (s Survey) Foreign(standing map[string][]string) []string {
	var all []string
	for _, node := range slices.Sorted(maps.Keys(standing)) {
		for _, sign := range signs() {
			own := s.Network.Plugin == "" || s.Network.Plugin == sign.product || slices.Contains(s.Network.Others, sign.product) ||
				strings.HasPrefix(s.Network.Policies, sign.product)
			in := s.Network.Plugin
			if sign.proxy != "" {
				in, own = "services by "+s.Services.Mode, s.Services.Mode == "" || s.Services.Mode == sign.proxy
			}
			found := slices.DeleteFunc(slices.Clone(standing[node]), func(name string) bool {
				return !slices.ContainsFunc(sign.names, func(start string) bool { return strings.HasPrefix(name, start) })
			})
			if len(found) > 0 && !own {
				all = append(all, fmt.Sprintf("node %s has what %s makes, and the cluster has %s: %s", node, sign.product, in, some(found)))
			}
		}
	}
	return all
}

// judgeForeign: what other products have left on the nodes, as far as their devices tell.
func judgeForeign(s Survey, f *findings) {
	standing := map[string][]string{}
	for _, n := range s.Nodes {
		for _, d := range n.Devices {
			standing[n.Name] = append(standing[n.Name], "device "+d.Name+" ")
		}
	}
	for _, says := range s.Foreign(standing) {
		f.warn("leftovers", says, "what is left of a product may still meet packets, and then runs measure it too",
			"take it away as the product's documentation says, or give the node a fresh start")
	}
}
