package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"netdelta/network"
)

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
