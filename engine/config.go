package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"netdelta/internal/native"
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

// hangError says that a burst did not end in time. It matches context.DeadlineExceeded.
type hangError struct {
	after    time.Duration
	deadline bool
	step     step
	cause    error
}

func (e *hangError) Error() string {
	if !e.deadline {
		return fmt.Sprintf("burst interrupted: %v", e.cause)
	}
	doing := e.step
	if doing == stepPeerClosed || doing == stepShort {
		doing = stepReceive // it was woken by the shutdown of its own side
	}
	return fmt.Sprintf("burst not over after %v: %v; look whether the server still runs and the path to it is up", e.after, doing)
}

func (e *hangError) Unwrap() error {
	if e.deadline {
		return context.DeadlineExceeded
	}
	return e.cause
}

// brokenError says at which step a burst broke.
type brokenError struct {
	step        step
	errno       native.Errno
	transaction int64
	status      int32 // of HTTP
	failures    int64 // in a row, of HTTP
}

func (e *brokenError) Error() string {
	text := fmt.Sprintf("transaction %d: %v", e.transaction, e.step)
	if e.step == stepStatus {
		text += fmt.Sprintf(" %d", e.status)
	}
	if e.errno != 0 {
		text += fmt.Sprintf(": %v", e.errno)
	}
	if e.failures > 1 {
		text += fmt.Sprintf("; %d requests in a row have failed", e.failures)
	}
	return text
}

func (e *brokenError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}

// explain adds whose error it is, and what to do about some.
func (c *client) explain(err error) error {
	fix := ""
	switch {
	case errors.Is(err, native.MessageTooLong):
		fix = "; the message is larger than a datagram may be on this path"
	case errors.Is(err, native.AddressNotAvailable):
		fix = "; the source ports are still held by earlier connections"
	}
	return fmt.Errorf("%s to %v: %w%s", c.cfg.Workload, c.cfg.Remote, err, fix)
}

// step is what a loop was doing when it broke or hung.
type step int32

const (
	stepNone step = iota
	stepSocket
	stepBind
	stepConnect
	stepSend
	stepReceive
	stepPeerClosed
	stepEnd
	stepReport
	stepPoll
	stepStopped
	stepShort
	stepHead
	stepStatus
	stepLength
)

// String says what was being done, as part of an error message.
func (s step) String() string {
	return [...]string{
		stepNone:       "idle",
		stepSocket:     "opening a socket",
		stepBind:       "binding the source port",
		stepConnect:    "connecting",
		stepSend:       "sending",
		stepReceive:    "waiting for the response",
		stepPeerClosed: "the server closed the connection",
		stepEnd:        "waiting for the end of the connection",
		stepReport:     "waiting for the receiver's report",
		stepPoll:       "waiting for a connection to become ready",
		stepShort:      "the server closed the connection within its response",
		stepHead:       "the response is not HTTP/1 with the length of its body in its head",
		stepStatus:     "the server answered with status",
		stepLength:     "the response is not as long as the file that was asked for",
		stepStopped:    "given up",
	}[s]
}

const (
	// webBuffer is what a client of HTTP reads at once: enough that large files cost few system calls, and within a
	// processor's second-level cache.
	webBuffer = 128 << 10
	// maxFailures is how many requests may fail in a row, for each connection, before a burst is given up.
	maxFailures = 100
	// fileWarmed is the largest file that is fetched several times over to warm connections up.
	fileWarmed = unit.MiB
)

// webWarmup is how many requests warm a client's connections up.
func webWarmup(cfg *Config) int64 {
	const few = 16
	switch {
	case cfg.Params.File > fileWarmed:
		return 1
	case cfg.opens():
		return few // no connection stays
	}
	return max(few, 2*int64(cfg.connections()))
}

// webArena is what a loop that speaks HTTP needs in addition to what all need.
func webArena(conns int) uintptr { return native.Reserved(uintptr(conns) * headRoom) }

// prepareWeb tells a loop what to ask for, and what to expect.
func (c *control) prepareWeb(cfg *Config, arena *native.Arena) {
	w := &c.web
	w.heads = (*[MaxConnections][headRoom]byte)(arena.Take(uintptr(c.conns) * headRoom))
	w.request = uintptr(copy(unsafe.Slice((*byte)(c.out), webBuffer), cfg.Request))
	w.room = webBuffer
	w.body = uintptr(cfg.Params.File)
	w.digits = int32(copy(w.length[:], strconv.FormatInt(int64(cfg.Params.File), 10)))
	w.reconnect = cfg.Params.Reconnect
	w.patience = maxFailures * int64(c.conns)
	for i := range c.conns {
		c.connection[i].fd = -1
	}
	if c.ports > 1 {
		// In addition to the ports of the first connections, which stay in use: for connections that take the place of broken ones.
		if c.ports += uint32(c.conns); !w.reconnect {
			c.port = uint32(c.conns)
		}
	}
}
