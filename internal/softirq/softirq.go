// Package softirq finds out where a kernel books the time of soft interrupts.
package softirq

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/native"
	"netdelta/internal/netns"
)

// Accounting says where a kernel books the time of soft interrupts.
type Accounting string

// The ways of accounting.
const (
	// Threads: to the thread that they interrupt, as part of what it used.
	Threads Accounting = "threads"
	// Separate: to no thread.
	Separate Accounting = "apart"
	// Unknown: the machine was too busy to find out.
	Unknown Accounting = "unknown"
)

// Find finds out by trying: a thread pinned to a processor sends packets to itself over loopback, so that a good
// part of its time goes by in soft interrupts, and holds its own clock against the wall's. It also holds the clocks
// against each other while it does nothing but count, so that a machine that takes time away by other means is not taken for
// an answer. It takes some 10 ms, in a network namespace of its own where this process may make one.
func Find(cpu int) (Accounting, error) {
	space, err := netns.New(raiseLoopback)
	if errors.Is(err, unix.EPERM) {
		space, err = netns.Own()
	}
	if err != nil {
		return Unknown, fmt.Errorf("finding out how soft interrupts are accounted for: %w", err)
	}
	found := Unknown
	err = space.DoOnce(func() error {
		if err := native.Pin(cpu); err != nil {
			return err
		}
		var err error
		found, err = try()
		return err
	})
	if err = errors.Join(err, space.Close()); err != nil {
		return Unknown, fmt.Errorf("finding out how soft interrupts are accounted for: %w", err)
	}
	return found, nil
}

func raiseLoopback() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding loopback: %w", err)
	}
	return netlink.LinkSetUp(lo)
}

const (
	// window is how long the clocks are held against each other at a time: short, so that some go by undisturbed.
	window = 400 * time.Microsecond
	// enough undisturbed windows of each sort give an answer; attempts of each sort are made at most.
	enough   = 8
	attempts = 64
	// A thread's clock that runs at this share of the wall's or above counts everything; at the lower share, it leaves
	// something out. Loopback packets spend about a third of their time in soft interrupts.
	whole  = 0.96
	partly = 0.90
)

// shares are how much of each undisturbed window the thread's own clock has counted.
type shares struct{ counting, sending []float64 }

// decide: the best windows count, since whatever disturbs takes time away and never adds it.
func (s shares) decide() Accounting {
	if len(s.counting) < enough || len(s.sending) < enough {
		return Unknown
	}
	counting, sending := best(s.counting), best(s.sending)
	switch {
	case counting < whole:
		return Unknown
	case sending >= whole*counting:
		return Threads
	case sending <= partly*counting:
		return Separate
	}
	return Unknown
}

func best(values []float64) float64 {
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	return most
}

// try takes windows of both sorts in turn.
func try() (Accounting, error) {
	fd, err := mirror()
	if err != nil {
		return Unknown, err
	}
	defer func() { _ = unix.Close(fd) }()
	var s shares
	for n := 0; n < attempts && (len(s.counting) < enough || len(s.sending) < enough); n++ {
		if share, ok := compare(func() bool { return true }); ok {
			s.counting = append(s.counting, share)
		}
		if share, ok := compare(func() bool { return reflect(fd) }); ok {
			s.sending = append(s.sending, share)
		}
	}
	return s.decide(), nil
}

// mirror is a UDP socket that is connected to itself.
func mirror() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("opening a socket: %w", err)
	}
	err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	var own unix.Sockaddr
	if err == nil {
		own, err = unix.Getsockname(fd)
	}
	if err == nil {
		err = unix.Connect(fd, own)
	}
	if err != nil {
		return -1, errors.Join(fmt.Errorf("connecting a socket to itself over loopback: %w", err), unix.Close(fd))
	}
	return fd, nil
}

// reflect sends a packet and takes it back. It fails when the packet is not there at once: its soft interrupt was then not
// served in the name of this thread, and the window says nothing.
func reflect(fd int) bool {
	var packet [64]byte
	_, sendErr := native.Send(int32(fd), unsafe.Pointer(&packet), unsafe.Sizeof(packet), 0)
	_, receiveErr := native.Receive(int32(fd), unsafe.Pointer(&packet), unsafe.Sizeof(packet), unix.MSG_DONTWAIT)
	return sendErr == 0 && receiveErr == 0
}

// compare repeats step for a window, and gives the share of it that this thread's clock has counted. A window in which
// another thread ran, or a step failed, is not ok.
func compare(step func() bool) (share float64, ok bool) {
	switches := contextSwitches()
	began := time.Now()
	before := native.ThreadCPU()
	ok = true
	for time.Since(began) < window {
		ok = step() && ok
	}
	used := native.ThreadCPU() - before
	took := time.Since(began)
	return float64(used) / float64(took), ok && contextSwitches() == switches
}

// contextSwitches counts this thread's, forced or not.
func contextSwitches() int64 {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &usage); err != nil {
		return -1 // the same each time: then only the best window tells
	}
	return usage.Nvcsw + usage.Nivcsw
}
