package datapath

import (
	"github.com/cilium/ebpf/link"

	"netdelta/network"
)

// XDP is the programs of a redirection in the drivers' receive path. Close takes them away.
type XDP struct{ *loader }

// RedirectXDP loads the programs of a redirection and attaches the node's own. It is called inside the node's namespace;
// number finds a device there. Its error is an *testbed.UnsupportedError where this can't be had.
func RedirectXDP(op network.XDPRedirection, number func(device string) (int, error)) (*XDP, error) {
	x := &XDP{load(loadXdp, nil, number)}
	port := x.device(op.Port)
	devices := []int{port}
	for _, f := range op.Far {
		x.put(xdpMapWays, f.Address, xdpAddress{Word: words(f.Address)}, xdpWay{Device: uint32(port), To: f.Port, From: op.PortMAC})
	}
	for _, p := range op.Pods {
		end := x.device(p.NodeEnd)
		devices = append(devices, end)
		x.put(xdpMapWays, p.Address, xdpAddress{Word: words(p.Address)}, xdpWay{Device: uint32(end), To: p.MAC, From: p.Gateway})
	}
	for _, i := range devices {
		if x.err != nil {
			break
		}
		if err := x.maps[xdpMapDevices].Put(uint32(i), uint32(i)); err != nil {
			x.err = refusal("enter a device into a table of devices", err)
		}
		x.attach(xdpProgForward, i)
	}
	_, err := x.done()
	return x, err
}

// Receive lets a device take redirected packets. It is called inside the device's namespace.
func (x *XDP) Receive(device int) error {
	x.attach(xdpProgReceive, device)
	return x.err
}

// attach puts a program into a driver's receive path; the stack's generic one, which any device has, would be another network.
func (x *XDP) attach(program string, device int) {
	if x.err != nil {
		return
	}
	l, err := link.AttachXDP(link.XDPOptions{Interface: device, Program: x.programs[program], Flags: link.XDPDriverMode})
	x.attached("attach an eBPF program to a driver", l, err)
}
