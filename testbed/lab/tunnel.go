package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"netdelta/internal/gather"
	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/lab/udptun"
)

const (
	// tunDevice is where TUN devices are made.
	tunDevice = "/dev/net/tun"
	// tunnelPatience is how long a tunnel's process may take to start; usually it is some ten milliseconds.
	tunnelPatience = 30 * time.Second
	// tunnelRoom is how many bytes of datagrams wait for a tunnel's process: more than the queue of the device at the other end
	// hands out at once (500 packets). Where all ends share a processor, as in a lab, the process can't read before the sender
	// has handed over its last packet.
	tunnelRoom = 4 << 20
)

// tunnel is a TUN device and a socket, and the process that moves packets between them.
type tunnel struct {
	op             network.UDPTunnel
	in             *space
	device, socket *os.File // until the process has them
	carrier        *process
}

// udpTunnel makes a tunnel's device and socket. Both are this process's until it starts.
func (b *builder) udpTunnel(op network.UDPTunnel) error {
	s, err := b.in(op.In)
	if err != nil {
		return err
	}
	t := &tunnel{op: op, in: s}
	b.companions = append(b.companions, t)
	err = s.ns.Do(func() error { return t.open() })
	if err != nil {
		return err
	}
	i, err := s.link(op.Name)
	if err != nil {
		return err
	}
	if err := s.nl.LinkSetMTU(indexed(i), int(op.MTU)); err != nil {
		return fmt.Errorf("set the MTU of %s: %w", op.Device, err)
	}
	return s.up(op.Name)
}

// open makes what the calling thread's namespace is to have.
func (t *tunnel) open() error {
	fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		return &testbed.UnsupportedError{
			Feature: "a TUN device", Need: "the right to open " + tunDevice, Fix: "run it as root, or give all users that right, as most distributions do: chmod 666 " + tunDevice,
		}
	case errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO):
		return fmt.Errorf("open %s: %w (%w)", tunDevice, unix.EOPNOTSUPP, err) // the file is there, its driver is not
	case err != nil:
		return fmt.Errorf("open %s: %w", tunDevice, err)
	}
	t.device = os.NewFile(uintptr(fd), tunDevice)
	request, err := unix.NewIfreq(t.op.Name)
	if err != nil {
		return fmt.Errorf("name a TUN device: %w", err)
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return fmt.Errorf("make a TUN device: %w", err)
	}
	at := netip.AddrPortFrom(t.op.Local, t.op.Port)
	if !at.IsValid() {
		return nil // a trial needs none
	}
	family, address := socketAddress(at)
	socket, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open a UDP socket: %w", err)
	}
	t.socket = os.NewFile(uintptr(socket), "udp "+at.String())
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, tunnelRoom); err != nil {
		return fmt.Errorf("make room for the datagrams of a tunnel: %w", err)
	}
	if err := unix.Bind(socket, address); err != nil {
		return fmt.Errorf("bind a UDP socket to %s: %w", at, err)
	}
	return nil
}

// socketAddress is an address as the kernel takes it.
func socketAddress(at netip.AddrPort) (family int, address unix.Sockaddr) {
	if at.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
}

// start implements starter. The process is this program, started anew.
func (t *tunnel) start(ctx context.Context, l *Testbed) error {
	config := udptun.Config{MTU: int(t.op.MTU)}
	for _, p := range t.op.Peers {
		config.Peers = append(config.Peers, udptun.Peer{Pods: p.Pods, Node: netip.AddrPortFrom(p.Node, t.op.Port)})
	}
	arguments, err := config.Arguments()
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start the tunnel of %s: find this program: %w", t.in.name, err)
	}
	// A tunnel allocates nothing once it runs; the monitor of the Go runtime must not interrupt it either.
	cmd := testbed.Command{Path: program, Args: arguments, Env: []string{"GODEBUG=asyncpreemptoff=1"}, CPUs: l.driver.others()}
	if t.carrier, err = start(t.in.ns, cmd, l.mark, t.in.name, t.device, t.socket); err != nil {
		return fmt.Errorf("start the tunnel of %s: %w", t.in.name, err)
	}
	// The device goes with its last holder.
	if err := t.release(); err != nil {
		return err
	}
	return t.await(ctx)
}

// await returns when the tunnel carries packets.
func (t *tunnel) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tunnelPatience)
	defer cancel()
	// A process that can't become a tunnel ends, and its output with it.
	stop := context.AfterFunc(ctx, func() { _ = t.carrier.stdout.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	said := make([]byte, len(udptun.Ready))
	n := 0
	for n < len(said) {
		m, err := t.carrier.Read(said[n:])
		if n += m; err != nil {
			break
		}
	}
	if string(said) == udptun.Ready {
		return nil
	}
	cause := ctx.Err()
	if cause == nil {
		cause = t.carrier.Wait()
	}
	return fmt.Errorf("the tunnel of %s, a process of this program, did not begin to carry packets: %w", t.in.name, cause)
}

// release closes the files that the process has by now.
func (t *tunnel) release() error {
	var err error
	for _, f := range []**os.File{&t.device, &t.socket} {
		if *f != nil {
			err = errors.Join(err, (*f).Close())
			*f = nil
		}
	}
	return err
}

// Close implements io.Closer.
func (t *tunnel) Close() error {
	err := t.release()
	if t.carrier == nil {
		return err
	}
	carrier := t.carrier
	t.carrier = nil
	ended := carrier.Close()
	if errors.Is(ended, errHung) && carrier.gone() == nil {
		ended = nil // it was killed: what it spoiled has failed by name, and its network can be removed
	}
	return errors.Join(err, ended)
}

// Carriers is testbed.Instruments.Carriers: the numbers of the processes that do part of the network's work, in ascending order.
func (l *Testbed) Carriers() []int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var pids []int
	for _, c := range l.companions {
		if t, ok := c.(*tunnel); ok && t.carrier != nil {
			pids = append(pids, t.carrier.PID())
		}
	}
	slices.Sort(pids)
	return pids
}

// others are the processors that this program was allowed when the driver was made and that it has left to what is measured
// since. It is nil, which is all, where it has left none.
func (d *Driver) others() []int {
	now, err := machine.AllowedCPUs()
	if err != nil {
		return nil // the processes are then where the program is
	}
	return gather.Where(d.allowed, func(cpu int) bool { return !slices.Contains(now, cpu) })
}

// tunnelHops is how far wrapped packets may go: as far as most packets may.
const tunnelHops = 64

// ipTunnel makes a tunnel over the device that it names, which also ties packets to groups on the link to that device.
func (b *builder) ipTunnel(op network.Tunnel) error {
	s, i, err := b.device(op.Under)
	if err != nil {
		return err
	}
	a := attrs(op.Name, network.MAC{}, op.MTU)
	local, remote := op.Local.AsSlice(), net.IP(nil)
	if op.Remote.IsValid() {
		remote = op.Remote.AsSlice()
	}
	switch {
	case op.Kind == network.IPIP && op.Local.Is4():
		return s.nl.LinkAdd(&netlink.Iptun{
			LinkAttrs: a, Link: uint32(i), Local: local, Remote: remote, Ttl: tunnelHops, Proto: uint8(network.ProtocolIPIP), PMtuDisc: 1,
		})
	case op.Kind == network.IPIP:
		return s.nl.LinkAdd(&netlink.Ip6tnl{
			LinkAttrs: a, Link: uint32(i), Local: local, Remote: remote, Ttl: tunnelHops, Proto: uint8(network.ProtocolIPIP6), Flags: noEncapsulationLimit,
		})
	case op.Kind != network.GRE:
		return fmt.Errorf("unknown kind of tunnel %q", op.Kind)
	case op.Local.Is4():
		return s.nl.LinkAdd(&netlink.Gretun{LinkAttrs: a, Link: uint32(i), Local: local, Remote: remote, Ttl: tunnelHops, PMtuDisc: 1})
	}
	return s.ns.Do(func() error { return addGRE6(op, i) })
}

// noEncapsulationLimit is IP6_TNL_F_IGN_ENCAP_LIMIT: without it each packet gets an option of 8 bytes that says how often it
// may be wrapped again (RFC 2473, section 4.1.1).
const noEncapsulationLimit = 0x1

// addGRE6 makes a GRE tunnel over IPv6 in the namespace of the calling thread: the library has no way to leave out the limit.
func addGRE6(op network.Tunnel, under int) error {
	r := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	head := nl.NewIfInfomsg(unix.AF_UNSPEC)
	head.Flags, head.Change = unix.IFF_UP, unix.IFF_UP
	r.AddData(head)
	r.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(op.Name)))
	r.AddData(nl.NewRtAttr(unix.IFLA_MTU, nl.Uint32Attr(uint32(op.MTU))))
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, nl.NonZeroTerminated("ip6gre"))
	data := info.AddRtAttr(nl.IFLA_INFO_DATA, nil)
	data.AddRtAttr(nl.IFLA_GRE_LINK, nl.Uint32Attr(uint32(under)))
	data.AddRtAttr(nl.IFLA_GRE_LOCAL, op.Local.AsSlice())
	data.AddRtAttr(nl.IFLA_GRE_REMOTE, op.Remote.AsSlice())
	data.AddRtAttr(nl.IFLA_GRE_TTL, nl.Uint8Attr(tunnelHops))
	data.AddRtAttr(nl.IFLA_GRE_FLAGS, nl.Uint32Attr(noEncapsulationLimit))
	r.AddData(info)
	_, err := r.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// wireGuard makes a WireGuard device and tells it its keys and peers.
func (s *space) wireGuard(op network.WireGuard) error {
	if err := s.nl.LinkAdd(&netlink.Wireguard{LinkAttrs: attrs(op.Name, network.MAC{}, op.MTU)}); err != nil {
		return err
	}
	return s.ns.Do(func() error {
		c, err := wgctrl.New()
		if err != nil {
			return fmt.Errorf("speak with WireGuard: %w", err)
		}
		private, port := wgtypes.Key(op.Private), int(op.Port)
		config := wgtypes.Config{PrivateKey: &private, ListenPort: &port, ReplacePeers: true}
		for _, p := range op.Peers {
			peer := wgtypes.PeerConfig{PublicKey: p.Public, Endpoint: net.UDPAddrFromAddrPort(p.Endpoint), ReplaceAllowedIPs: true}
			for _, a := range p.Allowed {
				peer.AllowedIPs = append(peer.AllowedIPs, *ipNet(a))
			}
			config.Peers = append(config.Peers, peer)
		}
		return errors.Join(c.ConfigureDevice(op.Name, config), c.Close())
	})
}

const (
	// aeadName is the kernel's name for AES-GCM as ESP has it (RFC 4106), tagBits the length of its tag.
	aeadName = "rfc4106(gcm(aes))"
	tagBits  = 128
	// replayWindow is how far packets may overtake each other.
	replayWindow = 128
)

// protect tells IPsec, in the namespace of the calling thread, what to encrypt and what to expect encrypted.
func protect(op network.Protect) error {
	mode := netlink.XFRM_MODE_TRANSPORT
	if op.Tunnel {
		mode = netlink.XFRM_MODE_TUNNEL
	}
	for _, way := range []struct {
		from, to netip.Addr
		network.Association
	}{{op.Local, op.Remote, op.Out}, {op.Remote, op.Local, op.Incoming}} {
		err := netlink.XfrmStateAdd(&netlink.XfrmState{
			Src: way.from.AsSlice(), Dst: way.to.AsSlice(), Proto: netlink.XFRM_PROTO_ESP, Mode: mode, Spi: int(way.SPI), Reqid: 1,
			ReplayWindow: replayWindow, ESN: true, Aead: &netlink.XfrmStateAlgo{Name: aeadName, Key: way.Key[:], ICVLen: tagBits},
		})
		if err != nil {
			return fmt.Errorf("add the association from %s to %s: %w", way.from, way.to, err)
		}
	}
	for _, t := range op.Traffic {
		back := network.Traffic{From: t.To, To: t.From, Protocol: t.Protocol}
		err := errors.Join(
			policy(netlink.XFRM_DIR_OUT, t, op.Local, op.Remote, mode),
			policy(netlink.XFRM_DIR_IN, back, op.Remote, op.Local, mode),
			policy(netlink.XFRM_DIR_FWD, back, op.Remote, op.Local, mode),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// policy has traffic encrypted, or expects it to be.
func policy(direction netlink.Dir, t network.Traffic, from, to netip.Addr, mode netlink.Mode) error {
	err := netlink.XfrmPolicyAdd(&netlink.XfrmPolicy{
		Src: ipNet(t.From), Dst: ipNet(t.To), Proto: netlink.Proto(t.Protocol), Dir: direction,
		Tmpls: []netlink.XfrmPolicyTmpl{{Src: from.AsSlice(), Dst: to.AsSlice(), Proto: netlink.XFRM_PROTO_ESP, Mode: mode, Reqid: 1}},
	})
	if err != nil {
		return fmt.Errorf("add the policy (%s) from %s to %s: %w", direction, t.From, t.To, err)
	}
	return nil
}
