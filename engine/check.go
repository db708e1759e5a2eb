package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"netdelta/result"
	"netdelta/unit"
)

// Limits are the ranges of a workload's parameters. A zero maximum says that the workload has no such parameter.
type Limits struct {
	Workload                   string
	MessageLeast, MessageMost  unit.Bytes
	ConnectionsMost            int
	RateLeast, RateMost        unit.BitsPerSecond
	RequestRateMost            float64
	CongestionControl, NoDelay bool
	// Search says that the highest rate can be searched for in place of sending at one.
	Search bool
	// Used are the keys of those parameters of real workloads that this one has: "file".
	Used []string
}

// busyPollMost is the longest busy poll that makes sense: beyond it a processor does nothing else.
const busyPollMost = time.Second

// Check returns an error that names the first parameter out of range, and the range. Zero values are in range: they take
// the default.
func (l Limits) Check(p result.Params) error {
	for _, check := range []func(result.Params) error{l.checkMessage, l.checkConnections, l.checkRates, l.checkSocket, l.checkUnused} {
		if err := check(p); err != nil {
			return fmt.Errorf("%s: %w", l.Workload, err)
		}
	}
	return nil
}

// checkUnused refuses what only other workloads have.
func (l Limits) checkUnused(p result.Params) error { return result.Unused(p, nil, l.Used...) }

func (l Limits) checkMessage(p result.Params) error {
	if p.Message != 0 && (p.Message < l.MessageLeast || p.Message > l.MessageMost) {
		return fmt.Errorf("message %d bytes is out of range: %d to %d bytes", int64(p.Message), int64(l.MessageLeast), int64(l.MessageMost))
	}
	return nil
}

func (l Limits) checkConnections(p result.Params) error {
	if p.Connections < 0 || p.Connections > l.ConnectionsMost {
		return fmt.Errorf("connections %d is out of range: 1 to %d", p.Connections, l.ConnectionsMost)
	}
	return nil
}

func (l Limits) checkRates(p result.Params) error {
	switch {
	case p.Search && !l.Search:
		return fmt.Errorf("rate: search is no parameter of this workload; leave it out")
	case p.Search && p.Rate != 0:
		return fmt.Errorf("rate %v and a search for the highest rate exclude each other; leave one out", p.Rate)
	case p.Rate != 0 && l.RateMost == 0:
		return fmt.Errorf("rate is no parameter of this workload; leave it out")
	case p.Rate != 0 && !(p.Rate >= l.RateLeast && p.Rate <= l.RateMost):
		return fmt.Errorf("rate %v is out of range: %v to %v", p.Rate, l.RateLeast, l.RateMost)
	case p.RequestRate != 0 && l.RequestRateMost == 0:
		return fmt.Errorf("request rate is no parameter of this workload; leave it out")
	case p.RequestRate != 0 && !(p.RequestRate >= requestRateLeast && p.RequestRate <= l.RequestRateMost):
		return fmt.Errorf("request rate %v is out of range: %v to %v transactions per second", p.RequestRate, requestRateLeast, l.RequestRateMost)
	}
	return nil
}

// requestRateLeast is one transaction in a hundred seconds.
const requestRateLeast = 0.01

func (l Limits) checkSocket(p result.Params) error {
	if places := []string{"", "same", "two", "any"}; !slices.Contains(places, p.CPU) {
		return fmt.Errorf("cpu %q is unknown: same, two or any", p.CPU)
	}
	if p.BusyPoll < 0 || p.BusyPoll > busyPollMost || p.BusyPoll%time.Microsecond != 0 {
		return fmt.Errorf("busy poll %v is out of range: 0 to %v, in whole microseconds", p.BusyPoll, busyPollMost)
	}
	switch {
	case p.CongestionControl != "" && !l.CongestionControl:
		return fmt.Errorf("congestion control is no parameter of this workload; leave it out")
	case len(p.CongestionControl) > 15 || strings.Trim(p.CongestionControl, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "":
		return fmt.Errorf("congestion control %q is no name of one: at most 15 letters, digits, _ and -", p.CongestionControl)
	case p.Nagle && !l.NoDelay:
		return fmt.Errorf("nagle is no parameter of this workload; leave it out")
	}
	return nil
}

// Fill gives zero values their defaults.
func Fill(p, defaults result.Params) result.Params {
	if p.Message == 0 {
		p.Message = defaults.Message
	}
	if p.Connections == 0 {
		p.Connections = defaults.Connections
	}
	if p.Rate == 0 && !p.Search {
		p.Rate = defaults.Rate
	}
	if p.RequestRate == 0 {
		p.RequestRate = defaults.RequestRate
	}
	if p.CPU == "" {
		p.CPU = defaults.CPU
	}
	if p.CongestionControl == "" {
		p.CongestionControl = defaults.CongestionControl
	}
	return p
}

// RequestRateMost is the highest open-loop rate: beyond it the clock's own cost counts.
const RequestRateMost = 1e6
