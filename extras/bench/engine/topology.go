package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"

	"netdelta/internal/machine"
	"netdelta/internal/netns"
)

// namespaces are two network namespaces joined by a veth link, one for the client and one for the server.
type namespaces struct {
	client, server *netns.Namespace
}

const (
	device     = "eth0"
	congestion = "reno" // of all contenders
)

// addresses of the client and of the server, in a /24.
func addresses() (client, server netip.Addr) {
	return netip.AddrFrom4([4]byte{10, 99, 0, 1}), netip.AddrFrom4([4]byte{10, 99, 0, 2})
}

func newNamespaces() (p *namespaces, err error) {
	p = &namespaces{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.server, err = netns.New(nil); err != nil {
		return p, err
	}
	client, server := addresses()
	p.client, err = netns.New(func() error {
		return p.server.WithFD(func(fd int) error {
			attrs := netlink.NewLinkAttrs()
			attrs.Name = device
			attrs.HardwareAddr = net.HardwareAddr{2, 0, 0, 0, 0, 1}
			err := netlink.LinkAdd(&netlink.Veth{
				LinkAttrs: attrs, PeerName: device, PeerNamespace: netlink.NsFd(fd), PeerHardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 2},
			})
			return errors.Join(err, address(client))
		})
	})
	if err != nil {
		return p, fmt.Errorf("join two namespaces: %w", err)
	}
	if err = p.server.Do(func() error { return address(server) }); err != nil {
		return p, fmt.Errorf("join two namespaces: %w", err)
	}
	return p, nil
}

// address brings up the link of the namespace that the thread is in.
func address(a netip.Addr) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	ip := net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(24, 32)}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: &ip}); err != nil {
		return err
	}
	// sockperf can't choose its congestion control, so it must be the default; and reno is the one that the kernel lets
	// every namespace choose.
	if err := os.WriteFile("/proc/sys/net/ipv4/tcp_congestion_control", []byte(congestion), 0o644); err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

func (p *namespaces) close() error {
	var errs []error
	for _, n := range []*netns.Namespace{p.client, p.server} {
		if n != nil {
			errs = append(errs, n.Close())
		}
	}
	return errors.Join(errs...)
}

// leave moves this program off a processor, and with it all that it starts unless they pin themselves. With one processor
// there is nowhere to go.
func leave(cpu int) error {
	cpus, err := machine.AllowedCPUs()
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(cpus), func(c int) bool { return c == cpu })
	switch {
	case len(others) == len(cpus):
		return fmt.Errorf("processor %d may not be used here", cpu)
	case len(others) == 0:
		return nil
	}
	return machine.Confine(others)
}

// start starts a program inside a namespace. It dies with this one.
func start(in *netns.Namespace, cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return in.Do(cmd.Start)
}
