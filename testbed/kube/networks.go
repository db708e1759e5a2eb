package kube

import (
	"strings"

	"netdelta/internal/gather"
	"netdelta/internal/suggest"
	"netdelta/network"
)

// The networks of a cluster, by their names in studies.
const (
	Host      = "host"
	Pod       = "pod"
	ClusterIP = "clusterip"
	NodePort  = "nodeport"
	Headless  = "headless"
	// MultusPrefix begins the name of a secondary network: "multus:NAMESPACE/NAME", of a NetworkAttachmentDefinition.
	MultusPrefix = "multus:"
)

// Networks are those that every cluster has, in the order in which they are listed: ways to reach a server's pod. They have no plan.
func Networks() []network.Network {
	return []network.Network{
		{Name: Host, Summary: "pods in their nodes' own network namespaces: what the machines can do", UsedBy: []string{"hostNetwork pods"}, Reach: network.ByNode, OwnPods: true},
		{Name: Pod, Summary: "from pod to pod, at the server's own address, over whatever joins the pods of the cluster", UsedBy: []string{"every CNI plugin"}},
		{Name: ClusterIP, Summary: "through the virtual address of a Service", UsedBy: []string{"kube-proxy", "Cilium", "Calico eBPF"}},
		{Name: NodePort, Summary: "through a port of the server's node", UsedBy: []string{"kube-proxy", "Cilium", "Calico eBPF"}, Reach: network.ByNode},
		{Name: Headless, Summary: "at the address that the cluster's name service gives for a Service without one of its own", UsedBy: []string{"StatefulSets"}},
	}
}

// Named is the network of a name: one of Networks, or a secondary network of Multus.
func Named(name string) (network.Network, error) {
	if rest, is := strings.CutPrefix(name, MultusPrefix); is {
		if _, _, err := attachment(rest); err != nil {
			return network.Network{}, err
		}
		return network.Network{Name: name, Summary: "a secondary network that Multus attaches", UsedBy: []string{"Multus"}}, nil
	}
	known := Networks()
	if n, is := gather.First(known, func(n network.Network) bool { return n.Name == name }); is {
		return n, nil
	}
	names := network.Names(known)
	near, _ := suggest.Nearest(name, names)
	return network.Network{}, &network.UnknownError{Name: name, Nearest: near, Known: append(names, MultusPrefix+"NAMESPACE/NAME")}
}

// serviced says whether a network goes through a Service.
func serviced(network string) bool {
	return network == ClusterIP || network == NodePort || network == Headless
}
