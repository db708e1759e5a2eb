package datapath

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"netdelta/network"
)

// XDP is the programs of a redirection in the drivers' receive path.
type XDP struct {
	Attached
	programs map[string]*ebpf.Program
}

// RedirectXDP loads the programs of a redirection and attaches the node's own. It is called inside the node's namespace;
// number finds a device there. Its error is an *testbed.UnsupportedError where this can't be had.
func RedirectXDP(op network.XDPRedirection, number func(device string) (int, error)) (x *XDP, err error) {
	x = &XDP{}
	defer x.closeAfter(&err)
	spec, err := loadXdp()
	if err != nil {
		return nil, err
	}
	c, err := x.collected(spec)
	if err != nil {
		return nil, err
	}
	x.programs = c.Programs
	port, err := number(op.Port)
	if err != nil {
		return nil, err
	}
	all := []int{port}
	for _, f := range op.Far {
		way := xdpWay{Device: uint32(port), To: f.Port, From: op.PortMAC}
		if err := c.Maps[xdpMapWays].Put(xdpAddress{Word: words(f.Address)}, way); err != nil {
			return nil, fmt.Errorf("enter %s: %w", f.Address, err)
		}
	}
	for _, p := range op.Pods {
		end, err := number(p.NodeEnd)
		if err != nil {
			return nil, err
		}
		all = append(all, end)
		way := xdpWay{Device: uint32(end), To: p.MAC, From: p.Gateway}
		if err := c.Maps[xdpMapWays].Put(xdpAddress{Word: words(p.Address)}, way); err != nil {
			return nil, fmt.Errorf("enter %s: %w", p.Address, err)
		}
	}
	for _, i := range all {
		if err := c.Maps[xdpMapDevices].Put(uint32(i), uint32(i)); err != nil {
			return nil, refusal("enter a device into a table of devices", err)
		}
		if err := x.attach(c.Programs[xdpProgForward], i); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// Receive lets a device take redirected packets. It is called inside the device's namespace.
func (x *XDP) Receive(device int) error { return x.attach(x.programs[xdpProgReceive], device) }

// attach puts a program into a driver's receive path; the stack's generic one, which any device has, would be another network.
func (x *XDP) attach(program *ebpf.Program, device int) error {
	l, err := link.AttachXDP(link.XDPOptions{Interface: device, Program: program, Flags: link.XDPDriverMode})
	if err != nil {
		return refusal("attach an eBPF program to a driver", err)
	}
	x.hold(l)
	return nil
}
