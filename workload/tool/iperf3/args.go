package iperf3

import (
	"net/netip"
	"strconv"
	"time"

	"netdelta/unit"
	"netdelta/workload/tool"
)

// Test is a test to run.
type Test struct {
	Server   netip.AddrPort
	UDP      bool
	Streams  int                // 0 is one
	Message  unit.Bytes         // of one write, or of a datagram
	Rate     unit.BitsPerSecond // of each stream of datagrams
	Duration time.Duration      // whole seconds
	Omit     time.Duration      // whole seconds at the start that are not measured
	// Congestion is the congestion control of TCP; "" takes the system's.
	Congestion string
}

// ServerArgs are the arguments of a server of many tests, one after another.
func ServerArgs(listen netip.AddrPort) []string {
	args := []string{"--server", "--port", strconv.Itoa(int(listen.Port())), version(listen.Addr())}
	if !listen.Addr().IsUnspecified() {
		args = append(args, "--bind", listen.Addr().String())
	}
	return args
}

// ClientArgs are the arguments of a client, which writes what Parse reads.
func ClientArgs(t Test) []string {
	args := []string{
		"--client", t.Server.Addr().String(), "--port", strconv.Itoa(int(t.Server.Port())), version(t.Server.Addr()), "--json",
		"--time", tool.Seconds(t.Duration), "--omit", tool.Seconds(t.Omit),
		"--parallel", strconv.Itoa(max(t.Streams, 1)), "--length", strconv.FormatInt(int64(t.Message), 10),
		"--connect-timeout", "3000", // milliseconds
	}
	if t.UDP {
		return append(args, "--udp", "--bitrate", strconv.FormatFloat(float64(t.Rate), 'f', 0, 64), "--udp-counters-64bit")
	}
	if t.Congestion != "" {
		args = append(args, "--congestion", t.Congestion)
	}
	return args
}

// version asks for the version of IP of an address.
func version(a netip.Addr) string {
	if a.Unmap().Is6() {
		return "-6"
	}
	return "-4"
}
