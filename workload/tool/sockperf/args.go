package sockperf

import (
	"net/netip"
	"strconv"
	"time"

	"netdelta/unit"
	"netdelta/workload/tool"
)

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
