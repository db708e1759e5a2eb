package lab

import (
	"fmt"
	"math"
	"time"

	"github.com/vishvananda/netlink"

	"netdelta/network"
)

// Handles of the queueing disciplines of a device: what limits its rate is the root, or the child of what impairs it.
const (
	shapeHandle  = 1
	impairHandle = 2
)

// The token bucket holds what passes in bucketTime, at least bucketLeast, which is one segment as large as offloads make
// it; what has to wait may wait queueTime.
const (
	bucketTime  = 0.001 // seconds
	bucketLeast = 68 << 10
	queueTime   = 0.020 // seconds
)

// shape limits what a device sends, by a token bucket.
func (b *builder) shape(op network.Shape) error {
	s, i, err := b.device(op.Device)
	if err != nil {
		return err
	}
	rate := float64(op.Rate) / 8
	bucket := max(rate*bucketTime, bucketLeast)
	queue := bucket + rate*queueTime
	// The bucket's size is handed over as the time that it takes to send it, in the kernel's ticks.
	ticks := bucket / rate * 1e6 * netlink.TickInUsec()
	if ticks > math.MaxUint32 || queue > math.MaxUint32 {
		return fmt.Errorf("a rate of %d bit/s is out of the range of the tbf queueing discipline", int64(op.Rate))
	}
	parent := uint32(netlink.HANDLE_ROOT)
	if op.Impaired {
		parent = netlink.MakeHandle(impairHandle, 1)
	}
	return s.nl.QdiscAdd(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: i, Handle: netlink.MakeHandle(shapeHandle, 0), Parent: parent},
		Rate:       uint64(rate), Limit: uint32(queue), Buffer: uint32(ticks),
	})
}

// heldUp is how many packets may be under way on an impaired link: more than all senders together have in flight, so that no
// packet is lost but those that are meant to be.
const heldUp = 1 << 20

// impair delays and loses what a device sends.
func (b *builder) impair(op network.Impair) error {
	s, i, err := b.device(op.Device)
	if err != nil {
		return err
	}
	ticks := float64(op.Delay) / float64(time.Microsecond) * netlink.TickInUsec()
	if ticks > math.MaxUint32 {
		return fmt.Errorf("a delay of %s is out of the range of the netem queueing discipline", op.Delay)
	}
	return s.nl.QdiscAdd(&netlink.Netem{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: i, Handle: netlink.MakeHandle(impairHandle, 0), Parent: netlink.HANDLE_ROOT},
		Latency:    uint32(ticks), Limit: heldUp, Loss: uint32(math.Round(op.Loss * math.MaxUint32)),
	})
}
