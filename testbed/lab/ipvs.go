package lab

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"netdelta/network"
	"netdelta/result"
)

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
