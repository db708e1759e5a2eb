package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"netdelta/network"
	"netdelta/result"
)

// generic speaks by generic netlink with parts of the kernel, in one namespace.
type generic struct {
	c        *genetlink.Conn
	families map[string]genetlink.Family
}

// inGeneric calls f with a connection to the namespace of the file descriptor.
func inGeneric(fd int, f func(*generic) error) error {
	c, err := genetlink.Dial(&netlink.Config{NetNS: fd})
	if err != nil {
		return fmt.Errorf("open generic netlink: %w", err)
	}
	return errors.Join(f(&generic{c, map[string]genetlink.Family{}}), c.Close())
}

// execute sends a command to a family: a header of its own, if it has one, and attributes.
func (g *generic) execute(
	family string, command uint8, flags netlink.HeaderFlags, header []byte, attributes func(*netlink.AttributeEncoder),
) ([]genetlink.Message, error) {
	f, known := g.families[family]
	if !known {
		var err error
		if f, err = g.c.GetFamily(family); err != nil {
			return nil, fmt.Errorf("find %s: %w", family, err)
		}
		g.families[family] = f
	}
	e := netlink.NewAttributeEncoder()
	attributes(e)
	body, err := e.Encode()
	if err != nil {
		return nil, fmt.Errorf("encode a message: %w", err)
	}
	message := genetlink.Message{Header: genetlink.Header{Command: command, Version: f.Version}, Data: append(header, body...)}
	return g.c.Execute(message, f.ID, netlink.Request|flags)
}

// Numbers of the kernel's load balancer (linux/ip_vs.h).
const (
	ipvsFamily     = "IPVS"
	ipvsNewService = 1
	ipvsNewDest    = 5
	ipvsFlush      = 17
	ipvsService    = 1 // attributes of a command
	ipvsDest       = 2
	// Attributes of a service.
	serviceFamily    = 1
	serviceProtocol  = 2
	serviceVirtual   = 3
	servicePort      = 4
	serviceScheduler = 6
	serviceFlags     = 7
	serviceTimeout   = 8
	serviceNetmask   = 9
	persistent       = 1
	// Attributes of a destination.
	destAddress = 1
	destPort    = 2
	destMethod  = 3
	destWeight  = 4
	destUpper   = 5
	destLower   = 6
	destFamily  = 11
	translating = 0
)

// stickiness is how long the load balancer remembers which server a client has, in seconds. A service of all ports has to be
// one that remembers.
const stickiness = 360

// addIPVS makes services in the namespace of the file descriptor. A kernel without the load balancer gives unix.ENOENT.
func addIPVS(fd int, op network.IPVS) error {
	return inGeneric(fd, func(g *generic) error {
		for _, v := range op.Services {
			for _, protocol := range []network.Protocol{network.TCP, network.UDP} {
				if err := addService(g, v, protocol, op.Family); err != nil {
					return fmt.Errorf("add service %s: %w", v, err)
				}
			}
		}
		return nil
	})
}

// deleteIPVS removes all services from the namespace of the file descriptor.
func deleteIPVS(fd int) error {
	return inGeneric(fd, func(g *generic) error { return balance(g, ipvsFlush, func(*netlink.AttributeEncoder) {}) })
}

// balance sends a command to the load balancer.
func balance(g *generic, command uint8, attributes func(e *netlink.AttributeEncoder)) error {
	_, err := g.execute(ipvsFamily, command, netlink.Acknowledge, nil, attributes)
	return err
}

// addService makes one service with its server.
func addService(g *generic, v network.VirtualAddress, protocol network.Protocol, family result.Family) error {
	err := balance(g, ipvsNewService, func(e *netlink.AttributeEncoder) {
		e.Nested(ipvsService, func(e *netlink.AttributeEncoder) error {
			identify(e, v.Virtual, protocol, family)
			e.String(serviceScheduler, "rr")
			// Flags, and which of them are meant.
			flags := binary.NativeEndian.AppendUint32(nil, persistent)
			e.Bytes(serviceFlags, binary.NativeEndian.AppendUint32(flags, math.MaxUint32))
			e.Uint32(serviceTimeout, stickiness)
			alone := uint32(math.MaxUint32)
			if family == result.IPv6 {
				alone = 128 // a length here
			}
			e.Uint32(serviceNetmask, alone)
			return nil
		})
	})
	if err != nil {
		return err
	}
	return balance(g, ipvsNewDest, func(e *netlink.AttributeEncoder) {
		e.Nested(ipvsService, func(e *netlink.AttributeEncoder) error {
			identify(e, v.Virtual, protocol, family)
			return nil
		})
		e.Nested(ipvsDest, func(e *netlink.AttributeEncoder) error {
			e.Bytes(destAddress, v.Backend.AsSlice())
			e.Bytes(destPort, []byte{0, 0}) // the one that was called
			e.Uint32(destMethod, translating)
			e.Int32(destWeight, 1)
			e.Uint32(destUpper, 0)
			e.Uint32(destLower, 0)
			e.Uint16(destFamily, addressFamily(family))
			return nil
		})
	})
}

// identify says which service is meant: all ports of an address.
func identify(e *netlink.AttributeEncoder, virtual netip.Addr, protocol network.Protocol, family result.Family) {
	e.Uint16(serviceFamily, addressFamily(family))
	e.Uint16(serviceProtocol, uint16(protocol))
	e.Bytes(serviceVirtual, virtual.AsSlice())
	e.Bytes(servicePort, []byte{0, 0})
}

func addressFamily(f result.Family) uint16 {
	if f == result.IPv6 {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

// Numbers of include/uapi/linux/openvswitch.h.
const (
	datapathFamily, portFamily, flowFamily = "ovs_datapath", "ovs_vport", "ovs_flow"
	commandNew                             = 1 // of all three

	datapathName, datapathUpcalls               = 1, 2
	portNumber, portType, portName, portUpcalls = 1, 2, 3, 5
	portOfDevice                                = 1 // OVS_VPORT_TYPE_NETDEV
	flowKey, flowActions, flowMask              = 1, 2, 7
	keyInPort, keyEthernet, keyType             = 3, 4, 6
	keyIPv4, keyIPv6, keyTunnel                 = 7, 8, 16
	sizeofIPv4Key, sizeofIPv6Key                = 12, 40
	tunnelID, tunnelSource4, tunnelTo4          = 0, 1, 2
	tunnelTTL, tunnelChecksum                   = 4, 6
	tunnelSource6, tunnelTo6                    = 12, 13
	actionOutput, actionSet                     = 1, 3
	typeOfIPv4, typeOfIPv6                      = 0x0800, 0x86dd
)

// ovs speaks with the kernel's Open vSwitch of one namespace.
type ovs struct {
	*generic
	datapath uint32 // number of the switch's own device
}

// addDatapath makes a switch in the namespace of the file descriptor.
func addDatapath(fd int, op network.Datapath) error {
	return inGeneric(fd, func(g *generic) error {
		o := &ovs{generic: g}
		if err := o.add(op.Name); err != nil {
			return fmt.Errorf("make the switch: %w", err)
		}
		for i, name := range op.Ports {
			if err := o.addPort(i+1, name); err != nil {
				return fmt.Errorf("make %s port %d: %w", name, i+1, err)
			}
		}
		for _, f := range op.Flows {
			if err := o.addFlow(f); err != nil {
				return fmt.Errorf("add the flow from port %d for %s: %w", f.In, f.To, err)
			}
		}
		return nil
	})
}

// do sends a command about the switch, and returns the number of a device that the answer names.
func (o *ovs) do(family string, attributes func(*netlink.AttributeEncoder)) (uint32, error) {
	// struct ovs_header is nothing but that number. Asked to repeat what it has made, the kernel needs no other way to say that
	// all is well.
	answers, err := o.execute(family, commandNew, netlink.Echo, binary.NativeEndian.AppendUint32(nil, o.datapath), attributes)
	if err != nil {
		return 0, err
	}
	for _, a := range answers {
		const header = 4
		if len(a.Data) >= header {
			return binary.NativeEndian.Uint32(a.Data), nil
		}
	}
	return 0, nil
}

// add makes the switch. What no flow is for is dropped, without an upcall.
func (o *ovs) add(name string) error {
	number, err := o.do(datapathFamily, func(e *netlink.AttributeEncoder) {
		e.String(datapathName, name)
		e.Uint32(datapathUpcalls, 0)
	})
	if err == nil && number == 0 {
		return errors.New("the kernel did not say its number")
	}
	o.datapath = number
	return err
}

func (o *ovs) addPort(number int, device string) error {
	_, err := o.do(portFamily, func(e *netlink.AttributeEncoder) {
		e.Uint32(portNumber, uint32(number))
		e.Uint32(portType, portOfDevice)
		e.String(portName, device)
		e.Uint32(portUpcalls, 0)
	})
	return err
}

// addFlow adds a flow for all frames of one version of IP to a MAC address from a port.
func (o *ovs) addFlow(f network.Flow) error {
	kind, key, length := uint16(typeOfIPv4), uint16(keyIPv4), sizeofIPv4Key
	if f.Family == result.IPv6 {
		kind, key, length = typeOfIPv6, keyIPv6, sizeofIPv6Key
	}
	_, err := o.do(flowFamily, func(e *netlink.AttributeEncoder) {
		match := func(port uint32, addresses []byte, kind uint16) func(*netlink.AttributeEncoder) error {
			return func(e *netlink.AttributeEncoder) error {
				e.Uint32(keyInPort, port)
				e.Bytes(keyEthernet, addresses)
				e.Bytes(keyType, binary.BigEndian.AppendUint16(nil, kind))
				e.Bytes(key, make([]byte, length))
				return nil
			}
		}
		// struct ovs_key_ethernet: the source, then the destination. Only what the mask has ones for is looked at.
		to := append(make([]byte, len(f.To)), f.To[:]...)
		ones := append(make([]byte, len(f.To)), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
		e.Nested(flowKey, match(uint32(f.In), to, kind))
		e.Nested(flowMask, match(^uint32(0), ones, ^uint16(0)))
		e.Nested(flowActions, func(e *netlink.AttributeEncoder) error {
			if f.Through != nil {
				e.Nested(actionSet, func(e *netlink.AttributeEncoder) error {
					e.Nested(keyTunnel, through(*f.Through))
					return nil
				})
			}
			e.Uint32(actionOutput, uint32(f.Out))
			return nil
		})
	})
	return err
}

// through tells a tunnel's device where to take a frame. Over IPv6 its datagrams have checksums, without which they would
// not be received.
func through(t network.Encapsulate) func(*netlink.AttributeEncoder) error {
	return func(e *netlink.AttributeEncoder) error {
		e.Bytes(tunnelID, binary.BigEndian.AppendUint64(nil, uint64(t.ID)))
		if t.Remote.Is6() {
			e.Bytes(tunnelSource6, t.Local.AsSlice())
			e.Bytes(tunnelTo6, t.Remote.AsSlice())
			e.Flag(tunnelChecksum, true)
		} else {
			e.Bytes(tunnelSource4, t.Local.AsSlice())
			e.Bytes(tunnelTo4, t.Remote.AsSlice())
		}
		e.Uint8(tunnelTTL, tunnelHops)
		return nil
	}
}
