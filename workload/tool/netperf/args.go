package netperf

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"netdelta/unit"
	"netdelta/workload/tool"
)

// Test is a test to run.
type Test struct {
	Name     string // TCPRR ...
	Server   netip.AddrPort
	Data     uint16 // the server's port for what is measured; Server has the port of the control connection
	Duration time.Duration
	Message  unit.Bytes // of a request and of its response, or of one send
	// Congestion is the congestion control of TCP; "" takes the system's.
	Congestion string
	NoDelay    bool
}

// ServerArgs are the arguments of a server of many tests, one after another, which stays in the foreground.
func ServerArgs(control netip.AddrPort) []string {
	return []string{"-D", "-p", strconv.Itoa(int(control.Port())), "-L", control.Addr().Unmap().String() + "," + family(control.Addr())}
}

// ClientArgs are the arguments of a client, which writes what Parse reads.
func ClientArgs(t Test) []string {
	length := tool.Seconds(t.Duration)
	size := strconv.FormatInt(int64(t.Message), 10)
	args := []string{
		"-H", t.Server.Addr().Unmap().String() + "," + family(t.Server.Addr()), "-p", strconv.Itoa(int(t.Server.Port())),
		"-t", t.Name, "-l", length, "-j", // keeps the statistics of latencies
		"--", "-k", strings.Join(selectors(), ","), "-P", "," + strconv.Itoa(int(t.Data)),
	}
	if t.Name == TCPStream || t.Name == UDPStream {
		args = append(args, "-m", size)
	} else {
		args = append(args, "-r", size+","+size)
	}
	if t.NoDelay {
		args = append(args, "-D")
	}
	if t.Congestion != "" {
		args = append(args, "-K", t.Congestion+","+t.Congestion)
	}
	return args
}

// family is the version of IP of an address, as netperf names it.
func family(a netip.Addr) string {
	if a.Unmap().Is6() {
		return "6"
	}
	return "4"
}

// selectors are the figures that the client is asked for.
func selectors() []string {
	return []string{
		"ELAPSED_TIME", "THROUGHPUT", "THROUGHPUT_UNITS", "REQUEST_SIZE", "RESPONSE_SIZE", "LOCAL_SEND_SIZE", "MIN_LATENCY", "MEAN_LATENCY", "MAX_LATENCY",
		"P50_LATENCY", "P90_LATENCY", "P99_LATENCY", "LOCAL_TRANSPORT_RETRANS", "LOCAL_CONG_CONTROL",
	}
}
