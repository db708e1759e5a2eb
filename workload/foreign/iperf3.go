package foreign

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool/iperf3"
)

// Limits of iperf3: MAX_STREAMS, MAX_BLOCKSIZE, and what a datagram holds of its own.
const (
	iperf3Streams  = 128
	iperf3Block    = unit.MiB
	iperf3Datagram = 32 * unit.Byte
	iperf3Largest  = 65507 * unit.Byte
)

// Iperf3 makes the load of tcp-stream, or of udp-stream, by iperf3.
func Iperf3(protocol network.Protocol) Engine {
	udp := protocol == network.UDP
	return Engine{
		name:     iperf3.Program,
		programs: []workload.Program{{Name: iperf3.Program, Package: iperf3.Program}},
		check: func(p result.Params) error {
			least, most := unit.Byte, iperf3Block
			if udp {
				least, most = iperf3Datagram, iperf3Largest
			}
			return errors.Join(within(p, least, most), only(p, iperf3Streams),
				lacks(parameter{"a search for the highest rate", p.Search}, parameter{"busy poll", p.BusyPoll != 0}, parameter{"request rate", p.RequestRate != 0}))
		},
		server: func(_ result.Params, listen netip.AddrPort) daemon.Spec {
			return daemon.Spec{Path: iperf3.Program, Args: iperf3.ServerArgs(listen)}
		},
		reached: network.TCP, // its control connection, on the same port
		measure: func(ctx context.Context, c *client, length, warmup time.Duration) (outcome, error) {
			report, err := c.iperf3(ctx, iperf3.Test{
				Server: c.to, UDP: udp, Streams: c.params.Connections, Message: c.params.Message, Rate: c.params.Rate / unit.BitsPerSecond(max(c.params.Connections, 1)),
				Duration: length, Omit: warmup, Congestion: c.params.CongestionControl,
			})
			if err != nil {
				return outcome{}, err
			}
			return streamed(report), nil
		},
	}
}

// turnover is how long a server of iperf3 is given to be done with the test before.
const turnover = 50 * time.Millisecond

// iperf3 runs a test. A server that is still busy with the end of the last one is asked again.
func (c *client) iperf3(ctx context.Context, t iperf3.Test) (iperf3.Report, error) {
	for {
		text, failed := c.run(ctx, iperf3.Program, iperf3.ClientArgs(t))
		if ctx.Err() != nil {
			return iperf3.Report{}, failed
		}
		report, err := iperf3.Parse(text)
		switch {
		case err == nil && failed == nil:
			return report, nil
		case err == nil:
			err = failed
		case strings.Contains(err.Error(), "server is busy"):
			select {
			case <-time.After(turnover):
				continue
			case <-ctx.Done():
			}
		case len(text) == 0 && failed != nil:
			err = failed
		}
		return report, fmt.Errorf("run iperf3: %w", err)
	}
}

// streamed is what a test of iperf3 comes to.
func streamed(r iperf3.Report) outcome {
	o := outcome{burst: engine.Burst{
		Duration: r.Duration, Bytes: r.Bytes, Throughput: float64(r.Throughput), Sent: r.Datagrams, Lost: r.Lost, Reordered: r.Reordered,
		Transactions: r.Bytes / int64(r.Message),
		CPU:          r.CPU, Moved: r.Bytes,
	}}
	if r.Protocol == iperf3.UDP {
		o.burst.Moved = r.Datagrams * int64(r.Message)
		return o
	}
	o.tcp = &result.TCPInfo{Retransmits: r.Retransmits, RTT: r.RTT, MinRTT: r.MinRTT, MSS: r.MSS, CongestionControl: r.Congestion}
	return o
}
