package foreign

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool/netperf"
)

// dataAside is how far the port of netperf's measured connection lies from that of its control connection: both are among the
// thousand of the server's pod.
const dataAside = 500

// dataPort is the server's port for what is measured.
func dataPort(control uint16) uint16 {
	if control%(2*dataAside) >= dataAside {
		return control - dataAside
	}
	return control + dataAside
}

// Netperf makes the load of tcp-rr, udp-rr or tcp-stream by the test of netperf that has its name.
func Netperf(test string) Engine {
	most := unit.MiB
	if test == netperf.UDPRR {
		most = 65507 * unit.Byte
	}
	return Engine{
		Name:     netperf.Program,
		Programs: []workload.Program{{Name: netperf.Program, Package: netperf.Package}, {Name: netperf.Server, Package: netperf.Package}},
		Check: func(p result.Params) error {
			return errors.Join(within(p, 1, most), only(p, 1),
				Lacks(map[string]bool{"request rate": p.RequestRate != 0, "busy poll": p.BusyPoll != 0}))
		},
		Server: func(_ result.Params, listen netip.AddrPort) daemon.Spec {
			return daemon.Spec{Path: netperf.Server, Args: netperf.ServerArgs(listen)}
		},
		Reached: network.TCP, // its control connection
		// It has no warm-up of its own; its connection is new in each burst.
		Measure: func(ctx context.Context, c *Client, spec engine.BurstSpec) (b engine.Burst, more engine.More, err error) {
			t := netperf.Test{
				Name: test, Server: c.Server, Data: dataPort(c.Server.Port()), Duration: spec.Duration, Message: c.Params.Message,
				NoDelay: test == netperf.TCPRR && !c.Params.Nagle,
			}
			if test != netperf.UDPRR {
				t.Congestion = c.Params.CongestionControl
			}
			ran, err := c.Execute(ctx, netperf.Program, netperf.ClientArgs(t))
			if err != nil {
				return b, more, fmt.Errorf("run netperf: %w; it said: %.200q", err, ran.Output)
			}
			reports, err := netperf.Parse(ran.Output)
			if err != nil {
				return b, more, fmt.Errorf("run netperf: %w", err)
			}
			r := reports[0]
			if r.Duration <= 0 {
				r.Duration = t.Duration
			}
			if r.Test != netperf.UDPRR {
				more.Add = tcp(result.TCPInfo{Retransmits: r.Retransmits, CongestionControl: r.Congestion})
			}
			return perf(r, c.Params.Message), more, nil
		},
	}
}

// perf is the burst that a test of netperf was.
func perf(r netperf.Report, message unit.Bytes) engine.Burst {
	b := engine.Burst{Duration: r.Duration, Min: r.Min, P50: r.P50, P90: r.P90, P99: r.P99, Mean: r.Mean, Max: r.Max}
	if r.Transactions() {
		b.Transactions = int64(r.Rate * r.Duration.Seconds())
		b.Bytes = 2 * b.Transactions * int64(message)
		b.Throughput = float64(b.Bytes) * 8 / r.Duration.Seconds()
	} else {
		b.Throughput = float64(r.Throughput)
		b.Bytes = int64(b.Throughput / 8 * r.Duration.Seconds())
		b.Transactions = b.Bytes / int64(message)
	}
	if r.Test != netperf.TCPStream {
		b.Sent = b.Transactions
	}
	return b
}
