package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
)

// errMissing is what try returns for something that the kernel does not have.
var errMissing = errors.New("the kernel does not have it")

// try finds out whether the kernel has what a need names, by using it in a namespace made for the purpose.
func try(need network.Need) error {
	s, err := newSpace("a trial", nil)
	if err != nil {
		return err
	}
	in := network.InNode(0)
	b := newBuilder(map[network.Space]*space{in: s})
	for _, op := range trial(need, in) {
		if err = b.one(op); err != nil {
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
		return &testbed.UnsupportedError{Feature: feature, Need: u.Need, Mend: u.Mend}
	case errors.Is(err, errMissing):
		return &testbed.UnsupportedError{Feature: feature, Need: need.String(), Mend: mend(need)}
	}
	return nil
}

// TrySample finds out whether packets can be sampled, in a namespace made for the purpose. Its errors are those of Has.
func TrySample() error {
	s, err := newSpace("a trial", nil)
	if err != nil {
		return err
	}
	socket, err := s.tap(network.InNode(0))
	if err == nil {
		err = socket.Close()
	}
	return errors.Join(err, s.close())
}

// trial is the least that uses what a need names.
func trial(need network.Need, in network.Space) []network.Op {
	const mtu = network.DefaultMTU
	a, b := network.Device{In: in, Name: "a"}, network.Device{In: in, Name: "b"}
	pair := network.Veth{A: network.End{Device: a, MAC: network.MAC{2, 1}}, B: network.End{Device: b, MAC: network.MAC{2, 2}}, MTU: mtu}
	over := network.Device{In: in, Name: "over"}
	switch need {
	case network.NeedVeth:
		return []network.Op{pair}
	case network.NeedBridge:
		return []network.Op{network.Bridge{Device: a, MTU: mtu}}
	case network.NeedMacvlan:
		return []network.Op{pair, network.Macvlan{Device: over, Parent: a, MTU: mtu}}
	case network.NeedIPVlan:
		return []network.Op{pair, network.IPVlan{Device: over, Parent: a, Layer: 2, MTU: mtu}}
	case network.NeedVxlan:
		return []network.Op{pair, network.Vxlan{Device: over, Under: a, ID: 1, Port: 4789, Local: netip.AddrFrom4([4]byte{198, 18, 0, 1}), MTU: mtu}}
	case network.NeedIPIP, network.NeedIPIP6, network.NeedGRE, network.NeedGRE6, network.NeedGeneve, network.NeedNetkit, network.NeedDatapath,
		network.NeedExternalVxlan, network.NeedWireGuard, network.NeedESP, network.NeedESP6:
		return append([]network.Op{pair}, encapsulationTrial(need, a)...)
	case network.NeedRedirection, network.NeedGuard, network.NeedBalance, network.NeedJoinedSockets, network.NeedXDPRedirection:
		return programTrial(need, pair)
	case network.NeedShaping:
		return []network.Op{pair, network.Shape{Device: a, Rate: 1e9}}
	case network.NeedImpairing:
		return []network.Op{pair, network.Impair{Device: a, Delay: time.Millisecond}}
	case network.NeedBonding:
		return []network.Op{pair, network.Bond{Device: over, MAC: network.MAC{2, 3}, MTU: mtu, Mode: network.ModeLACP, Links: []string{a.Name}}}
	case network.NeedLRO:
		return []network.Op{pair, network.Features{In: in, LRO: result.On}}
	case network.NeedSteering:
		return []network.Op{pair, network.Steer{In: in, To: result.On}}
	case network.NeedTUN:
		return []network.Op{network.UDPTunnel{Device: over, MTU: mtu}}
	case network.NeedIPv6:
		return []network.Op{pair, network.Address{Device: a, Prefix: netip.MustParsePrefix("2001:2::1/64")}}
	case network.NeedRules:
		return []network.Op{translation(in, result.IPv4)}
	case network.NeedRules6:
		return []network.Op{translation(in, result.IPv6)}
	}
	return ruleTrial(need, in)
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
	for _, e := range []error{unix.EOPNOTSUPP, unix.ENOENT, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ENOSYS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// guestMend is what to do about a kernel that can't be mended: the guest's has every kind of link.
const guestMend = "run it with --testbed vm"

// mend says what to do about a need that is not met.
func mend(need network.Need) string {
	r := need.Requirement()
	if r.Module == "" {
		return "run it on a machine that has them"
	}
	if _, err := os.Stat("/proc/modules"); err != nil {
		return guestMend
	}
	return "load it with modprobe " + r.Module + ", or " + guestMend
}
