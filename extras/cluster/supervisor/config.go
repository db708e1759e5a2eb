package supervisor

import (
	"flag"
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

// Multus says whether pods can have networks in addition to the cluster's own.
type Multus string

// Multus is there, or not.
const (
	MultusOn  Multus = "on"
	MultusOff Multus = "off"
)

const (
	// MostWorkers is the highest number of nodes next to the control plane's.
	MostWorkers    = 9
	defaultWorkers = 2
)

// Config is what a cluster shall be. In a change, "" leaves what there is.
type Config struct {
	CNI     CNI
	Proxy   Proxy
	Policy  Policy
	Multus  Multus
	Workers int // from 1 to MostWorkers
	// IPv6 gives nodes, pods and services addresses of both families. It takes the CNI bridge.
	IPv6 bool
}

// choice is a part of a cluster that can be changed while it is up.
type choice struct {
	flag, usage string
	what        string   // in errors
	values      []string // the first is the default
	of          func(*Config) *string
}

func choices() []choice {
	return []choice{
		{
			"cni", "how pods reach each other", "CNI", []string{string(Bridge), string(FlannelVXLAN), string(FlannelHostGW)},
			func(c *Config) *string { return (*string)(&c.CNI) },
		},
		{
			"proxy", "how services reach pods", "mode of kube-proxy", []string{string(IPTables), string(NFTables)},
			func(c *Config) *string { return (*string)(&c.Proxy) },
		},
		{
			"multus", "secondary networks of pods", "state of Multus", []string{string(MultusOff), string(MultusOn)},
			func(c *Config) *string { return (*string)(&c.Multus) },
		},
		{
			"policy", "what enforces NetworkPolicy objects", "policy engine", []string{string(NoPolicy), string(KubeNetworkPolicies)},
			func(c *Config) *string { return (*string)(&c.Policy) },
		},
	}
}

// Flags adds the flags of a cluster to a set. They are read into the Config; Known checks them.
func Flags(set *flag.FlagSet) *Config {
	c := &Config{}
	for _, one := range choices() {
		set.StringVar(one.of(c), one.flag, "", one.usage+": "+strings.Join(one.values, ", "))
	}
	set.IntVar(&c.Workers, "workers", 0, "nodes next to the control plane's")
	set.BoolVar(&c.IPv6, "ipv6", false, "addresses of both families (with the CNI bridge)")
	return c
}

// Known refuses values that there are not.
func (c Config) Known() error {
	for _, one := range choices() {
		value := *one.of(&c)
		if value == "" || slices.Contains(one.values, value) {
			continue
		}
		hint := "it is one of " + strings.Join(one.values, ", ")
		if near, ok := suggest.Nearest(value, one.values); ok {
			hint = fmt.Sprintf("did you mean %s? %s", near, hint)
		}
		return fmt.Errorf("unknown %s %q: %s", one.what, value, hint)
	}
	return nil
}

// complete fills in what is left open.
func (c Config) complete() Config {
	for _, one := range choices() {
		if value := one.of(&c); *value == "" {
			*value = one.values[0]
		}
	}
	return c
}

// check refuses what no cluster can be.
func (c Config) check() error {
	if c.Workers < 1 || c.Workers > MostWorkers {
		return fmt.Errorf("%d workers: a cluster has from 1 to %d next to the control plane", c.Workers, MostWorkers)
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
	backend, _ := strings.CutPrefix(string(c), "flannel-")
	if c == Bridge {
		return ""
	}
	return backend
}

// both are values for IPv4 and IPv6, separated by a comma, or that for IPv4 alone.
func (c Config) both(four, six string) string {
	if c.IPv6 {
		return four + "," + six
	}
	return four
}
