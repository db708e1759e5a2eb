package tracing

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/experiment/endpoint"
	"netdelta/experiment/measure"
	"netdelta/internal/clock"
	"netdelta/internal/netns"
	"netdelta/probe/hops"
	"netdelta/result"
)

// stampedPort is how far from a pair's port the port of its stamped exchange is, within the range of the pod's servers.
const stampedPort = 500

// Stamp does what Trace does by the sockets' own time stamps, where packets can't be traced: it finds fewer hops, and needs no
// right but that to make namespaces.
func Stamp(ctx context.Context, c Config) ([]Cell, error) {
	return c.gather(func(random *rand.Rand) ([]Traced, error) {
		all := make([]Traced, len(c.Cells))
		for _, i := range random.Perm(len(all)) {
			var err error
			if all[i], err = c.stamped(ctx, c.Cells[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", c.Cells[i].ID, err)
			}
		}
		return all, nil
	})
}

// stamped builds a network and exchanges messages over it.
func (c Config) stamped(ctx context.Context, cell result.Cell) (t Traced, err error) {
	pair, err := measure.NewContext(c.Experiment.Config, c.Experiment.Run).OpenPair(ctx, cell)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, pair.Close()) }()
	port := pair.Listen + stampedPort
	spec := hops.StampedSpec{
		Protocol: pair.Protocol, Message: pair.Message(), CPU: -1,
		Listen: netip.AddrPortFrom(endpoint.AnyAddress(cell.Params.Family), port), Server: pair.Testbed.Endpoint(pair.Client, pair.Server, port),
	}
	spec.AtClient, spec.AtServer = pair.Inside(pair.Client), pair.Inside(pair.Server)
	if len(c.Experiment.Measuring) > 0 {
		spec.CPU = c.Experiment.Measuring[0]
	}
	var request, response []hops.Hop
	var all hops.Followed
	for range rounds {
		if _, err := pair.Exchange(warm); err != nil {
			return t, err
		}
		times, err := pair.Exchange(exchange)
		if err != nil {
			return t, err
		}
		t.Untraced = append(t.Untraced, floats(times.RoundTrip)...)
		there, back, followed, err := hops.Stamped(spec, exchange, pair.Client.Name(), pair.Server.Name())
		if err != nil {
			return t, err
		}
		request, response = there, back
		all.Request.Times = append(all.Request.Times, followed.Request.Times...)
		all.Response.Times = append(all.Response.Times, followed.Response.Times...)
		all.Otherwise += followed.Otherwise
		all.Request.Places, all.Response.Places = followed.Request.Places, followed.Response.Places
		spec.Listen, spec.Server = next(spec.Listen), next(spec.Server)
	}
	t.Stamped = true
	t.Request, t.Response, t.Otherwise = stretches(request), stretches(response), all.Otherwise
	for k, d := range all.Request.Durations(0) {
		t.Request[k].Times = d
	}
	for k, d := range all.Response.Durations(0) {
		t.Response[k].Times = d
	}
	for i, there := range all.Request.Times {
		back := all.Response.Times[i]
		t.Traced = append(t.Traced, float64(there[len(there)-1]-there[0]+back[len(back)-1]-back[0]))
	}
	return t, nil
}

// next is the address with the port after: a port that was just used may be in its last minute.
func next(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr(), a.Port()+1) }

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
		noted, err := tracer.Stop()
		if err := errors.Join(tripErr, err); err != nil {
			return 0, err
		}
		count := len(noted.Events) + noted.Lost
		if count == 0 {
			return 0, errors.New("no event was noted")
		}
		each := float64(count) / calibrationTrips
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
