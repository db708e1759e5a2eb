package tracing

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"netdelta/internal/netns"
	"netdelta/probe/hops"
)

// The calibration's own exchange: datagrams to oneself, in a namespace made for the purpose.
const (
	calibrationPort   = 20000
	calibrationRounds = 8
	calibrationTrips  = 400
)

// Calibrate finds what noting an event takes, in nanoseconds: datagrams are sent over a loopback device that is nobody's, with
// and without the tracer in turn. It is the difference of the medians over the number of events.
func Calibrate(level hops.Level) (float64, error) {
	var cost float64
	space, err := netns.New(nil)
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

func calibrate(level hops.Level) (cost float64, err error) {
	tracer, err := hops.Open(hops.Options{First: calibrationPort, Last: calibrationPort, Level: level})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, tracer.Close()) }()
	server, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: calibrationPort})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	var with, without []float64
	events := 0
	for range calibrationRounds {
		plain, err := trips(server)
		if err != nil {
			return 0, err
		}
		without = append(without, plain...)
		if err := tracer.Start(); err != nil {
			return 0, err
		}
		traced, tripErr := trips(server)
		seen, lost, err := tracer.Stop()
		if err := errors.Join(tripErr, err); err != nil {
			return 0, err
		}
		with = append(with, traced...)
		events += len(seen) + lost
	}
	if events == 0 {
		return 0, errors.New("no event was noted")
	}
	each := float64(events) / float64(len(with))
	return max(0, median(with)-median(without)) / each, nil
}

// trips sends datagrams from a socket to itself.
func trips(socket *net.UDPConn) ([]float64, error) {
	to := socket.LocalAddr().(*net.UDPAddr).AddrPort() //nolint:forcetypeassert // what else it could be
	payload, buffer := make([]byte, 64), make([]byte, 128)
	if err := socket.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return nil, err
	}
	var times []float64
	for range calibrationTrips {
		began := time.Now()
		if _, err := socket.WriteToUDPAddrPort(payload, to); err != nil {
			return nil, err
		}
		if _, err := socket.Read(buffer); err != nil {
			return nil, err
		}
		times = append(times, float64(time.Since(began)))
	}
	return times, nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
