package nsmonitor

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/testbed"
	"netdelta/unit"
)

// attempts is how often a list is read that the kernel changes meanwhile.
const attempts = 8

// List reads a list, and reads it again, a few times, where the kernel changed it meanwhile.
func List[T any](read func() ([]T, error)) (all []T, err error) {
	for range attempts {
		all, err = read()
		if !errors.Is(err, netlink.ErrDumpInterrupted) && !errors.Is(err, unix.EINTR) {
			return all, err
		}
	}
	return nil, err
}

// Interfaces describes the devices of the calling thread's namespace, by their numbers. It needs no rights.
func Interfaces() ([]testbed.Interface, error) {
	nl, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	defer nl.Close()
	links, err := List(nl.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list the devices: %w", err)
	}
	addresses, err := List(func() ([]netlink.Addr, error) { return nl.AddrList(nil, unix.AF_UNSPEC) })
	if err != nil {
		return nil, fmt.Errorf("list the addresses: %w", err)
	}
	names := map[int]string{}
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	all := make([]testbed.Interface, 0, len(links))
	for _, l := range links {
		i := describe(l, names)
		for _, a := range addresses {
			if p, ok := prefix(a.IPNet); ok && a.LinkIndex == i.Index {
				i.Addresses = append(i.Addresses, p)
			}
		}
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b testbed.Interface) int { return a.Index - b.Index })
	return all, nil
}

// podDevices are the devices that lead to pods: pairs whose other end is in another namespace, unless they have a subnet of their own, as a
// node's card has that is one; and the bridges between them.
func podDevices() (map[string]bool, error) {
	links, err := List(netlink.LinkList)
	if err != nil {
		return nil, err
	}
	addresses, err := List(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, unix.AF_INET) })
	if err != nil {
		return nil, err
	}
	pods := map[string]bool{}
	for _, l := range links {
		subnet := slices.ContainsFunc(addresses, func(a netlink.Addr) bool {
			ones, bits := a.Mask.Size()
			return a.LinkIndex == l.Attrs().Index && ones < bits
		})
		pair := l.Type() == "veth" || l.Type() == "netkit"
		pods[l.Attrs().Name] = l.Type() == "bridge" || pair && l.Attrs().NetNsID >= 0 && !subnet
	}
	return pods, nil
}

// describe takes over what matters of a link.
func describe(l netlink.Link, names map[int]string) testbed.Interface {
	a := l.Attrs()
	i := testbed.Interface{
		Index: a.Index, Name: a.Name, Kind: l.Type(), MTU: a.MTU, Up: a.Flags&net.FlagUp != 0, Master: names[a.MasterIndex],
	}
	// The number of the other end of a pair means nothing here where that is in another namespace.
	if a.NetNsID < 0 && i.Kind != "veth" {
		i.Lower = names[a.ParentIndex]
	}
	switch l := l.(type) {
	case *netlink.Bond:
		i.BondMode, i.HashPolicy = l.Mode.String(), l.XmitHashPolicy.String()
	case *netlink.Vxlan:
		i.Lower, i.Port, i.Network = names[l.VtepDevIndex], uint16(l.Port), uint32(l.VxlanId)
	case *netlink.Geneve:
		i.Port, i.Network = l.Dport, l.ID
	}
	i.Driver, i.Speed = Card(a.Name)
	return i
}

// prefix is an address with the length of its network.
func prefix(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	ip, ok := netip.AddrFromSlice(n.IP)
	ones, _ := n.Mask.Size()
	return netip.PrefixFrom(ip.Unmap(), ones), ok
}

// RouteTo asks how the calling thread's namespace reaches an address.
func RouteTo(to netip.Addr) (testbed.Route, error) {
	r := testbed.Route{To: to}
	nl, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return r, fmt.Errorf("open a netlink socket: %w", err)
	}
	defer nl.Close()
	found, err := nl.RouteGet(to.AsSlice())
	if err == nil && len(found) == 0 {
		err = errors.New("the kernel names none")
	}
	if err != nil {
		return r, fmt.Errorf("find the route to %s: %w", to, err)
	}
	l, err := nl.LinkByIndex(found[0].LinkIndex)
	if err != nil {
		return r, fmt.Errorf("find the device of the route to %s: %w", to, err)
	}
	r.Device, r.MTU = l.Attrs().Name, found[0].MTU
	if a, ok := netip.AddrFromSlice(found[0].Gw); ok {
		r.Gateway = a.Unmap()
	}
	if a, ok := netip.AddrFromSlice(found[0].Src); ok {
		r.Source = a.Unmap()
	}
	return r, nil
}

// megabit is the unit in which cards say their speed.
const megabit = 1_000_000

// unknownSpeed is SPEED_UNKNOWN of linux/ethtool.h.
const unknownSpeed = 1<<32 - 1

// speedOf is a card's speed in bits per second, of the two halves that it says.
func speedOf(low, high uint16) unit.BitsPerSecond {
	if s := uint32(high)<<16 | uint32(low); s != unknownSpeed && s != 1<<16-1 {
		return unit.BitsPerSecond(s) * megabit
	}
	return 0
}

// Peers lists the remote ends of the TCP connections to a port in the namespace of the calling thread. Where addresses are translated
// on the way, these are the translated ones. It needs no rights.
func Peers(port uint16) ([]netip.AddrPort, error) {
	var all []netip.AddrPort
	for _, path := range []string{"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"} {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, fmt.Errorf("read the connections: %w", err)
		}
		all = append(all, parsePeers(text, port)...)
	}
	return all, nil
}

// parsePeers reads /proc/net/tcp: socket numbers, local addresses, peer addresses and states.
func parsePeers(text []byte, port uint16) []netip.AddrPort {
	const local, remote, state, fields, established = 1, 2, 3, 4, "01"
	var all []netip.AddrPort
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) < fields || string(f[state]) != established {
			continue
		}
		here, ok1 := parseEnd(f[local])
		there, ok2 := parseEnd(f[remote])
		if ok1 && ok2 && here.Port() == port {
			all = append(all, there)
		}
	}
	return all
}

// parseEnd reads an address and a port: words of 32 bits in the machine's order, each in hexadecimal digits, a colon, and the
// port in hexadecimal digits.
func parseEnd(text []byte) (netip.AddrPort, bool) {
	digits, number, found := bytes.Cut(text, []byte(":"))
	port, err := strconv.ParseUint(string(number), 16, 16)
	raw := make([]byte, hex.DecodedLen(len(digits)))
	if _, bad := hex.Decode(raw, digits); !found || err != nil || bad != nil {
		return netip.AddrPort{}, false
	}
	const word = 4
	for i := 0; i+word <= len(raw); i += word {
		binary.BigEndian.PutUint32(raw[i:], binary.NativeEndian.Uint32(raw[i:]))
	}
	address, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(address.Unmap(), uint16(port)), ok
}

// Standing names what stands in the calling thread's namespace and belongs to no pod, sorted: devices with their MTU, queueing
// disciplines, filters and programs that are attached to them, routes, routing rules, chains of the firewall by the first words of their
// names, and these settings. Bridges, whose MTU follows from their pods', and what comes and goes with pods and services are not in it, so
// that two readings differ only where somebody has changed the machine's network.
func Standing(sysctls []string) ([]string, error) {
	config, err := ReadConfig(sysctls, nil)
	if err != nil {
		return nil, err
	}
	pods, err := podDevices()
	if err != nil {
		return nil, fmt.Errorf("tell the devices of pods: %w", err)
	}
	found := map[string]bool{}
	for s, value := range config {
		_, device, _ := strings.Cut(value, "dev ") // of a route
		device, _, _ = strings.Cut(device, " ")
		if pods[cmp.Or(s.Device, strings.TrimSuffix(device, ","))] {
			continue
		}
		found[standingName(config, s, value)] = true
	}
	if err := chains(func(name string) { found[name] = true }); err != nil {
		return nil, fmt.Errorf("read the chains of the firewall: %w", err)
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found)), nil
}

// standingName names a setting of a namespace, "" for what is not worth a name of its own. A program's number is another one each time
// that it is loaded.
func standingName(config Config, s Setting, value string) string {
	switch {
	case s == firewall():
		return ""
	case s.Device == "" && strings.HasPrefix(s.Name, "routing rule"):
		return s.Name
	case s.Device == "" && strings.HasPrefix(s.Name, "route"):
		return strings.TrimSpace(s.Name + " " + value)
	case s.Device == "":
		return s.Name + " = " + value
	case s.Name == linkState:
		return "device " + s.Device + " with MTU " + config[Setting{s.Device, "mtu"}]
	case strings.HasPrefix(s.Name, "qdisc"):
		if kind, _, _ := strings.Cut(value, " "); kind != "noqueue" {
			return "queueing discipline " + kind + " on " + s.Device
		}
	case strings.HasPrefix(s.Name, "filters"), strings.Contains(s.Name, "program"):
		return s.Name + " on " + s.Device
	}
	return ""
}

const getChains = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETCHAIN

// chains calls each with the names of the chains of nftables, which iptables' are, too, where it is nftables underneath.
func chains(each func(string)) error {
	err := withNetfilter(func(socket *netlinkSocket) error {
		_, err := List(func() ([]string, error) {
			return nil, socket.dump(getChains, make([]byte, sizeofNfgen), func(body []byte) { each(chainOf(body)) })
		})
		return err
	})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil // a kernel without nftables
	}
	return err
}

// chainOf names what the chain of a message is one of.
func chainOf(message []byte) string {
	table, name, hooked := "", "", false
	for kind, value := range attributes(message[min(sizeofNfgen, len(message)):]) {
		switch kind {
		case unix.NFTA_CHAIN_TABLE:
			table = strings.TrimRight(string(value), "\x00")
		case unix.NFTA_CHAIN_NAME:
			name = strings.TrimRight(string(value), "\x00")
		case unix.NFTA_CHAIN_HOOK:
			hooked = true
		}
	}
	return chainFamily(table, name, hooked)
}

// chainFamily names what a chain is one of: chains of all services, or of all pods, begin with the same words. In tables that are not
// iptables' the table is named alone. Chains that iptables makes by itself have no name here.
func chainFamily(table, name string, hooked bool) string {
	switch {
	case !slices.Contains([]string{"filter", "nat", "mangle", "raw", "security"}, table):
		return "table " + table
	case hooked:
		return ""
	}
	words := strings.FieldsFunc(name, func(c rune) bool { return c == '-' || c == '_' })
	family := name
	if len(words) > 1 {
		family = words[0] + name[len(words[0]):len(words[0])+1] + words[1]
		if strings.ContainsAny(words[1], "0123456789") {
			family = words[0]
		}
	}
	return "chains " + family + " of table " + table
}
