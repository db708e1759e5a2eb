package network

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"unicode"

	"netdelta/result"
	"netdelta/unit"
)

// CNIPrefix begins the name of a network whose pods are attached by CNI plugins; the path of their list follows it:
// "cni:docs/cni/bridge.conflist".
const CNIPrefix = "cni:"

// ReadCNI reads the network of a name that begins with CNIPrefix. What is wrong with its list is a *ListError.
func ReadCNI(name string) (Network, error) {
	file := strings.TrimPrefix(name, CNIPrefix)
	bad := strings.ContainsFunc(file, func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune("\"'`<>,", r) })
	if file == "" || bad {
		return Network{}, &ListError{File: fmt.Sprintf("%q", file), Problem: "is no file's name that a report could show", Fix: "write cni:PATH, of printable characters without quotes, commas and angle brackets"}
	}
	text, err := result.ReadFile(file, unit.MiB)
	if err != nil {
		return Network{}, &ListError{File: file, Problem: fmt.Sprintf("the list of CNI plugins can't be read: %v", err), Fix: "name a file whose path is right from the current folder"}
	}
	return CNI(file, text)
}

// FromAnywhere is the name of a network for programs that run in another folder: the path of a list of CNI plugins becomes absolute.
func FromAnywhere(name string) (string, error) {
	file, found := strings.CutPrefix(name, CNIPrefix)
	if !found {
		return name, nil
	}
	whole, err := filepath.Abs(file)
	if err != nil {
		return "", fmt.Errorf("find the folder of %s: %w", file, err)
	}
	return CNIPrefix + whole, nil
}

// CNI is a network whose pods are attached by the plugins of a list (a .conflist file), which was read from file. In the list
// stand placeholders for what differs from node to node. Between nodes, packets are routed: each node has routes to the pods
// of all others, as Flannel's host-gw makes them, unless the plugins take them another way.
func CNI(file string, text []byte) (Network, error) {
	list, err := parseList(file, text)
	if err != nil {
		return Network{}, err
	}
	return Network{
		Name:    CNIPrefix + file,
		Summary: fmt.Sprintf("pods attached by the CNI plugins %s; nodes route to each other's pods", strings.Join(list.plugins, ", ")),
		UsedBy:  []string{"whoever uses " + file},
		Build: drafted(nil, func(d *draft) Plan {
			d.plan.Observed = true
			for i, n := range d.t.Nodes {
				// The one for its link a device gives itself here.
				d.add(Address{Device: Device{InNode(i), n.Device}, Prefix: n.Address})
				d.forwarding(i)
				d.routesToOthers(i)
				d.speakIPv6(InNode(i))
				for _, j := range d.t.podsOf(i) {
					d.quiet(InPod(j))
					d.speakIPv6(InPod(j))
					d.attach(j, list)
				}
			}
			return d.finish(d.device, d.port)
		}),
	}, nil
}

// speakIPv6 lets devices that plugins make speak IPv6 by themselves, with an address on their link, as on any machine.
func (d *draft) speakIPv6(in Space) {
	if d.t.Family != result.IPv6 {
		return
	}
	for _, s := range []struct{ name, value string }{{"disable_ipv6", "0"}, {"addr_gen_mode", "0"}} {
		d.plan.Settings = append(d.plan.Settings, Sysctl{In: in, Name: "net.ipv6.conf.default." + s.name, Value: s.value})
	}
}

// attach has a pod attached.
func (d *draft) attach(pod int, list pluginList) {
	p := d.t.Pods[pod]
	n := d.t.Nodes[p.Node]
	d.add(Attach{
		Device: d.podDevice(pod), Role: RolePod, Node: InNode(p.Node), File: list.file, List: list.fill(placeholders(d.t, p.Node)), Sum: list.sum,
		Plugins: list.plugins, Address: netip.PrefixFrom(p.Address, n.PodPrefix.Bits()), MAC: mac(macPod, pod),
		FirstPort: p.FirstPort, LastPort: p.LastPort,
	})
}

// placeholder is something that a list may name and that is another on each node.
type placeholder struct{ name, value string }

// placeholders are what a list may name, with their values on a node.
func placeholders(t Topology, node int) []placeholder {
	n := t.Nodes[node]
	pods := n.PodPrefix.Masked()
	all, _ := n.PodPrefix.Addr().Prefix(podBits(t.Family)) // never longer than an address
	return []placeholder{
		{"PodCIDR", pods.String()},                      // the addresses of the node's pods
		{"ClusterCIDR", all.String()},                   // the addresses of the pods of all nodes
		{"Gateway", n.Gateway().String()},               // the first of the node's, for the node itself
		{"RangeStart", n.Gateway().Next().String()},     // the first that a pod can have
		{"RangeEnd", lastOf(pods).String()},             // the last that a pod can have
		{"DefaultRoute", everywhere(t.Family).String()}, // the destination of the default route
		{"MTU", fmt.Sprint(int64(t.MTU))},               // of the underlay, in bytes
		{"NodeDevice", n.Device},                        // the node's underlay port
		{"NodeAddress", n.Address.Addr().String()},      // the node's address there
		{"NodeNumber", fmt.Sprint(node)},                // from 0
		{"Interface", podDevice},                        // the pod's device
	}
}

// lastOf is the address before the last of a range, which under IPv4 is the broadcast address. Of a large range only the first
// 254 addresses are meant for pods.
func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	bytes[len(bytes)-1] = 254
	last, _ := netip.AddrFromSlice(bytes) // of as many bytes as it came from
	return last
}
