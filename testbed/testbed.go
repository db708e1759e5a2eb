// Package testbed defines what an experiment runs on: nodes with pods, joined by a network. A Spec is pure data; a Provider
// opens it as a live Testbed, whose Close is idempotent and leaves nothing behind.
package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"

	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
)

// Spec describes a testbed: nodes, the links between them, and the network that joins its pods. It is pure data.
type Spec struct {
	Nodes       int // number of nodes, at least 1
	PodsPerNode int // pods on each node, at least 1
	// Family is the IP version of all addresses, of pods and underlay alike; "" is IPv4.
	Family result.Family
	Link   Link
	// Network is the name of the network that joins the pods at first.
	Network string
	// PodsOutlive asks for pods that keep their namespace, address and processes while Swap replaces the network.
	PodsOutlive bool
	// Conditions are what the network is built under, and stay the same when it is swapped.
	Conditions result.Conditions
	// Segment numbers testbeds that share the link between their nodes; 0 has its link to itself (network.Layout).
	Segment uint8
	// Target is the host of an external endpoint: all pods are its clients, and the first pod is on the endpoint's own node. "" is
	// none. It needs Capabilities.Targets.
	Target string
	// Volume is storage of the user's own that each pod has. It takes Capabilities.Stored.
	Volume Volume
	// Expect is how packets between nodes must be seen, where the study says so; "" expects what the network's name says.
	Expect Encapsulation
	// ExpectMTU is the MTU that the cluster is to have at a level of the study, of its links or its pods; 0 expects none.
	ExpectMTU unit.Bytes
	// Via is the card by which packets must leave each node of a cluster; "" is the card of the route to the other node.
	Via string
	// Peers are the pods that serve as one: the first of each node but the first one.
	Peers Peers
}

// Peers are pods with daemons that serve as one. A testbed on this machine needs to know nothing of them.
type Peers struct {
	// Count is how many there are, 0 for none.
	Count int
	// Clients is how many pods have clients, 0 for one: the first pod, and the first pod of each node after the peers' nodes.
	Clients int
	// Memory is what the daemons of one of them keep in memory at most.
	Memory unit.Bytes
	// Ports are the ports at which clients reach the daemons, in addition to a pod's own ports; unused elements are zero.
	Ports [4]uint16
}

// Nodes is how many nodes it takes: one for each of the peers and each of the clients. It is 0 without peers.
func (p Peers) Nodes() int {
	if p.Count == 0 {
		return 0
	}
	return p.Count + max(p.Clients, 1)
}

// Link describes each link between a node and the underlay switch.
type Link struct {
	MTU unit.Bytes
	// Rate limits each direction of each link; zero is unlimited.
	Rate unit.BitsPerSecond
}

// Testbed is live: it holds namespaces, links and processes until Close.
type Testbed interface {
	Spec() Spec
	Pods() []Pod
	// Endpoint is the address at which the pod from reaches the given port of the pod to, in this network.
	Endpoint(from, to Pod, port uint16) netip.AddrPort
	// Links lists the devices of all nodes and pods as built.
	Links(ctx context.Context) ([]result.Link, error)
	// Sysctls are the kernel settings that matter, as found inside a node.
	Sysctls(ctx context.Context) (map[string]string, error)
	// Swap replaces the network under the running pods. It needs Spec.PodsOutlive.
	Swap(ctx context.Context, network string) error
	// Instruments are the same for as long as the testbed is open.
	Instruments() Instruments
	// Close ends every process that was started in the testbed and removes it. It is idempotent.
	Close() error
}

// Pod is an endpoint of a testbed.
type Pod interface {
	Name() string
	Node() string
	Address() netip.Addr
	// Ports is the range of ports that servers in this pod listen on.
	Ports() (first, last uint16)
	// Start runs a command inside the pod. It is killed when the testbed closes.
	Start(ctx context.Context, cmd Command) (Process, error)
}

// Command is a program to run inside a pod.
type Command struct {
	Path string   // absolute
	Args []string // without the program's name
	Env  []string // KEY=value; nil takes an almost empty environment
	// CPUs pins the process; nil leaves it as it is.
	CPUs []int
}

// Process is a program that runs inside a pod. Write goes to its standard input, Read comes from its standard output.
type Process interface {
	io.ReadWriteCloser // Close closes standard input, waits for a grace period, then kills
	PID() int
	// Wait returns when the process has ended, with the end of its standard error in the error when it failed.
	Wait() error
	Kill() error
	// Stderr is the last part (at most 8 KiB) of what the process wrote to standard error.
	Stderr() string
	// FailureReason says why the process was lost with its pod, or with the way to it: "its pod was evicted: ...". It is "" while
	// nothing is known to have happened.
	FailureReason() string
}

// ErrUnsupported is what every *UnsupportedError matches with errors.Is.
var ErrUnsupported = errors.New("unsupported")

// UnsupportedError says that this kernel or machine lacks what a part of netdelta needs. The rest goes on without it.
type UnsupportedError struct {
	Feature string // what was asked for: "network ipvlan-l2"
	Need    string // what is missing: "ipvlan links (CONFIG_IPVLAN)"
	Fix     string // what to do here: "load it with modprobe ipvlan"; "" where nothing is known to help
	InGuest bool   // a guest has what is missing
}

// Error implements error.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s is unsupported: needs %s; %s", e.Feature, e.Need, e.Remedy())
}

// GuestFix is what to do about what a guest has and this machine lacks.
const GuestFix = "run it with --testbed vm"

// Remedy is what to do, here or in a guest.
func (e *UnsupportedError) Remedy() string {
	switch {
	case !e.InGuest:
		return e.Fix
	case e.Fix == "":
		return GuestFix
	}
	return e.Fix + ", or " + GuestFix
}

// Is makes errors.Is(err, ErrUnsupported) true.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// BrokenError says that what joins pods does not carry what a workload sends, so that nothing can be measured over it until it is repaired.
type BrokenError struct {
	Says    string // what is wrong, between which nodes: "packets above 1450 bytes vanish from w1 to w2"
	Network string // over which it was tried
	Tried   string // what came of it, "" where Says tells
	Fix     string // what to do
}

// Error implements error.
func (e *BrokenError) Error() string {
	text := e.Says + ", over network " + e.Network
	if e.Tried != "" {
		text += " (" + e.Tried + ")"
	}
	return text + "; " + e.Fix
}

// Vanishing says that packets above a size get lost on a way (" from a to b", or ""), though the MTU at its beginning lets larger ones go. Both are
// in bytes.
func Vanishing(largest, mtu int, way string) string {
	return fmt.Sprintf("packets above %d bytes vanish%s, though the MTU there is %d", largest, way, mtu)
}

// Volume is storage that is made for a testbed and removed with it. The zero value is none.
type Volume struct {
	// Class is the kind of storage, as its owner calls it: the name of a StorageClass.
	Class string
	// Size is what can be written at least.
	Size unit.Bytes
	// Clients is how many pods have one each, on a node each; 0 is one.
	Clients int
}

// VolumeFolder is where pods have their volume.
const VolumeFolder = "/var/netdelta/volume"

// Settings returns the names of kernel settings that change what is measured, except the settings that a network needs itself. The
// record of a testbed holds their values in each kernel that has them.
func Settings() []string {
	return []string{
		"net.core.busy_poll", "net.core.busy_read", "net.core.default_qdisc", "net.core.dev_weight", "net.core.netdev_budget",
		"net.core.netdev_budget_usecs", "net.core.netdev_max_backlog", "net.core.rmem_default", "net.core.rmem_max",
		"net.core.wmem_default", "net.core.wmem_max", "net.core.gro_normal_batch", "net.core.rps_sock_flow_entries",
		"net.ipv4.ip_forward", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_allowed_congestion_control",
		"net.ipv4.tcp_autocorking", "net.ipv4.tcp_available_congestion_control", "net.ipv4.tcp_congestion_control",
		"net.ipv4.tcp_ecn", "net.ipv4.tcp_fastopen", "net.ipv4.tcp_limit_output_bytes", "net.ipv4.tcp_mem",
		"net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_notsent_lowat", "net.ipv4.tcp_rmem", "net.ipv4.tcp_sack",
		"net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_timestamps", "net.ipv4.tcp_tso_win_divisor",
		"net.ipv4.tcp_window_scaling", "net.ipv4.tcp_wmem", "net.ipv4.udp_mem", "net.ipv4.udp_rmem_min", "net.ipv4.udp_wmem_min",
	}
}

// BridgeNetfilter says whether bridges of the calling thread's network namespace hand packets of a version of IP to its firewall. Without
// br_netfilter no bridge does.
func BridgeNetfilter(f result.Family) result.Switch {
	if now, err := os.ReadFile(SettingPath(network.BridgeNetfilterSetting(f))); err == nil && strings.TrimSpace(string(now)) == "1" {
		return result.On
	}
	return result.Off
}

// SettingPath is the file of a kernel setting. In a name with slashes dots are part of a device's name.
func SettingPath(name string) string {
	if !strings.Contains(name, "/") {
		name = strings.ReplaceAll(name, ".", "/")
	}
	return "/proc/sys/" + name
}

// ReadSettings reads settings in the calling thread's network namespace. Those that this kernel does not have are left out; the error is
// about those that can't be read, and the others are there all the same.
func ReadSettings(names []string) (values map[string]string, err error) {
	values = map[string]string{}
	for _, name := range names {
		text, failed := os.ReadFile(SettingPath(name))
		switch {
		case failed == nil:
			values[name] = strings.Join(strings.Fields(string(text)), " ")
		case !errors.Is(failed, fs.ErrNotExist):
			err = errors.Join(err, fmt.Errorf("read %s: %w", name, failed))
		}
	}
	return values, err
}

// PermissionError says that this user may not do what a part of netdelta needs. errors.Is(err, fs.ErrPermission) is true.
type PermissionError struct {
	Doing string // "make network namespaces"
	Need  string // "the capability CAP_SYS_ADMIN"
	Fix   string // "run it as root"
	Err   error  // what the kernel said
}

// Error implements error.
func (e *PermissionError) Error() string {
	return fmt.Sprintf("%s: %v: needs %s; %s", e.Doing, e.Err, e.Need, e.Fix)
}

// Unwrap gives the kernel's error.
func (e *PermissionError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, fs.ErrPermission) true.
func (e *PermissionError) Is(target error) bool { return target == fs.ErrPermission }

// Topology is what the testbed's networks are planned over.
func (s Spec) Topology() (network.Topology, error) {
	return network.NewTopology(network.Layout{
		Nodes: s.Nodes, PodsPerNode: s.PodsPerNode, Family: s.Family, MTU: s.Link.MTU, Rate: s.Link.Rate,
		PodsOutlive: s.PodsOutlive, Conditions: s.Conditions, Segment: s.Segment,
	})
}

// Planned is the part of a testbed that follows from its topology and the plan of its present network. It is safe for concurrent use.
type Planned struct {
	Topology network.Topology
	pods     []Pod
	present  atomic.Pointer[present]
}

type present struct {
	spec Spec
	plan network.Plan
}

// NewPlanned is a testbed without a network yet. The function start carries out the pods' Start, by their numbers.
func NewPlanned(spec Spec, t network.Topology, start func(ctx context.Context, pod int, cmd Command) (Process, error)) *Planned {
	p := &Planned{Topology: t}
	spec.Link.MTU = t.MTU
	p.present.Store(&present{spec: spec})
	for j := range t.Pods {
		p.pods = append(p.pods, &plannedPod{bed: p, index: j, start: start})
	}
	return p
}

// Present says that the testbed has a network from now on.
func (p *Planned) Present(plan network.Plan) {
	spec := p.Spec()
	spec.Network = plan.Network
	p.present.Store(&present{spec, plan})
}

// Spec implements Testbed. Its network is the present one.
func (p *Planned) Spec() Spec { return p.present.Load().spec }

// Plan implements Observer.
func (p *Planned) Plan() network.Plan { return p.present.Load().plan }

// Pods implements Testbed.
func (p *Planned) Pods() []Pod { return append([]Pod(nil), p.pods...) }

// Numbers are the numbers of two pods; ok says that both are of this testbed.
func (p *Planned) Numbers(from, to Pod) (a, b int, ok bool) {
	first, ok1 := from.(*plannedPod)
	second, ok2 := to.(*plannedPod)
	if !ok1 || !ok2 || first.bed != p || second.bed != p {
		return 0, 0, false
	}
	return first.index, second.index, true
}

// Endpoint implements Testbed. For a pod of another testbed it is the zero address.
func (p *Planned) Endpoint(from, to Pod, port uint16) netip.AddrPort {
	a, b, ok := p.Numbers(from, to)
	if !ok {
		return netip.AddrPort{}
	}
	return p.Plan().Endpoint(a, b, port)
}

// Path implements Observer.
func (p *Planned) Path(from, to Pod, protocol network.Protocol) []network.Hop {
	a, b, ok := p.Numbers(from, to)
	if !ok {
		return nil
	}
	return p.Plan().Path(a, b, protocol)
}

// plannedPod is a pod of a planned testbed.
type plannedPod struct {
	bed   *Planned
	index int
	start func(ctx context.Context, pod int, cmd Command) (Process, error)
}

// Name implements Pod.
func (p *plannedPod) Name() string { return p.bed.Topology.Pods[p.index].Name }

// Node implements Pod.
func (p *plannedPod) Node() string {
	return p.bed.Topology.Nodes[p.bed.Topology.Pods[p.index].Node].Name
}

// Address implements Pod. Under host networking it is the node's.
func (p *plannedPod) Address() netip.Addr { return p.bed.Plan().Pods[p.index].Address }

// Ports implements Pod.
func (p *plannedPod) Ports() (first, last uint16) {
	own := p.bed.Topology.Pods[p.index]
	return own.FirstPort, own.LastPort
}

// Start implements Pod.
func (p *plannedPod) Start(ctx context.Context, cmd Command) (Process, error) {
	return p.start(ctx, p.index, cmd)
}
