package supervisor

import (
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"netdelta/extras/cluster/node"
	"netdelta/internal/gather"
	"netdelta/internal/suggest"
)

// CNI is how pods are attached and reach each other.
type CNI string

// The CNIs.
const (
	Bridge        CNI = "bridge"          // a bridge in each node, and routes between them
	FlannelVXLAN  CNI = "flannel-vxlan"   // flannel, encapsulating
	FlannelHostGW CNI = "flannel-host-gw" // flannel, with routes
	CalicoVXLAN   CNI = "calico-vxlan"    // Calico, encapsulating
	CalicoRoutes  CNI = "calico-routes"   // Calico, encapsulating between subnets only: here never
	CalicoBGP     CNI = "calico-bgp"      // Calico, with routes that nodes tell each other by BGP
	CiliumVXLAN   CNI = "cilium-vxlan"    // Cilium, encapsulating
	CiliumNative  CNI = "cilium-native"   // Cilium, with routes
	CiliumEBPF    CNI = "cilium-ebpf"     // Cilium, with routes and in place of kube-proxy
)

// Product is a CNI's own software, with agents, management of addresses and policy engine. Pods that were made under one do not live on
// under another.
type Product string

// The products. The CNIs bridge and flannel leave policies and kube-proxy to others.
const (
	NoProduct Product = ""
	Calico    Product = "calico"
	Cilium    Product = "cilium"
)

// Product is the product that a CNI is a mode of.
func (c CNI) Product() Product {
	for _, p := range []Product{Calico, Cilium} {
		if strings.HasPrefix(string(c), string(p)+"-") {
			return p
		}
	}
	return NoProduct
}

// Proxy is how kube-proxy leads services to pods.
type Proxy string

// The modes of kube-proxy.
const (
	IPTables Proxy = "iptables"
	NFTables Proxy = "nftables"
	NoProxy  Proxy = "none" // the CNI does it
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
			"cni", "how pods reach each other", "CNI", []string{
				string(Bridge), string(FlannelVXLAN), string(FlannelHostGW), string(CalicoVXLAN), string(CalicoRoutes), string(CalicoBGP),
				string(CiliumVXLAN), string(CiliumNative), string(CiliumEBPF),
			},
			func(c *Config) *string { return (*string)(&c.CNI) },
		},
		{
			"proxy", "how services reach pods", "mode of kube-proxy", []string{string(IPTables), string(NFTables), string(NoProxy)},
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
	if c.Proxy == "" {
		c.Proxy = c.CNI.proxy()
	}
	for _, one := range choices() {
		if value := one.of(&c); *value == "" {
			*value = one.values[0]
		}
	}
	return c
}

// with is what a cluster becomes by a change. The error says why it can't.
func (c Config) with(to Config) (Config, error) {
	if to.CNI != "" && to.CNI.Product() != c.CNI.Product() {
		return c, fmt.Errorf("unsupported: from %s to %s while the cluster is up: pods of one do not live on under the other; "+
			"use 'make cluster-down' and 'make cluster-up CNI=%s'", c.CNI, to.CNI, to.CNI)
	}
	if to.CNI != "" && to.CNI != c.CNI && (to.CNI == CalicoBGP || c.CNI == CalicoBGP) {
		return c, fmt.Errorf("unsupported: from %s to %s while the cluster is up: they tell nodes of routes by different programs; "+
			"use 'make cluster-down' and 'make cluster-up CNI=%s'", c.CNI, to.CNI, to.CNI)
	}
	if to.Proxy == "" && to.CNI != "" && to.CNI.proxy() != c.CNI.proxy() {
		to.Proxy = to.CNI.proxy()
	}
	for _, one := range choices() {
		if value := *one.of(&to); value != "" {
			*one.of(&c) = value
		}
	}
	return c, c.check()
}

// check refuses what no cluster can be. Nothing may be left open.
func (c Config) check() error {
	if c.Workers < 1 || c.Workers > MostWorkers {
		return fmt.Errorf("%d workers: a cluster has from 1 to %d next to the control plane", c.Workers, MostWorkers)
	}
	product := c.CNI.Product()
	switch {
	case c.IPv6 && c.CNI != Bridge:
		return fmt.Errorf("unsupported: %s with IPv6: it is set up for IPv4 only; leave IPv6 out, or use %s", c.CNI, Bridge)
	case (c.Proxy == NoProxy) != (c.CNI.proxy() == NoProxy):
		return fmt.Errorf("unsupported: %s with kube-proxy %s: services are led to pods by kube-proxy or by %s; leave the proxy out", c.CNI, c.Proxy, CiliumEBPF)
	case product != NoProduct && c.Policy != NoPolicy:
		return fmt.Errorf("unsupported: %s with %s: %s enforces policies itself; leave the policy engine out", c.CNI, c.Policy, product)
	case product != NoProduct && c.Multus == MultusOn:
		return fmt.Errorf("unsupported: %s with Multus: here it stands before %s and flannel only", c.CNI, Bridge)
	}
	return nil
}

// proxy is the mode of kube-proxy that a CNI has unless another is asked for.
func (c CNI) proxy() Proxy {
	if c == CiliumEBPF {
		return NoProxy
	}
	return IPTables
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

const (
	// productFolder is where nodes see the programs of the CNI's product.
	productFolder = "/opt/netdelta/cni"
	// agentUser is the user by which agents of CNIs are known to the API server.
	agentUser = "cni"
)

// plugins are the names of a product's own plugins.
func (p Product) plugins() []string {
	switch p {
	case Calico:
		return []string{"calico", "calico-ipam"}
	case Cilium:
		return []string{"cilium-cni"}
	}
	return nil
}

// startAgents starts the programs of a CNI on a node.
func (s *supervisor) startAgents(c CNI, m *member) error {
	for _, a := range s.programs(c, m).Agents {
		if err := m.node.StartService(a); err != nil {
			return err
		}
	}
	return nil
}

// endAgents ends those that run. They are killed, as when their node loses its power: what they left, they take up.
func (s *supervisor) endAgents(c CNI, m *member) error {
	names := gather.Each(s.programs(c, m).Agents, func(a node.Service) string { return a.Name })
	return m.node.EndServices(names...)
}

// equip adds to a node what the cluster's product needs there.
func (s *supervisor) equip(m *member, spec *node.Spec) error {
	product := s.config.CNI.Product()
	if product == NoProduct {
		return nil
	}
	spec.Binds = append(spec.Binds, node.Bind{From: s.product, To: productFolder, ReadOnly: true})
	for _, name := range product.plugins() {
		// Calico's plugins are one program, which looks at its name.
		program := name
		if product == Calico {
			program = "calico"
		}
		spec.Links[filepath.Join(cniPlugins, name)] = filepath.Join(productFolder, program)
	}
	if product != Cilium {
		return nil
	}
	compiler, err := clang()
	if err != nil {
		return err
	}
	spec.Links[ciliumTools+"/clang"] = compiler
	// What Cilium attaches to control groups is attached to the node's own, and never to the machine's, which a new mount would show.
	group, err := unifiedGroup(s.folder.Mark(), m.name)
	if err != nil {
		return err
	}
	spec.Binds = append(spec.Binds, node.Bind{From: group, To: ciliumGroups})
	return nil
}

// clang is the compiler of eBPF programs on this machine.
func clang() (string, error) {
	for _, name := range []string{"clang", "clang-14"} {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	return "", errors.New("find clang, by which Cilium compiles for its devices: it is missing; 'make setup' installs it")
}
