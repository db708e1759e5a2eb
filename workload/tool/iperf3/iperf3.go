// Package iperf3 knows the program iperf3: how to call it, and how to read the JSON that it writes (-J).
package iperf3

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

// Program is iperf3's name, on PATH and as a package.
const Program = "iperf3"

// The protocols that Parse takes.
const (
	TCP = "TCP"
	UDP = "UDP"
)

// Report is what one test of iperf3 measured. What it omits at its start (-O) is in no figure.
type Report struct {
	Version  string
	Started  time.Time // zero where it does not say
	Protocol string    // TCP or UDP
	Streams  int       // at once
	Message  unit.Bytes
	Rate     unit.BitsPerSecond // asked for, of each stream; 0 is as fast as it goes
	Reverse  bool               // the server sends
	MSS      uint32             // of TCP
	// Congestion is the congestion control that the sender really used; "" where it does not say.
	Congestion string
	// Duration is the time of the receiver's figures.
	Duration time.Duration
	// Bytes and Throughput are payload, as received.
	Bytes      int64
	Throughput unit.BitsPerSecond
	// Retransmits are of TCP, all streams together; RTT is the mean of their means, MinRTT the least.
	Retransmits uint64
	RTT, MinRTT time.Duration
	// Datagrams are those sent, of which Lost did not arrive and Reordered came late (UDP).
	Datagrams, Lost, Reordered int64
	Jitter                     time.Duration
	// CPU is the processor time of both ends for what is measured; 0 where it does not say.
	CPU       time.Duration
	Intervals []Interval
}

// Interval is one line of the series, of all streams together, as the sender saw it.
type Interval struct {
	At, Span time.Duration
	Bytes    int64
}

// ErrNothing is the error of a test that ended before it measured anything.
var ErrNothing = errors.New("iperf3 has measured nothing")

// Is says whether a text looks like what iperf3 -J writes.
func Is(text []byte) bool {
	head := string(text[:min(len(text), 64<<10)])
	return strings.HasPrefix(strings.TrimSpace(head), "{") && strings.Contains(head, `"start"`) &&
		(strings.Contains(head, `"iperf 3`) || strings.Contains(head, `"test_start"`))
}

// Parse reads what iperf3 -J has written. An error in its form has a place (tool.PlaceError); one that iperf3 itself reports is
// repeated.
func Parse(text []byte) (Report, error) {
	var doc document
	if err := tool.JSON(text, &doc); err != nil {
		return Report{}, err
	}
	if doc.Error != "" {
		return Report{}, fmt.Errorf("%w: %s", ErrNothing, doc.Error)
	}
	return doc.report()
}

// sum is a figure of iperf3.
type sum struct {
	Start       float64 `json:"start"`
	Seconds     float64 `json:"seconds"`
	Bytes       float64 `json:"bytes"`
	Rate        float64 `json:"bits_per_second"`
	Retransmits float64 `json:"retransmits"`
	Jitter      float64 `json:"jitter_ms"`
	Lost        float64 `json:"lost_packets"`
	Packets     float64 `json:"packets"`
	Reordered   float64 `json:"out_of_order"`
	MinRTT      float64 `json:"min_rtt"` // microseconds
	MeanRTT     float64 `json:"mean_rtt"`
	Omitted     bool    `json:"omitted"`
}

// document is the part of iperf3's JSON that is read. Counts are floats, for so its writer treats them.
type document struct {
	Error string `json:"error"`
	Start struct {
		Version   string `json:"version"`
		Timestamp struct {
			Seconds float64 `json:"timesecs"`
		} `json:"timestamp"`
		MSS  float64 `json:"tcp_mss_default"`
		Test struct {
			Protocol string  `json:"protocol"`
			Streams  int     `json:"num_streams"`
			Block    float64 `json:"blksize"`
			Reverse  int     `json:"reverse"`
			Omit     float64 `json:"omit"`
			Rate     float64 `json:"target_bitrate"`
		} `json:"test_start"`
	} `json:"start"`
	Intervals []struct {
		Sum sum `json:"sum"`
	} `json:"intervals"`
	End struct {
		Streams []struct {
			Sender sum `json:"sender"`
			UDP    sum `json:"udp"`
		} `json:"streams"`
		Sum      sum  `json:"sum"`
		Sent     sum  `json:"sum_sent"`
		Received sum  `json:"sum_received"`
		Back     *sum `json:"sum_sent_bidir_reverse"`
		CPU      struct {
			Client float64 `json:"host_total"` // percent of one processor
			Server float64 `json:"remote_total"`
		} `json:"cpu_utilization_percent"`
		Congestion string `json:"sender_tcp_congestion"`
	} `json:"end"`
}

// report is the document in its own terms.
func (d document) report() (Report, error) {
	test := d.Start.Test
	switch {
	case test.Protocol != TCP && test.Protocol != UDP:
		return Report{}, fmt.Errorf("iperf3 measured %.20q: only TCP and UDP are read", test.Protocol)
	case d.End.Back != nil:
		return Report{}, errors.New("iperf3 measured both directions at once (--bidir), which bound each other; measure one")
	case !(d.End.Sent.Seconds > 0) || d.Start.Test.Streams < 1:
		return Report{}, fmt.Errorf("%w: it has no sum at its end; was it interrupted?", ErrNothing)
	}
	r := Report{
		Version: strings.TrimPrefix(d.Start.Version, "iperf "), Protocol: test.Protocol, Streams: test.Streams,
		Message: unit.Bytes(test.Block), Rate: unit.BitsPerSecond(test.Rate), Reverse: test.Reverse != 0, MSS: uint32(d.Start.MSS), Congestion: d.End.Congestion,
	}
	if s := d.Start.Timestamp.Seconds; s > 0 && s < 1<<40 {
		r.Started = time.Unix(int64(s), 0).UTC()
	}
	if test.Protocol == UDP {
		d.datagrams(&r)
	} else {
		d.stream(&r)
	}
	r.CPU = tool.Duration((d.End.CPU.Client + d.End.CPU.Server) / 100 * r.Duration.Seconds())
	for _, i := range d.Intervals {
		if !i.Sum.Omitted && i.Sum.Seconds > 0 {
			r.Intervals = append(r.Intervals, Interval{
				At: tool.Duration(i.Sum.Start), Span: tool.Duration(i.Sum.Seconds), Bytes: int64(i.Sum.Bytes),
			})
		}
	}
	return r, r.validate()
}

// stream fills in what a test of TCP measured.
func (d document) stream(r *Report) {
	r.Duration, r.Bytes = tool.Duration(d.End.Received.Seconds), int64(d.End.Received.Bytes)
	r.Throughput = unit.BitsPerSecond(d.End.Received.Rate)
	r.Retransmits = uint64(d.End.Sent.Retransmits)
	least, total := 0.0, 0.0
	for i, s := range d.End.Streams {
		total += s.Sender.MeanRTT
		if i == 0 || s.Sender.MinRTT < least {
			least = s.Sender.MinRTT
		}
	}
	if n := len(d.End.Streams); n > 0 {
		r.RTT, r.MinRTT = tool.Duration(total/float64(n)/1e6), tool.Duration(least/1e6)
	}
}

// datagrams fills in what a test of UDP measured. Which side's bytes its sums hold has changed between versions; what was lost
// was always what the receiver missed.
func (d document) datagrams(r *Report) {
	s := d.End.Received
	if s.Seconds == 0 { // before 3.7
		s = d.End.Sum
	}
	r.Duration, r.Jitter = tool.Duration(s.Seconds), tool.Duration(s.Jitter/1e3)
	r.Datagrams, r.Lost = int64(max(d.End.Sent.Packets, s.Packets)), int64(s.Lost)
	if d.Start.Test.Omit > 0 && d.End.Received.Bytes > 0 && r.Message > 0 {
		// The receiver counts as lost (3.12) what was lost while it was to omit it, but not among its bytes.
		r.Lost = max(r.Datagrams-int64(d.End.Received.Bytes)/int64(r.Message), 0)
	}
	for _, s := range d.End.Streams {
		r.Reordered += int64(s.UDP.Reordered)
	}
	r.Bytes = (r.Datagrams - r.Lost) * int64(r.Message)
	if s.Seconds > 0 {
		r.Throughput = unit.BitsPerSecond(float64(r.Bytes) * 8 / s.Seconds)
	}
}

// validate refuses figures that nothing can have.
func (r Report) validate() error {
	switch {
	case r.Duration <= 0:
		return fmt.Errorf("%w: the receiver's figures are missing; was it interrupted?", ErrNothing)
	case r.Bytes < 0 || r.Throughput < 0 || r.Message < 1 || r.Rate < 0:
		return fmt.Errorf("iperf3 reports %d bytes, in blocks of %d, at %v: that can't be", r.Bytes, int64(r.Message), r.Throughput)
	case r.Datagrams < 0 || r.Lost < 0 || r.Lost > r.Datagrams || r.Reordered < 0:
		return fmt.Errorf("iperf3 reports %d of %d datagrams as lost, %d as reordered: that can't be", r.Lost, r.Datagrams, r.Reordered)
	}
	return nil
}

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
