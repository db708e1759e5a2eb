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

// Numbers of the kernel's load balancer (linux/ip_vs.h).
const (
	ipvsFamily     = "IPVS"
	ipvsVersion    = 1
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

// balancer speaks to the load balancer of one namespace.
type balancer struct {
	c      *genetlink.Conn
	family genetlink.Family
}

// openBalancer connects to the load balancer of the namespace of the file descriptor. A kernel without it gives unix.ENOENT.
func openBalancer(fd int) (*balancer, error) {
	c, err := genetlink.Dial(&netlink.Config{NetNS: fd})
	if err != nil {
		return nil, fmt.Errorf("open generic netlink: %w", err)
	}
	family, err := c.GetFamily(ipvsFamily)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("find the load balancer: %w", err), c.Close())
	}
	return &balancer{c: c, family: family}, nil
}

func (b *balancer) do(command uint8, attributes []byte) error {
	_, err := b.c.Execute(genetlink.Message{
		Header: genetlink.Header{Command: command, Version: ipvsVersion}, Data: attributes,
	}, b.family.ID, netlink.Request|netlink.Acknowledge)
	return err
}

// addIPVS makes services in the namespace of the file descriptor.
func addIPVS(fd int, op network.IPVS) (err error) {
	b, err := openBalancer(fd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.c.Close()) }()
	for _, v := range op.Services {
		for _, protocol := range []network.Protocol{network.TCP, network.UDP} {
			if err := b.add(v, protocol, op.Family); err != nil {
				return fmt.Errorf("add service %s: %w", v, err)
			}
		}
	}
	return nil
}

// deleteIPVS removes all services from the namespace of the file descriptor.
func deleteIPVS(fd int) error {
	b, err := openBalancer(fd)
	if err != nil {
		return err
	}
	return errors.Join(b.do(ipvsFlush, nil), b.c.Close())
}

// add makes one service with its server.
func (b *balancer) add(v network.VirtualAddress, protocol network.Protocol, family result.Family) error {
	service, err := encode(func(e *netlink.AttributeEncoder) {
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
	if err := b.do(ipvsNewService, service); err != nil {
		return err
	}
	server, err := encode(func(e *netlink.AttributeEncoder) {
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
	if err != nil {
		return err
	}
	return b.do(ipvsNewDest, server)
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

func encode(attributes func(e *netlink.AttributeEncoder)) ([]byte, error) {
	e := netlink.NewAttributeEncoder()
	attributes(e)
	b, err := e.Encode()
	if err != nil {
		return nil, fmt.Errorf("encode a message: %w", err)
	}
	return b, nil
}
