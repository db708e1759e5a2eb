// Package netperf knows the program netperf: how to call it, and how to read what it prints: its classic tables, and the CSV and
// the KEY=value lines of its omni tests (-o, -k).
package netperf

import (
	"errors"
	"fmt"
	"time"

	"netdelta/unit"
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
