// Package netperf knows the program netperf: how to call it, and how to read what it prints: its classic tables, and the CSV and
// the KEY=value lines of its omni tests (-o, -k).
package netperf

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"netdelta/unit"
	"netdelta/workload/tool"
)

// The program's names: the client, the server, and the package that has both where there is one.
const (
	Program = "netperf"
	Server  = "netserver"
	Package = "netperf"
)

// The tests that are read.
const (
	TCPRR     = "TCP_RR"
	UDPRR     = "UDP_RR"
	TCPCRR    = "TCP_CRR"
	TCPStream = "TCP_STREAM"
	UDPStream = "UDP_STREAM"
)

// Report is what one test of netperf measured. What it does not print is 0. Latencies are nanoseconds; netperf counts the
// percentiles in whole microseconds.
type Report struct {
	Test     string // TCP_RR ...; "" where the output does not say, as without its banner (-P 0)
	Duration time.Duration
	// Request and Response are the sizes of a transaction, Message is the size of one send of a stream.
	Request, Response, Message unit.Bytes
	Rate                       float64            // transactions per second, of a test of transactions
	Throughput                 unit.BitsPerSecond // of payload as received, of a stream
	Sent, Received             int64              // datagrams (UDP_STREAM)
	Retransmits                uint64             // of the client's end
	Mean, Min, Max             float64
	P50, P90, P99              float64
	Congestion                 string // of the client's end
}

// ErrNothing is the error of an output without a result.
var ErrNothing = errors.New("netperf has measured nothing")

// Transactions says whether the test was one of requests and responses.
func (r Report) Transactions() bool { return r.Rate > 0 }

// validate refuses figures that nothing can have.
func (r Report) validate() error {
	for _, v := range []float64{r.Rate, float64(r.Throughput), r.Mean, r.Min, r.Max, r.P50, r.P90, r.P99, float64(r.Sent), float64(r.Received)} {
		if v < 0 {
			return fmt.Errorf("netperf reports a figure of %g: that can't be", v)
		}
	}
	if r.Rate == 0 && r.Throughput == 0 {
		return fmt.Errorf("%w: it gives neither a rate of transactions nor a throughput", ErrNothing)
	}
	return nil
}

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
