package lab

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/procfile"
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

// steer spreads the packets that the devices of a namespace receive over all processors, or has each stay where it came in.
// The switch for it is in sysfs alone, which shows the devices of the namespace that it was mounted in: it is mounted
// where no other process sees it, by a thread that ends with it.
func (b *builder) steer(op network.Steer) error {
	s, err := b.in(op.In)
	if err != nil {
		return err
	}
	mask := "0"
	all, err := position(op.To)
	if err != nil {
		return err
	}
	if all {
		cpus, err := procfile.OnlineCPUs()
		if err != nil {
			return err
		}
		if len(cpus) < 2 {
			return fmt.Errorf("there is one processor, and so nothing to spread packets over: %w", unix.EOPNOTSUPP)
		}
		mask = cpuMask(cpus)
	}
	return s.ns.DoOnce(func() error {
		if err := ownSysfs(); err != nil {
			return err
		}
		queues, err := filepath.Glob("/sys/class/net/*/queues/rx-*")
		if err != nil {
			return err
		}
		if len(queues) == 0 {
			return errors.New("no device has a queue of received packets")
		}
		for _, q := range queues {
			if err := os.WriteFile(q+"/rps_cpus", []byte(mask), 0); err != nil {
				return fmt.Errorf("set the processors of %s: %w", strings.TrimPrefix(q, "/sys/class/net/"), err)
			}
		}
		return nil
	})
}

// ownSysfs mounts the sysfs of the calling thread's network namespace over /sys, for this thread alone.
func ownSysfs() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to this thread: %w", err)
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount sysfs: %w", err)
	}
	return nil
}

// cpuMask writes a set of processors as the kernel reads it: words of 32 bits in hexadecimal digits, the last word first.
func cpuMask(cpus []int) string {
	var words []uint32
	for _, c := range cpus {
		for len(words) <= c/32 {
			words = append(words, 0)
		}
		words[c/32] |= 1 << (c % 32)
	}
	parts := make([]string, len(words))
	for i, w := range words {
		parts[len(words)-1-i] = fmt.Sprintf("%08x", w)
	}
	return strings.Join(parts, ",")
}
