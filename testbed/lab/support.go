// Package lab is the testbed on one Linux machine: nodes and pods are network namespaces, joined by veth pairs and a bridge
// in a namespace of its own. It carries a network's plan out through netlink, in process. The namespaces have no names and
// live only as long as this program and what it started: killed, it leaves nothing but processes, which Cleanup ends.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab/datapath"
	"netdelta/testbed/nsmonitor"
)

// errMissing is what try returns for something that the kernel does not have.
var errMissing = errors.New("the kernel does not have it")

// try finds out whether the kernel has what a need names, by using it in a namespace made for the purpose.
func try(need network.Need) error {
	s, err := newSpace("a trial", "", nil)
	if err != nil {
		return err
	}
	in := network.InNode(0)
	b := newBuilder(map[network.Space]*space{in: s})
	ops, known := trials(in)[need]
	if !known {
		return errors.Join(fmt.Errorf("nothing tries need %d", need), s.close())
	}
	for _, op := range ops {
		if err = b.step(context.Background(), op); err != nil {
			break
		}
	}
	if missing(err) {
		err = fmt.Errorf("%s: %w (%w)", need, errMissing, err)
	}
	return errors.Join(privilege(err), b.companions.close(), s.close())
}

// Has returns nil where the kernel has what a need names, an *testbed.UnsupportedError where it lacks it, and another error, a
// *testbed.PermissionError say, where that can't be found out.
func (d *Driver) Has(need network.Need) error {
	err := d.supportsNeed(need)
	if u := unsupported("the lab", need, err); u != nil {
		return u
	}
	return err
}

// unsupported says of a trial's error what the feature lacks: what the operation itself says of it, or what the need names. It
// is nil where nothing is lacking.
func unsupported(feature string, need network.Need, err error) error {
	var u *testbed.UnsupportedError
	switch {
	case errors.As(err, &u):
		return &testbed.UnsupportedError{Feature: feature, Need: u.Need, Fix: u.Fix, InGuest: u.InGuest}
	case errors.Is(err, errMissing):
		fix, inGuest := fix(need)
		return &testbed.UnsupportedError{Feature: feature, Need: need.String(), Fix: fix, InGuest: inGuest}
	}
	return nil
}

// TrySample finds out whether packets can be sampled, in a namespace made for the purpose. Its errors are as in Has.
func TrySample() error {
	s, err := newSpace("a trial", "", nil)
	if err != nil {
		return err
	}
	socket, err := s.tap(network.InNode(0))
	if err == nil {
		err = socket.Close()
	}
	return errors.Join(err, s.close())
}

// trials are, for each need, the least that uses what it names.
func trials(in network.Space) map[network.Need][]network.Op {
	const mtu = network.DefaultMTU
	a, b := network.Device{In: in, Name: "a"}, network.Device{In: in, Name: "b"}
	over := network.Device{In: in, Name: "over"}
	primary, peer := network.Device{In: in, Name: "primary"}, network.Device{In: in, Name: "peer"}
	pair := network.Veth{A: network.End{Device: a, MAC: network.MAC{2, 1}}, B: network.End{Device: b, MAC: network.MAC{2, 2}}, MTU: mtu}
	a4, b4 := netip.MustParseAddr("198.18.0.1"), netip.MustParseAddr("198.18.0.2")
	a6, b6 := netip.MustParseAddr("2001:2::1"), netip.MustParseAddr("2001:2::2")
	pod := netip.MustParseAddr("198.19.0.10")
	service4 := network.VirtualAddress{Virtual: netip.MustParseAddr("198.18.128.1"), Backend: pod}
	service6 := network.VirtualAddress{Virtual: netip.MustParseAddr("2001:2:0:8000::1"), Backend: netip.MustParseAddr("2001:2:0:100::10")}
	return map[network.Need][]network.Op{
		network.NeedVeth:            {pair},
		network.NeedBridge:          {network.Bridge{Device: a, MTU: mtu}},
		network.NeedMacvlan:         {pair, network.Macvlan{Device: over, Parent: a, MTU: mtu}},
		network.NeedIPVlan:          {pair, network.IPVlan{Device: over, Parent: a, Layer: 2, MTU: mtu}},
		network.NeedVxlan:           {pair, network.Vxlan{Device: over, Under: a, ID: 1, Port: 4789, Local: a4, MTU: mtu}},
		network.NeedExternalVxlan:   {pair, network.Vxlan{Device: over, Under: a, External: true, Port: 4789, Local: a4, MTU: mtu}},
		network.NeedIPIP:            {pair, network.Tunnel{Device: over, Kind: network.IPIP, Local: a4, Under: a, MTU: mtu}},
		network.NeedIPIP6:           {pair, network.Tunnel{Device: over, Kind: network.IPIP, Local: a6, Under: a, MTU: mtu}},
		network.NeedGRE:             {pair, network.Tunnel{Device: over, Kind: network.GRE, Local: a4, Remote: b4, Under: a, MTU: mtu}},
		network.NeedGRE6:            {pair, network.Tunnel{Device: over, Kind: network.GRE, Local: a6, Remote: b6, Under: a, MTU: mtu}},
		network.NeedGeneve:          {pair, network.Geneve{Device: over, ID: 1, Port: network.GenevePort, Remote: b4, MTU: mtu}},
		network.NeedNetkit:          {pair, network.Netkit{Primary: network.End{Device: primary}, Peer: network.End{Device: peer}, Layer: 3, MTU: mtu}},
		network.NeedDatapath:        {pair, network.Datapath{Device: over, Ports: []string{a.Name}}},
		network.NeedTUN:             {network.UDPTunnel{Device: over, MTU: mtu}},
		network.NeedWireGuard:       {pair, network.WireGuard{Device: over, Private: [32]byte{1}, Port: network.WireGuardPort, MTU: mtu}},
		network.NeedESP:             {pair, protection(in, a4, b4)},
		network.NeedESP6:            {pair, protection(in, a6, b6)},
		network.NeedIPv6:            {pair, network.Address{Device: a, Prefix: netip.PrefixFrom(a6, 64)}},
		network.NeedShaping:         {pair, network.Shape{Device: a, Rate: 1e9}},
		network.NeedImpairing:       {pair, network.Impair{Device: a, Delay: time.Millisecond}},
		network.NeedBonding:         {pair, network.Bond{Device: over, MAC: network.MAC{2, 3}, MTU: mtu, Mode: network.ModeLACP, Links: []string{a.Name}}},
		network.NeedLRO:             {pair, network.Features{In: in, LRO: result.On}},
		network.NeedSteering:        {pair, network.Steer{In: in, To: result.On}},
		network.NeedBridgeNetfilter: {network.FirewallBridges(in)},
		network.NeedRules:           {translation(in, result.IPv4)},
		network.NeedRules6:          {translation(in, result.IPv6)},
		network.NeedIPTables:        iptables(in, result.IPv4, service4),
		network.NeedIPTables6:       iptables(in, result.IPv6, service6),
		network.NeedServiceMap:      {network.ServiceMap{In: in, Family: result.IPv4, Services: []network.VirtualAddress{service4}}},
		network.NeedServiceMap6:     {network.ServiceMap{In: in, Family: result.IPv6, Services: []network.VirtualAddress{service6}}},
		network.NeedIPVS:            {network.IPVS{In: in, Family: result.IPv4, Services: []network.VirtualAddress{service4}}},
		network.NeedIPVS6:           {network.IPVS{In: in, Family: result.IPv6, Services: []network.VirtualAddress{service6}}},
		network.NeedRedirection:     {pair, network.Redirection{In: in, Entry: b.Name, Pods: []network.RedirectedPod{{Address: pod, NodeEnd: a.Name}}}},
		network.NeedGuard:           {pair, network.Guard{In: in, Devices: []string{a.Name}}},
		network.NeedBalance:         {pair, network.Balance{Device: a}},
		network.NeedJoinedSockets:   {network.JoinSockets{}},
		network.NeedXDPRedirection:  {pair, network.XDPRedirection{In: in, Port: a.Name, PortPeer: b}},
	}
}

// protection encrypts packets in both ways that networks use.
func protection(in network.Space, local, remote netip.Addr) network.Protect {
	from, to := netip.PrefixFrom(local, local.BitLen()), netip.PrefixFrom(remote, remote.BitLen())
	return network.Protect{
		In: in, Local: local, Remote: remote, Tunnel: true, Traffic: []network.Traffic{{From: from, To: to}},
		Out: network.Association{SPI: 257}, Incoming: network.Association{SPI: 258},
	}
}

// iptables are two tables of the kinds that policies and services use.
func iptables(in network.Space, family result.Family, v network.VirtualAddress) []network.Op {
	return []network.Op{
		network.IPTables{In: in, Family: family, Table: "filter", Lines: []network.Line{
			":INPUT ACCEPT [0:0]", "-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT",
		}},
		network.IPTables{In: in, Family: family, Table: "nat", Lines: []network.Line{
			":OUTPUT ACCEPT [0:0]", network.Line("-A OUTPUT -d " + v.Virtual.String() + " -j DNAT --to-destination " + v.Backend.String()),
		}},
	}
}

// translation is a table that translates addresses.
func translation(in network.Space, family result.Family) network.Rules {
	rule := network.Rule{Established: true, Do: network.Masquerade}
	return network.Rules{In: in, Family: family, Table: "trial", Chains: []network.Chain{
		{Name: "out", NAT: true, Hook: network.Postrouting, Priority: 100, Rules: []network.Rule{rule}},
	}}
}

// missing recognises the answers that the kernel gives for link types, disciplines, expressions and netlink families that
// it does not have.
func missing(err error) bool {
	return slices.ContainsFunc([]error{unix.EOPNOTSUPP, unix.ENOENT, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ENOSYS},
		func(e error) bool { return errors.Is(err, e) })
}

// fix says what to do about a need that is not met, and whether a guest meets it: its kernel has every kind of link.
func fix(need network.Need) (what string, inGuest bool) {
	r := need.Requirement()
	if r.Module == "" {
		return "run it on a machine that has them", false
	}
	if _, err := os.Stat("/proc/modules"); err != nil {
		return "", true // this kernel can't be changed
	}
	return "load it with modprobe " + r.Module, true
}

// Versions asks the programs that build the network for their versions. The version of iptables says which of its two forms it is: rules of nftables ("nf_tables")
// or of its own ("legacy"), which cost differently.
func (l *Testbed) Versions() (map[string]string, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := map[string]string{}
	for _, t := range network.Of[network.IPTables](l.Plan().Ops) {
		if all[t.Program()] != "" {
			continue
		}
		path, err := superuserTool(t.Program())
		if err != nil {
			return nil, err
		}
		said, err := exec.Command(path, "--version").Output()
		if err != nil {
			return nil, fmt.Errorf("ask %s for its version: %w", path, err)
		}
		// "iptables-restore v1.8.9 (nf_tables)"
		_, version, _ := strings.Cut(strings.TrimSpace(string(said)), " ")
		all[t.Program()] = version
	}
	return all, nil
}

// programSteps are the operations that attach eBPF programs.
func (b *builder) programSteps() {
	on(b, func(op network.Redirection) error {
		return b.attachIn(op.In, func(s *space) (io.Closer, error) { return datapath.Redirect(op, s.link) })
	})
	on(b, func(op network.Guard) error {
		return b.attachIn(op.In, func(s *space) (io.Closer, error) { return datapath.Guard(op, s.link) })
	})
	on(b, func(op network.Balance) error {
		return b.attachIn(op.In, func(s *space) (io.Closer, error) {
			i, err := s.link(op.Name)
			if err != nil {
				return nil, err
			}
			return datapath.Balance(op, i)
		})
	})
	on(b, b.joinSockets)
	on(b, b.xdp)
}

// attachIn attaches programs in a namespace.
func (b *builder) attachIn(where network.Space, attach func(*space) (io.Closer, error)) error {
	return b.within(where, func(s *space) error {
		a, err := attach(s)
		if err == nil {
			b.companions = append(b.companions, a)
		}
		return err
	})
}

// xdp attaches the programs of a redirection, and the programs of the devices that packets are redirected to. What pods send must be
// whole when it gets to a program: nothing behind it knows what was left to do.
func (b *builder) xdp(op network.XDPRedirection) error {
	var x *datapath.XDP
	err := b.attachIn(op.In, func(s *space) (io.Closer, error) {
		var err error
		x, err = datapath.RedirectXDP(op, s.link)
		return x, err
	})
	if err != nil {
		return err
	}
	receivers := []network.Device{op.PortPeer}
	for _, p := range op.Pods {
		receivers = append(receivers, p.Device)
	}
	for _, d := range receivers {
		s, i, err := b.device(d)
		if err != nil {
			return err
		}
		err = s.ns.Do(func() error { return x.Receive(i) })
		if err == nil && d.In.Kind == network.PodSpace {
			err = s.ns.Do(func() error { return wholePackets(d.Name) })
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
	}
	return nil
}

// wholePackets has a device of the calling thread's namespace leave neither checksums nor segmentation to others.
func wholePackets(device string) error {
	e, err := nsmonitor.OpenEthtool()
	if err != nil {
		return err
	}
	defer e.Close()
	for _, command := range []uint32{unix.ETHTOOL_STXCSUM, unix.ETHTOOL_STSO} {
		if _, err := e.Value(device, command, 0); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
			return fmt.Errorf("switch offloads off: %w", err)
		}
	}
	return nil
}
