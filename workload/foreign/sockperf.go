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

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/network"
	"netdelta/result"
	"netdelta/stats/order"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool/sockperf"
)

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
