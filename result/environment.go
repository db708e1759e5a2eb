package result

import (
	"fmt"
	"strings"
	"time"

	"netdelta/unit"
)

// Environment is what a reader needs in order to repeat a run or to tell two runs apart.
type Environment struct {
	Netdelta  string `json:"netdelta"` // version of this program
	GoVersion string `json:"go"`
	Kernel    string `json:"kernel"`
	Arch      string `json:"arch"`
	OS        string `json:"os"`
	Hostname  string `json:"hostname"`
	// Boot is what the kernel drew at its start: runs with the same one were made in one boot. It is "" where other machines were measured,
	// and in records made before it was kept.
	Boot   string     `json:"boot,omitempty"`
	CPU    CPU        `json:"cpu"`
	Memory unit.Bytes `json:"memory"`
	// Virtual is the hypervisor, "" on bare metal or where that can't be told.
	Virtual string `json:"virtual,omitempty"`
	// Clock is the kernel's clock source.
	Clock string `json:"clock"`
	// SoftirqTime says where the kernel books the time of soft interrupts: "threads" (to the thread that they interrupt, as
	// part of what that thread used), "apart" (to no thread) or "unknown".
	SoftirqTime string `json:"softirq_time,omitempty"`
	// Sysctls are the kernel settings that change what is measured, as found inside a node of the testbed.
	Sysctls map[string]string `json:"sysctls"`
	// Links are the testbed's links as built: name, kind, MTU, offloads.
	Links []Link `json:"links"`
	// Versions are the versions of tools that the run used.
	Versions map[string]string `json:"versions,omitempty"`
	// Measuring is the processor that the workload was pinned to, and Controlling are the processors that this program runs on.
	Measuring   []int `json:"measuring_cpus"`
	Controlling []int `json:"controlling_cpus"`
	// Findings are what the doctor found on the testbed that could be better.
	Findings []Finding `json:"findings,omitempty"`
	// Cluster is what the run was measured on in place of this machine; nil where it was this machine.
	Cluster *Cluster `json:"cluster,omitempty"`
	// Servers are the machines that were the nodes, in the nodes' order, where these were servers of the user's.
	Servers []Server `json:"servers,omitempty"`
	// Ways are how large packets can be between any two of them, over the cards of their nodes.
	Ways []Way `json:"ways,omitempty"`
}

// Way is how large packets can be between two servers, named as in Server.Name, as pings that must not be cut up found before the run.
type Way struct {
	Between string `json:"between"`
	And     string `json:"and"`
	// MTU is the size of the largest that arrived there and back, 0 where none did, and Device the MTU of the first device; both in bytes.
	MTU    int `json:"mtu"`
	Device int `json:"device,omitempty"`
	// Why it is not known; "" where it is.
	Why string `json:"why,omitempty"`
}

// Server is a machine that was a node.
type Server struct {
	Name    string `json:"name"` // as the user named it
	Kernel  string `json:"kernel"`
	Arch    string `json:"arch"`
	OS      string `json:"os"`
	Virtual string `json:"virtual,omitempty"`
	CPU     CPU    `json:"cpu"`
	// Mode is how its node was joined by its card, and Further are the cards that it had besides.
	Mode string `json:"mode"`
	ServerCard
	Further []ServerCard `json:"further,omitempty"`
	// InterruptCounts are the interrupts of the machine's network cards that each processor took while it was measured, by its number.
	InterruptCounts []uint64 `json:"interrupt_counts,omitempty"`
}

// ServerCard is a network card of a server.
type ServerCard struct {
	// Card is its name, MTU is in bytes, and Speed is in bit/s, 0 where it is not known.
	Card   string `json:"card"`
	Driver string `json:"driver,omitempty"`
	MTU    int    `json:"mtu"`
	Speed  int64  `json:"speed,omitempty"`
	// Queues is how many queues the card receives by, and Interrupts are the processors that its interrupts go to: "0,2-3".
	Queues     int    `json:"queues,omitempty"`
	Interrupts string `json:"interrupts,omitempty"`
	// Bond is how a card that is a bond shares what it sends among its links: "802.3ad, layer3+4".
	Bond string `json:"bond,omitempty"`
}

// Finding is something that the doctor found on the testbed, with the fix where it knows one.
type Finding struct {
	Topic string `json:"topic"`
	Says  string `json:"says"`
	Why   string `json:"why,omitempty"` // it matters
	Fix   string `json:"fix,omitempty"`
}

// TopicBroken is the topic of findings on a network that does not carry what workloads send: what to do about it comes before all else.
const TopicBroken = "broken network"

// Pins are the processors of a workload's ends, each numbered as its own machine numbers them.
type Pins struct {
	Client int `json:"client"`
	Server int `json:"server"`
}

// CPU is the machine's processor.
type CPU struct {
	Model       string `json:"model"`
	Count       int    `json:"count"`
	Governor    string `json:"governor,omitempty"`
	Mitigations string `json:"mitigations,omitempty"`
	// Idle is the deepest state in which a processor may wait, with the time that it takes to wake from it: "C6, 133 µs".
	Idle string `json:"idle,omitempty"`
	// NUMA is how many nodes of memory there are, 0 where that is not known.
	NUMA int `json:"numa,omitempty"`
	// Isolated are the processors that the scheduler gives to no program that does not ask for one: "2-3".
	Isolated string `json:"isolated,omitempty"`
}

// Link is a device of the testbed.
type Link struct {
	Network  string          `json:"network"`
	Where    string          `json:"where"` // node or pod
	Name     string          `json:"name"`
	Kind     string          `json:"kind"`
	MTU      int             `json:"mtu"`
	Offloads map[string]bool `json:"offloads,omitempty"`
	// Netfilter is whether a bridge of a node hands its packets to the firewall of IP; "" for other devices, and where it was not read.
	Netfilter Switch `json:"netfilter,omitempty"`
}

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

// LinkUse is how much of a bond's traffic one of its links carried in the bursts of a trial.
type LinkUse struct {
	// Device sent the bytes, one of several that belong to Bond: "node0/eth0p1" of "node0/eth0", and at the far ends of the same
	// links "switch/node0p1" of "switch/node0".
	Device string `json:"device"`
	Bond   string `json:"bond"`
	// Sent is in bytes, with all headers; Share is its part of what all links of the bond sent, from 0 to 1.
	Sent  int64   `json:"sent"`
	Share float64 `json:"share"`
	// Rate is what the link is limited to; zero is unlimited.
	Rate unit.BitsPerSecond `json:"rate,omitempty"`
}

// LinkShare is how much of a bond's traffic one of its links carried in a cell, over all builds.
type LinkShare struct {
	Cell    string `json:"cell"`
	Network string `json:"network"`
	Setting
	// Bond and Device are as in LinkUse.
	Bond   string `json:"bond"`
	Device string `json:"device"`
	// Share is the median over builds, from 0 to 1, ShareLow and ShareHigh the least and the most.
	Share     float64 `json:"share"`
	ShareLow  float64 `json:"share_low"`
	ShareHigh float64 `json:"share_high"`
	// Used is the part of the link's rate that was used, the median over builds; 0 where the link has no rate. A little more
	// than 1 is what the link took at once when a burst began.
	Used float64 `json:"used,omitempty"`
	// Builds is how many the figures rest on.
	Builds int `json:"builds"`
}

// Reconfigured is why a burst is left out that was measured with another configuration than its network's.
const Reconfigured = "configuration changed"

// ClientsMissing is why a burst of a fleet is left out that too few of its clients took part in.
const ClientsMissing = "clients missing"

// ConfigChange is something that changed in the configuration of a testbed while a trial was measured.
type ConfigChange struct {
	// Device is what it belongs to: "pod0/eth0", or "node0" for the namespace as a whole.
	Device string `json:"device"`
	// Setting names it: "tx-tcp-segmentation", "mtu", "qdisc root", "firewall", "route default", "net.ipv4.tcp_sack".
	Setting string `json:"setting"`
	Was     string `json:"was"`
	Is      string `json:"is"`
	// At is when the kernel told of it; zero where it was only found in the end.
	At time.Time `json:"at,omitzero"`
	// After is the last round that was over before, Before the first that was not; -1 is none, or not known.
	After  int `json:"after_round"`
	Before int `json:"before_round"`
}
