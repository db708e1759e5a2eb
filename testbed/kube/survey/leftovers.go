package survey

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

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
