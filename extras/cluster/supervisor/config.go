package supervisor

import (
	"fmt"
	"slices"
	"strings"

	"netdelta/internal/suggest"
)

// CNI is how pods are attached and reach each other.
type CNI string

// The CNIs.
const (
	Bridge        CNI = "bridge"          // a bridge in each node, and routes between them
	FlannelVXLAN  CNI = "flannel-vxlan"   // flannel, encapsulating
	FlannelHostGW CNI = "flannel-host-gw" // flannel, with routes
)

// Proxy is how kube-proxy leads services to pods.
type Proxy string

// The modes of kube-proxy.
const (
	IPTables Proxy = "iptables"
	NFTables Proxy = "nftables"
)

// Policy is what enforces NetworkPolicy objects.
type Policy string

// What enforces them.
const (
	NoPolicy            Policy = "none"                  // nothing: they are objects without effect
	KubeNetworkPolicies Policy = "kube-network-policies" // that engine, in each node
)

// MostWorkers is the highest number of nodes beside the control plane's.
const MostWorkers = 9

// Config is what a cluster shall be.
type Config struct {
	CNI     CNI
	Proxy   Proxy
	Policy  Policy
	Multus  Multus
	Workers int // from 1 to MostWorkers
	// IPv6 gives nodes, pods and services addresses of both families. It takes the CNI bridge.
	IPv6 bool
}

// ParseCNI reads the name of a CNI.
func ParseCNI(name string) (CNI, error) {
	return oneOf("CNI", name, Bridge, FlannelVXLAN, FlannelHostGW)
}

// ParseProxy reads the name of a mode of kube-proxy.
func ParseProxy(name string) (Proxy, error) {
	return oneOf("mode of kube-proxy", name, IPTables, NFTables)
}

// ParsePolicy reads the name of what enforces NetworkPolicy objects.
func ParsePolicy(name string) (Policy, error) {
	return oneOf("policy engine", name, NoPolicy, KubeNetworkPolicies)
}

func oneOf[T ~string](what, name string, known ...T) (T, error) {
	if slices.Contains(known, T(name)) {
		return T(name), nil
	}
	var names []string
	for _, k := range known {
		names = append(names, string(k))
	}
	hint := "it is one of " + strings.Join(names, ", ")
	if near, ok := suggest.Nearest(name, names); ok {
		hint = fmt.Sprintf("did you mean %s? %s", near, hint)
	}
	return "", fmt.Errorf("unknown %s %q: %s", what, name, hint)
}

// check refuses what no cluster can be.
func (c Config) check() error {
	if c.Workers < 1 || c.Workers > MostWorkers {
		return fmt.Errorf("%d workers: a cluster has from 1 to %d beside the control plane", c.Workers, MostWorkers)
	}
	return c.allows(c.CNI)
}

// allows refuses a CNI that can't be brought into effect.
func (c Config) allows(cni CNI) error {
	if c.IPv6 && cni != "" && cni != Bridge {
		return fmt.Errorf("unsupported: %s with IPv6: the plugin of flannel that this cluster has knows IPv4 only; leave IPv6 out, or use %s", cni, Bridge)
	}
	return nil
}

// backend is what flannel calls it; "" where flannel is not in use.
func (c CNI) backend() string {
	switch c {
	case FlannelVXLAN:
		return "vxlan"
	case FlannelHostGW:
		return "host-gw"
	case Bridge:
	}
	return ""
}
