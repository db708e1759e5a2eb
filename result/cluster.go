package result

import (
	"fmt"
	"strings"

	"netdelta/unit"
)

// Cluster is the cluster of machines that a run was measured on.
type Cluster struct {
	// Name is what the user calls it: a context of the kubeconfig.
	Name string `json:"name"`
	// Version is the version of Kubernetes, as the API server says it.
	Version string `json:"version,omitempty"`
	// Network is what joins its pods, and how, as far as it shows: "flannel (vxlan)"; Proxy is how services are resolved:
	// "iptables", "nftables", "ipvs", "ebpf".
	Network string `json:"network,omitempty"`
	// Product is the product of network.Products that this is, "" where none is or where it is not known.
	Product string `json:"product,omitempty"`
	Proxy   string `json:"proxy,omitempty"`
	// Nodes are those that pods of the run stood on, in the order of their names.
	Nodes []ClusterNode `json:"nodes,omitempty"`
}

// ClusterNode is a node of a cluster. What could not be found out is left empty.
type ClusterNode struct {
	Name    string `json:"name"`
	Zone    string `json:"zone,omitempty"`
	Kernel  string `json:"kernel,omitempty"`
	Arch    string `json:"arch,omitempty"`
	OS      string `json:"os,omitempty"`
	Kubelet string `json:"kubelet,omitempty"`
	// Runtime is what runs the containers: "containerd://1.7.2".
	Runtime string     `json:"runtime,omitempty"`
	CPU     CPU        `json:"cpu,omitzero"`
	Memory  unit.Bytes `json:"memory,omitempty"`
	Virtual string     `json:"virtual,omitempty"` // as in Environment
	Clock   string     `json:"clock,omitempty"`   // as in Environment
}

// Words are what is known of the node, in one line, less its name.
func (n ClusterNode) Words() string {
	var parts []string
	add := func(given bool, format string, values ...any) {
		if given {
			parts = append(parts, fmt.Sprintf(format, values...))
		}
	}
	add(n.Kernel != "", "Linux %s", strings.TrimPrefix(n.Kernel, "Linux "))
	add(n.Arch != "", "%s", n.Arch)
	add(n.OS != "", "%s", n.OS)
	add(n.CPU.Count > 0, "%d × %s", n.CPU.Count, n.CPU.Model)
	add(n.Memory > 0, "%v", n.Memory)
	add(n.Virtual != "", "virtual machine (%s)", n.Virtual)
	add(n.Kubelet != "", "kubelet %s", n.Kubelet)
	add(n.Runtime != "", "%s", n.Runtime)
	add(n.Zone != "", "zone %s", n.Zone)
	return strings.Join(parts, ", ")
}

// Words name the cluster, and what it is.
func (c Cluster) Words() string {
	if c.Version == "" {
		return c.Name
	}
	return c.Name + ", Kubernetes " + c.Version
}
