package engine

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"netdelta/result"
	"netdelta/unit"
)

// Kind is what a loop does.
type Kind int32

// The kinds of loop.
const (
	// StreamRR exchanges requests and responses on TCP connections.
	StreamRR Kind = iota + 1
	// DatagramRR exchanges requests and responses as UDP datagrams.
	DatagramRR
	// ConnectRR opens a TCP connection for each request and response.
	ConnectRR
	// StreamOut sends on TCP connections as fast as they take it.
	StreamOut
	// DatagramOut sends UDP datagrams at a given rate.
	DatagramOut
	// HTTPGet asks a server of HTTP for the same file again and again.
	HTTPGet
)

// datagrams says whether the kind is carried by UDP.
func (k Kind) datagrams() bool { return k == DatagramRR || k == DatagramOut }

// latencies says whether the kind measures latencies.
func (k Kind) latencies() bool {
	return k == StreamRR || k == DatagramRR || k == ConnectRR || k == HTTPGet
}

// opens says whether the loop of a client opens a connection for each transaction by itself.
func (cfg *Config) opens() bool {
	return cfg.Kind == ConnectRR || cfg.Kind == HTTPGet && cfg.Params.Reconnect
}

// Config is one end of a workload.
type Config struct {
	// Workload is the name that errors begin with.
	Workload string
	Kind     Kind
	// Params have been checked, and their defaults filled in.
	Params result.Params
	// Local is where a server listens, or the address and first port that a client uses; port 0 of a client is any.
	Local netip.AddrPort
	// Remote is the server that a client talks to.
	Remote netip.AddrPort
	// Request is what an HTTPGet client sends: it asks for a file of Params.File bytes.
	Request string
	// CPU is the processor that the loop is pinned to; negative is none.
	CPU int
}

// ConnectPorts is how many consecutive source ports a ConnectRR client uses in turn, so that a port is not used again
// before the closing of its last connection has crossed the network.
const ConnectPorts = 64

// Limits are the ranges of a workload's parameters. A zero maximum says that the workload has no such parameter.
type Limits struct {
	Workload                             string
	MessageLeast, MessageMost            unit.Bytes
	ConnectionsMost                      int
	RateLeast, RateMost                  unit.BitsPerSecond
	RequestRateMost                      float64
	CongestionControl, NoDelay, BusyPoll bool
	// Search says that the highest rate can be searched for in place of sending at one.
	Search bool
	// Own are the parameters that the workload declares itself, Used the keys of the parameters of real workloads that it has: "file".
	Own  []result.Parameter
	Used []string
}

// busyPollMost is the longest busy poll that makes sense: beyond it a processor does nothing else.
const busyPollMost = time.Second

// requestRateLeast is one transaction in a hundred seconds.
const requestRateLeast = 0.01

// Check returns an error that names the first parameter out of range, and the range. Zero values are in range: they take
// the default.
func (l Limits) Check(p result.Params) error {
	if err := cmp.Or(l.checkAbsent(p), l.checkRanges(p), result.Unused(p, l.Own, l.Used...)); err != nil {
		return fmt.Errorf("%s: %w", l.Workload, err)
	}
	return nil
}

// checkAbsent refuses parameters that only other workloads have.
func (l Limits) checkAbsent(p result.Params) error {
	for _, parameter := range []struct {
		name     string
		set, has bool
	}{
		{"message", p.Message != 0, l.MessageMost > 0},
		{"connections", p.Connections != 0, l.ConnectionsMost > 0},
		{"rate: search", p.Search, l.Search},
		{"rate", p.Rate != 0, l.RateMost > 0},
		{"request rate", p.RequestRate != 0, l.RequestRateMost > 0},
		{"busy poll", p.BusyPoll != 0, l.BusyPoll},
		{"congestion control", p.CongestionControl != "", l.CongestionControl},
		{"nagle", p.Nagle, l.NoDelay},
	} {
		if parameter.set && !parameter.has {
			return fmt.Errorf("%s is no parameter of this workload; leave it out", parameter.name)
		}
	}
	return nil
}

func (l Limits) checkRanges(p result.Params) error {
	switch {
	case p.Message != 0 && (p.Message < l.MessageLeast || p.Message > l.MessageMost):
		return fmt.Errorf("message %d bytes is out of range: %d to %d bytes", int64(p.Message), int64(l.MessageLeast), int64(l.MessageMost))
	case p.Connections < 0 || p.Connections > l.ConnectionsMost:
		return fmt.Errorf("connections %d is out of range: 1 to %d", p.Connections, l.ConnectionsMost)
	case p.Search && p.Rate != 0:
		return fmt.Errorf("rate %v and a search for the highest rate exclude each other; leave one out", p.Rate)
	case p.Rate != 0 && !(p.Rate >= l.RateLeast && p.Rate <= l.RateMost):
		return fmt.Errorf("rate %v is out of range: %v to %v", p.Rate, l.RateLeast, l.RateMost)
	case p.RequestRate != 0 && !(p.RequestRate >= requestRateLeast && p.RequestRate <= l.RequestRateMost):
		return fmt.Errorf("request rate %v is out of range: %v to %v transactions per second", p.RequestRate, requestRateLeast, l.RequestRateMost)
	case !slices.Contains([]string{"", "same", "two", "any"}, p.CPU):
		return fmt.Errorf("cpu %q is unknown: same, two or any", p.CPU)
	case p.BusyPoll < 0 || p.BusyPoll > busyPollMost || p.BusyPoll%time.Microsecond != 0:
		return fmt.Errorf("busy poll %v is out of range: 0 to %v, in whole microseconds", p.BusyPoll, busyPollMost)
	case len(p.CongestionControl) > 15 || strings.Trim(p.CongestionControl, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "":
		return fmt.Errorf("congestion control %q is no name of one: at most 15 letters, digits, _ and -", p.CongestionControl)
	}
	return nil
}

// Fill gives zero values their defaults.
func Fill(p, defaults result.Params) result.Params {
	p.Message = cmp.Or(p.Message, defaults.Message)
	p.Connections = cmp.Or(p.Connections, defaults.Connections)
	if !p.Search {
		p.Rate = cmp.Or(p.Rate, defaults.Rate)
	}
	p.RequestRate = cmp.Or(p.RequestRate, defaults.RequestRate)
	p.CPU = cmp.Or(p.CPU, defaults.CPU)
	p.CongestionControl = cmp.Or(p.CongestionControl, defaults.CongestionControl)
	return p
}

// RequestRateMost is the highest open-loop rate: beyond it the clock's own cost counts.
const RequestRateMost = 1e6
