package network

import (
	"slices"
	"strings"
)

// Product is a system as its users name it, in one of its configurations, and the network whose datapath stands in for it.
type Product struct {
	// Name is how --networks takes it; System is the system alone.
	Name, System string
	// Network is the mechanism.
	Network string
}

// Products are the names of products that stand for networks, grouped by system. Not all that a product does is in a
// network: it has the devices, routes and headers that packets pass, and none of the product's own policies or proxies.
func Products() []Product {
	return []Product{
		{"calico-native", "Calico", "routed"},
		{"calico-vxlan", "Calico", "vxlan-routed"},
		{"calico-ipip", "Calico", "ipip"},
		{"calico-wireguard", "Calico", "wireguard"},
		{"cilium", "Cilium", "ebpf-vxlan"},
		{"cilium-native", "Cilium", "ebpf-routed"},
		{"cilium-geneve", "Cilium", "geneve"},
		{"cilium-netkit", "Cilium", "netkit"},
		{"cilium-wireguard", "Cilium", "wireguard"},
		{"cilium-ipsec", "Cilium", "ipsec"},
		{"flannel", "Flannel", "vxlan-routed"},
		{"flannel-host-gw", "Flannel", "routed"},
		{"flannel-udp", "Flannel", "udp-tun"},
		{"flannel-ipip", "Flannel", "ipip"},
		{"flannel-wireguard", "Flannel", "wireguard"},
		{"k3s", "k3s", "vxlan-routed"},
		{"k3s-host-gw", "k3s", "routed"},
		{"kube-router", "kube-router", "routed"},
		{"antrea", "Antrea", "geneve"},
		{"ovn-kubernetes", "OVN-Kubernetes", "geneve"},
		{"weave", "Weave Net", "ovs"},
		{"weave-sleeve", "Weave Net", "udp-tun"},
		{"docker", "Docker", "bridge-nat"},
		{"docker-host", "Docker", "host"},
		{"docker-macvlan", "Docker", "macvlan"},
		{"docker-ipvlan", "Docker", "ipvlan-l2"},
		{"docker-overlay", "Docker", "vxlan"},
		{"podman", "Podman", "bridge-nat"},
	}
}

// FindProduct is the product of a name, false if there is none. Letters may be capitals.
func FindProduct(name string) (Product, bool) {
	all := Products()
	i := slices.IndexFunc(all, func(p Product) bool { return strings.EqualFold(p.Name, name) })
	if i < 0 {
		return Product{}, false
	}
	return all[i], true
}

// Move is a change that users of a system can make while they keep the system.
type Move struct{ From, To Product }

// Moves are the changes within systems that are worth weighing. Those that give up encryption are among them: what
// it costs is a reason to look at where it is needed.
func Moves() []Move {
	var all []Move
	for _, m := range []struct {
		to   string
		from []string
	}{
		{"calico-native", []string{"calico-vxlan", "calico-ipip", "calico-wireguard"}},
		{"calico-vxlan", []string{"calico-ipip"}},
		{"cilium-native", []string{"cilium", "cilium-geneve", "cilium-wireguard", "cilium-ipsec"}},
		{"cilium-wireguard", []string{"cilium-ipsec"}},
		{"cilium-netkit", []string{"cilium-native"}},
		{"flannel-host-gw", []string{"flannel", "flannel-udp", "flannel-ipip", "flannel-wireguard"}},
		{"flannel", []string{"flannel-udp"}},
		{"k3s-host-gw", []string{"k3s"}},
		{"docker-macvlan", []string{"docker", "docker-overlay"}},
		{"docker-ipvlan", []string{"docker", "docker-overlay"}},
		{"docker-host", []string{"docker"}},
	} {
		to, _ := FindProduct(m.to)
		for _, name := range m.from {
			from, _ := FindProduct(name)
			all = append(all, Move{from, to})
		}
	}
	return all
}
