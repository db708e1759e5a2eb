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
		Name:     iperf3.Program,
		Programs: []workload.Program{{Name: iperf3.Program, Package: iperf3.Program}},
		Check: func(p result.Params) error {
			least, most := unit.Byte, iperf3Block
			if udp {
				least, most = iperf3Datagram, iperf3Largest
			}
			return errors.Join(within(p, least, most), only(p, iperf3Streams),
				Lacks(map[string]bool{"a search for the highest rate": p.Search, "busy poll": p.BusyPoll != 0, "request rate": p.RequestRate != 0}))
		},
		Server: func(_ result.Params, listen netip.AddrPort) daemon.Spec {
			return daemon.Spec{Path: iperf3.Program, Args: iperf3.ServerArgs(listen)}
		},
		Reached: network.TCP, // its control connection, on the same port
		Measure: func(ctx context.Context, c *Client, spec engine.BurstSpec) (engine.Burst, engine.More, error) {
			report, err := c.iperf3(ctx, iperf3.Test{
				Server: c.Server, UDP: udp, Streams: c.Params.Connections, Message: c.Params.Message,
				Rate:     c.Params.Rate / unit.BitsPerSecond(max(c.Params.Connections, 1)),
				Duration: spec.Duration, Omit: spec.Warmup, Congestion: c.Params.CongestionControl,
			})
			if err != nil {
				return engine.Burst{}, engine.More{}, err
			}
			b, more := streamed(report)
			return b, more, nil
		},
	}
}

// turnover is how long a server of iperf3 is given to be done with the test before.
const turnover = 50 * time.Millisecond

// iperf3 runs a test. A server that is still busy with the end of the last one is asked again.
func (c *Client) iperf3(ctx context.Context, t iperf3.Test) (report iperf3.Report, err error) {
	err = daemon.Until(ctx, nil, turnover, func(ctx context.Context) error {
		ran, failed := c.Execute(ctx, iperf3.Program, iperf3.ClientArgs(t))
		if ctx.Err() != nil {
			return daemon.FinalError{Err: failed}
		}
		report, err = iperf3.Parse(ran.Output)
		switch {
		case err == nil && failed == nil:
			return nil
		case err != nil && strings.Contains(err.Error(), "server is busy"):
			return err
		case err == nil || len(ran.Output) == 0 && failed != nil:
			err = failed
		}
		return daemon.FinalError{Err: fmt.Errorf("run iperf3: %w", err)}
	})
	return report, err
}

// streamed is the burst that a test of iperf3 was.
func streamed(r iperf3.Report) (engine.Burst, engine.More) {
	b := engine.Burst{
		Duration: r.Duration, Bytes: r.Bytes, Throughput: float64(r.Throughput), Sent: r.Datagrams, Lost: r.Lost, Reordered: r.Reordered,
		Transactions: r.Bytes / int64(r.Message), CPU: r.CPU, Moved: r.Bytes,
	}
	if r.Protocol == iperf3.UDP {
		b.Moved = r.Datagrams * int64(r.Message)
		return b, engine.More{}
	}
	return b, engine.More{Add: tcp(result.TCPInfo{
		Retransmits: r.Retransmits, RTT: r.RTT, MinRTT: r.MinRTT, MSS: r.MSS, CongestionControl: r.Congestion,
	})}
}
