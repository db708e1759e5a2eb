package lab

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"netdelta/network"
	"netdelta/testbed/lab/datapath"
	"netdelta/testbed/nsmonitor"
)

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
