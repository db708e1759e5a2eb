package foreign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/network"
	"netdelta/result"
	"netdelta/stats/order"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool/iperf3"
	"netdelta/workload/tool/netperf"
	"netdelta/workload/tool/sockperf"
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

// dataAside separates the port of netperf's measured connection from that of its control connection. Both are among the thousand ports of the
// server's pod.
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

// sockperfLargest is the largest message that sockperf sends.
const sockperfLargest = 65507 * unit.Byte

// sockperfLog is the log of all messages in the client's home.
const sockperfLog = "messages.csv"

// Sockperf makes the load of tcp-rr, or of udp-rr, by sockperf's ping-pong.
func Sockperf(protocol network.Protocol) Engine {
	tcp := protocol == network.TCP
	return Engine{
		Name:     sockperf.Program,
		Programs: []workload.Program{{Name: sockperf.Program, Package: sockperf.Program}},
		Check: func(p result.Params) error {
			return errors.Join(within(p, sockperf.Least, sockperfLargest), only(p, 1),
				Lacks(map[string]bool{"request rate": p.RequestRate != 0, "busy poll": p.BusyPoll != 0, "family ipv6": p.Family == result.IPv6}))
		},
		Server: func(p result.Params, listen netip.AddrPort) daemon.Spec {
			return daemon.Spec{Path: sockperf.Program, Args: sockperf.ServerArgs(listen, tcp, p.Nagle)}
		},
		Reached: protocol,
		Prepare: func(p, defaults result.Params) error {
			if !tcp {
				return nil
			}
			return congest(p.CongestionControl, defaults.CongestionControl)
		},
		Measure: func(ctx context.Context, c *Client, spec engine.BurstSpec) (engine.Burst, engine.More, error) {
			report, err := c.sockperf(ctx, sockperf.Test{
				Server: c.Server, TCP: tcp, Message: c.Params.Message, Nagle: c.Params.Nagle, Duration: spec.Duration, Log: c.Home.Path(sockperfLog),
			})
			if errors.Is(err, sockperf.ErrSilent) {
				return engine.Burst{Duration: spec.Duration}, engine.More{}, nil // as of a network that lets nothing through
			}
			if err != nil {
				return engine.Burst{}, engine.More{}, err
			}
			b, more := exchanged(report, c.Params.Message)
			return b, more, nil
		},
	}
}

// sockperf runs a test. Its own warm-up, the first 400 ms, stands for the one that is asked for.
func (c *Client) sockperf(ctx context.Context, t sockperf.Test) (sockperf.Report, error) {
	ran, failed := c.Execute(ctx, sockperf.Program, sockperf.ClientArgs(t))
	if ctx.Err() != nil {
		return sockperf.Report{}, failed
	}
	report, err := sockperf.Parse(ran.Output)
	if errors.Is(err, sockperf.ErrSilent) {
		return report, err
	}
	if err = cmp.Or(err, failed); err != nil {
		return report, fmt.Errorf("run sockperf: %w", err)
	}
	log, err := c.take(sockperfLog)
	if err != nil {
		return report, err
	}
	logged, err := sockperf.Parse(log)
	if err != nil {
		return report, fmt.Errorf("read sockperf's log: %w", err)
	}
	report.Messages = logged.Messages
	return report, nil
}

// exchanged is the burst that a test of sockperf was.
func exchanged(r sockperf.Report, message unit.Bytes) (engine.Burst, engine.More) {
	times := make([]float64, len(r.Messages))
	sum := 0.0
	for i, m := range r.Messages {
		times[i] = m.RoundTrip
		sum += m.RoundTrip
	}
	split := splitOf(times)
	slices.Sort(times)
	n := int64(len(times))
	bytes := 2 * n * int64(message)
	b := engine.Burst{
		Duration: r.Duration, Transactions: n, Bytes: bytes, Moved: bytes, Sent: r.Sent, Lost: r.Dropped,
		P50: order.Quantile(times, 0.5), P90: order.Quantile(times, 0.9), P99: order.Quantile(times, 0.99),
		Split: split, Throughput: float64(bytes) * 8 / r.Duration.Seconds(),
	}
	if n > 0 {
		b.Min, b.Max, b.Mean = times[0], times[n-1], sum/float64(n)
	}
	return b, engine.More{Latencies: recorder(times)}
}

// splitOf is the logarithm of the ratio of the medians of odd and even messages.
func splitOf(times []float64) float64 {
	var halves [2][]float64
	for i, t := range times {
		halves[i%2] = append(halves[i%2], t)
	}
	if len(halves[1]) == 0 {
		return 0
	}
	if split := math.Log(order.Median(halves[1]) / order.Median(halves[0])); !math.IsNaN(split) && !math.IsInf(split, 0) {
		return split
	}
	return 0
}

// congestionFile is what TCP's congestion control is in this network namespace where a program does not choose it.
const congestionFile = "/proc/sys/net/ipv4/tcp_congestion_control"

// congest sets the congestion control of this pod. Programs that choose none take it; netdelta's own loops always choose.
// Where none was asked for it is the default of netdelta's loops too, as far as the kernel lets a pod have it: it may be another
// than the machine's only if the machine allows that (net.ipv4.tcp_allowed_congestion_control).
func congest(wanted, otherwise string) error {
	name := cmp.Or(wanted, otherwise)
	text, err := os.ReadFile(congestionFile)
	if err == nil && strings.TrimSpace(string(text)) != name {
		err = os.WriteFile(congestionFile, []byte(name), 0o644)
	}
	if err == nil || wanted == "" {
		return nil
	}
	return fmt.Errorf("have the pod use congestion control %s: %w; allow it by sysctl net.ipv4.tcp_allowed_congestion_control", name, err)
}
