// Package sockperf knows the program sockperf: how to call its ping-pong, and how to read what it prints and its log of all
// messages.
package sockperf

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"netdelta/internal/gather"
	"netdelta/unit"
	"netdelta/workload/tool"
)

// Program is sockperf's name, on PATH and as a package.
const Program = "sockperf"

// The protocols that sockperf tells.
const (
	TCP = "TCP"
	UDP = "UDP"
)

// Report is what one test of sockperf measured: what it printed, its full log, or both in one text. Times are of whole round
// trips, in nanoseconds, also where sockperf shows the half of them.
type Report struct {
	Version  string
	Protocol string     // TCP, UDP or "": the log does not say it
	Message  unit.Bytes // 0 where it does not say it: only the log does
	// Rate is what was asked for in messages per second (under-load); 0 is one after another, or not said.
	Rate float64
	// Duration is the length of the part that counts: without sockperf's own warm-up at the start, and its end.
	Duration                time.Duration
	Sent, Received, Dropped int64
	Mean, Min, Max          float64
	// Percentiles are those that it prints, the highest first.
	Percentiles []Percentile
	// Messages are all of the log, in the order of sending; none without it.
	Messages []Message
}

// Percentile is a point of the distribution.
type Percentile struct{ Percent, Value float64 }

// Message is a line of the log: when it was sent, in seconds of sockperf's clock, and its round trip in nanoseconds.
type Message struct{ At, RoundTrip float64 }

// ErrNothing is the error of a test that measured nothing.
var ErrNothing = errors.New("sockperf has measured nothing")

// ErrSilent is matched too where messages were sent and none came back.
var ErrSilent = errors.New("no message came back; is the server reached?")

// Percentile is the value of a percentile that was printed.
func (r Report) Percentile(percent float64) (value float64, known bool) {
	p, known := gather.First(r.Percentiles, func(p Percentile) bool { return p.Percent == percent })
	return p.Value, known
}

// validate refuses figures that nothing can have.
func (r Report) validate() error {
	switch {
	case r.Received == 0 && len(r.Messages) == 0:
		return fmt.Errorf("%w: %w", ErrNothing, ErrSilent)
	case r.Sent < 0 || r.Received < 0 || r.Dropped < 0 || r.Duration <= 0:
		return fmt.Errorf("sockperf reports %d messages sent and %d received in %v: that can't be", r.Sent, r.Received, r.Duration)
	}
	return nil
}

// Least is the smallest message that sockperf sends.
const Least = 14 * unit.Byte

// Test is a test to run.
type Test struct {
	Server   netip.AddrPort // of IPv4: sockperf knows IPv6 only since 3.8
	TCP      bool
	Message  unit.Bytes
	Nagle    bool          // leaves TCP_NODELAY off
	Duration time.Duration // whole seconds; sockperf leaves the first 400 ms and the last 50 out
	Log      string        // a file for the log of all messages; "" is none
}

// ServerArgs are the arguments of a server.
func ServerArgs(listen netip.AddrPort, tcp, nagle bool) []string {
	return append([]string{"server"}, ends(listen, tcp, nagle)...)
}

// ClientArgs are the arguments of a client that sends a message when the last one has come back.
func ClientArgs(t Test) []string {
	args := append([]string{"ping-pong", "--full-rtt"}, ends(t.Server, t.TCP, t.Nagle)...)
	args = append(args, "--time", tool.Seconds(t.Duration), "--msg-size", strconv.FormatInt(int64(t.Message), 10))
	if t.Log != "" {
		args = append(args, "--full-log", t.Log)
	}
	return args
}

// ends is what both sides are told.
func ends(at netip.AddrPort, tcp, nagle bool) []string {
	args := []string{"--ip", at.Addr().Unmap().String(), "--port", strconv.Itoa(int(at.Port()))}
	if tcp {
		args = append(args, "--tcp")
	}
	if nagle {
		args = append(args, "--tcp-avoid-nodelay")
	}
	return args
}
