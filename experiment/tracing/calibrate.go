package tracing

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/clock"
	"netdelta/internal/netns"
	"netdelta/probe/hops"
)

// The calibration's own exchange: datagrams to oneself, in a namespace made for the purpose.
const (
	calibrationPort   = 20000
	calibrationRounds = 16
	calibrationTrips  = 400
)

// Calibrate finds what noting an event takes, in nanoseconds: datagrams are sent over an unused loopback device, with
// and without the tracer in turn. Of each pair of turns it takes the difference of the lower quartiles, which others that
// want the processor reach last, over the number of events; of all pairs the median.
func Calibrate(level hops.Level) (float64, error) {
	var cost float64
	space, err := netns.New(loopbackUp)
	if err != nil {
		return 0, fmt.Errorf("calibrate the tracer: %w", err)
	}
	err = space.DoOnce(func() error {
		var err error
		cost, err = calibrate(level)
		return err
	})
	if err := errors.Join(err, space.Close()); err != nil {
		return 0, fmt.Errorf("calibrate the tracer: %w", err)
	}
	return cost, nil
}

func loopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

func calibrate(level hops.Level) (cost float64, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tracer, err := hops.Open(hops.Options{First: calibrationPort, Last: calibrationPort, Level: level})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, tracer.Close()) }()
	socket, err := toItself()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, unix.Close(socket)) }()
	var costs []float64
	for range calibrationRounds {
		without, err := trips(socket)
		if err != nil {
			return 0, err
		}
		if err := tracer.Start(); err != nil {
			return 0, err
		}
		with, tripErr := trips(socket)
		events, lost, err := tracer.Stop()
		if err := errors.Join(tripErr, err); err != nil {
			return 0, err
		}
		if len(events)+lost == 0 {
			return 0, errors.New("no event was noted")
		}
		each := float64(len(events)+lost) / calibrationTrips
		costs = append(costs, (lowerQuartile(with)-lowerQuartile(without))/each)
	}
	slices.Sort(costs)
	return max(0, costs[len(costs)/2]), nil
}

// toItself is a socket that is connected to its own address.
func toItself() (int, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open a socket: %w", err)
	}
	own := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: calibrationPort}
	patience := unix.Timeval{Sec: 5}
	if err := errors.Join(
		unix.Bind(socket, own), unix.Connect(socket, own), unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience),
	); err != nil {
		return -1, errors.Join(fmt.Errorf("connect a socket to itself: %w", err), unix.Close(socket))
	}
	return socket, nil
}

// trips sends datagrams from a socket to itself and gives their times.
func trips(socket int) ([]int64, error) {
	payload, buffer := make([]byte, 64), make([]byte, 128)
	kernel := clock.Kernel()
	times := make([]int64, calibrationTrips)
	for i := range times {
		began := kernel.Ticks()
		if _, err := unix.Write(socket, payload); err != nil {
			return nil, fmt.Errorf("send a datagram: %w", err)
		}
		if _, err := unix.Read(socket, buffer); err != nil {
			return nil, fmt.Errorf("receive a datagram: %w", err)
		}
		times[i] = kernel.Ticks() - began
	}
	return times, nil
}

func lowerQuartile(times []int64) float64 {
	slices.Sort(times)
	return float64(times[len(times)/4])
}
