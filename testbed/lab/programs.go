package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"golang.org/x/sys/unix"

	"netdelta/network"
	"netdelta/testbed/lab/datapath"
)

// attached are eBPF programs, which go with the network.
type attached struct{ io.Closer }

// start implements companion: programs work from when they are attached.
func (attached) start(context.Context, *Testbed) error { return nil }

// close implements companion.
func (a attached) close() error { return a.Close() }

// program carries out the operations that attach eBPF programs.
func (b *builder) program(op network.Op) error {
	switch op := op.(type) {
	case network.Redirection:
		return b.within(op.In, func(s *space) (io.Closer, error) { return datapath.Redirect(op, s.link) })
	case network.Guard:
		return b.within(op.In, func(s *space) (io.Closer, error) { return datapath.Guard(op, s.link) })
	case network.Balance:
		return b.within(op.In, func(s *space) (io.Closer, error) {
			i, err := s.link(op.Name)
			if err != nil {
				return nil, err
			}
			return datapath.Balance(op, i)
		})
	case network.JoinSockets:
		return b.joinSockets(op)
	case network.XDPRedirection:
		return b.xdp(op)
	}
	return fmt.Errorf("the lab can't carry out %T", op)
}

// within attaches programs in a namespace.
func (b *builder) within(where network.Space, attach func(*space) (io.Closer, error)) error {
	s, err := b.in(where)
	if err != nil {
		return err
	}
	return s.ns.Do(func() error {
		a, err := attach(s)
		if err != nil {
			return err
		}
		b.companions = append(b.companions, attached{a})
		return nil
	})
}

// xdp attaches the programs of a redirection, and those of the devices that packets are redirected to. What pods send must be
// whole when it gets to a program: nobody behind it knows what was left to do.
func (b *builder) xdp(op network.XDPRedirection) error {
	var x *datapath.XDP
	err := b.within(op.In, func(s *space) (io.Closer, error) {
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
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	for _, command := range []uint32{unix.ETHTOOL_STXCSUM, unix.ETHTOOL_STSO} {
		if _, err := ethtoolValue(fd, device, command, 0); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
			return fmt.Errorf("switch offloads off: %w", err)
		}
	}
	return nil
}

// programTrial is the least that uses what a need of programs names.
func programTrial(need network.Need, pair network.Veth) []network.Op {
	in, a, b := pair.A.In, pair.A.Device, pair.B.Device
	address := netip.AddrFrom4([4]byte{198, 19, 0, 10})
	switch need {
	case network.NeedRedirection:
		return []network.Op{pair, network.Redirection{In: in, Entry: b.Name, Pods: []network.RedirectedPod{{Address: address, NodeEnd: a.Name}}}}
	case network.NeedGuard:
		return []network.Op{pair, network.Guard{In: in, Devices: []string{a.Name}}}
	case network.NeedBalance:
		return []network.Op{pair, network.Balance{Device: a}}
	case network.NeedJoinedSockets:
		return []network.Op{network.JoinSockets{}}
	case network.NeedXDPRedirection:
		return []network.Op{pair, network.XDPRedirection{In: in, Port: a.Name, PortPeer: b}}
	}
	return nil
}
