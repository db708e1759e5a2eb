package testbed

import (
	"context"
	"fmt"

	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
)

// Observer is a testbed whose devices in nodes and pods can be observed, so that a trial can prove which way its packets went.
type Observer interface {
	Testbed
	// Plan is what the testbed was built from.
	Plan() network.Plan
	// Path lists the devices that a packet of the protocol crosses from one pod to another, nil for a pod of another testbed.
	Path(from, to Pod, protocol network.Protocol) []network.Hop
	// Counters reads the counters of all devices, including devices that the plan does not know.
	Counters(ctx context.Context) (map[network.Device]Counters, error)
	// Stacks reads what the IP stack of each namespace has counted.
	Stacks(ctx context.Context) (map[network.Space]Stack, error)
	// Tap samples the packets on all devices of the given namespaces from now on. The error is a *PermissionError where this
	// user may not, and an *UnsupportedError where the kernel can't.
	Tap(ctx context.Context, spaces []network.Space) (Tap, error)
	// Fit sends one UDP datagram, as an IP packet of the given size that must not be fragmented, from one pod to a port of
	// the other on which nothing listens. It returns a *TooLargeError where the sender's own kernel refuses the size; whether
	// the packet arrives is for a Tap to see.
	Fit(ctx context.Context, from, to Pod, size unit.Bytes) error
}

// ConfigWatch notices what changes in the configuration of a testbed. Close is idempotent.
type ConfigWatch interface {
	// End returns what changed since the watch began. Rounds are for the caller to fill in.
	End() ([]result.ConfigChange, error)
	Close() error
}

// Stack is what the IP stack of a namespace has counted since it was made, IPv4 and IPv6 together.
type Stack struct {
	FragmentsMade, Reassembled, FragmentationRefused uint64
}

// Tap is a sample of packets under way. Close is idempotent.
type Tap interface {
	// Packets returns the packets seen since the last call, in order within each namespace, and how many more were dropped for
	// lack of room.
	Packets() (seen []Packet, missed int, err error)
	Close() error
}

// Packet is one packet as a device saw it.
type Packet struct {
	Device   network.Device
	Outgoing bool
	// Length is the length of the whole frame, with its link header. Segment is the payload length of each segment if the frame
	// is still to be segmented (GSO), else zero.
	Length, Segment unit.Bytes
	// Head is the beginning of the frame, enough for all headers.
	Head []byte
	// Bare says that the device has no link header: the frame begins with an IP header.
	Bare bool
}

// TooLargeError says that a packet is larger than the path's MTU, as the sender's kernel knows it.
type TooLargeError struct{ Size, MTU unit.Bytes }

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("a packet of %d bytes is larger than the path's MTU of %d", int64(e.Size), int64(e.MTU))
}

// Counters are a device's counters since it was made.
type Counters struct {
	// Index is the device's number in its namespace: with another number it is another device of the same name.
	Index                          int
	SentPackets, SentBytes         uint64
	ReceivedPackets, ReceivedBytes uint64
	Dropped, Errors                uint64 // in both directions
}
