package foreign

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

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
		name:     netperf.Program,
		programs: []workload.Program{{Name: netperf.Program, Package: netperf.Package}, {Name: netperf.Server, Package: netperf.Package}},
		check: func(p result.Params) error {
			return errors.Join(within(p, 1, most), only(p, 1),
				lacks(parameter{"request rate", p.RequestRate != 0}, parameter{"busy poll", p.BusyPoll != 0}))
		},
		server: func(_ result.Params, listen netip.AddrPort) daemon.Spec {
			return daemon.Spec{Path: netperf.Server, Args: netperf.ServerArgs(listen)}
		},
		reached: network.TCP, // its control connection
		measure: func(ctx context.Context, c *client, length, _ time.Duration) (outcome, error) {
			congestion := c.params.CongestionControl
			if test == netperf.UDPRR {
				congestion = ""
			}
			return c.netperf(ctx, netperf.Test{
				Name: test, Server: c.to, Data: dataPort(c.to.Port()), Duration: length, Message: c.params.Message, Congestion: congestion,
				NoDelay: test == netperf.TCPRR && !c.params.Nagle,
			})
		},
	}
}

// netperf runs a test. It has no warm-up of its own; its connection is new in each burst.
func (c *client) netperf(ctx context.Context, t netperf.Test) (outcome, error) {
	text, failed := c.run(ctx, netperf.Program, netperf.ClientArgs(t))
	if failed != nil {
		return outcome{}, fmt.Errorf("run netperf: %w; it said: %.200q", failed, text)
	}
	reports, err := netperf.Parse(text)
	if err != nil {
		return outcome{}, fmt.Errorf("run netperf: %w", err)
	}
	r := reports[0]
	if r.Duration <= 0 {
		r.Duration = t.Duration
	}
	return perf(r, c.params.Message), nil
}

// perf is what a test of netperf comes to.
func perf(r netperf.Report, message unit.Bytes) outcome {
	o := outcome{}
	b := &o.burst
	b.Duration = r.Duration
	b.Min, b.P50, b.P90, b.P99, b.Mean, b.Max = r.Min, r.P50, r.P90, r.P99, r.Mean, r.Max
	if r.Transactions() {
		b.Transactions = int64(r.Rate * r.Duration.Seconds())
		b.Bytes = 2 * b.Transactions * int64(message)
		b.Throughput = float64(b.Bytes) * 8 / r.Duration.Seconds()
	} else {
		b.Throughput = float64(r.Throughput)
		b.Bytes = int64(b.Throughput / 8 * r.Duration.Seconds())
		b.Transactions = b.Bytes / int64(message)
	}
	b.Sent = b.Transactions
	if r.Test == netperf.TCPStream {
		b.Sent = 0
	}
	if r.Test != netperf.UDPRR {
		o.tcp = &result.TCPInfo{Retransmits: r.Retransmits, CongestionControl: r.Congestion}
	}
	return o
}
