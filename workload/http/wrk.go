package http

import (
	"context"
	"fmt"
	"net"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/latency"
	"netdelta/result"
	"netdelta/workload"
	"netdelta/workload/foreign"
	"netdelta/workload/tool/wrk"
)

// scriptFile is where the script of wrk is in a client's home.
const scriptFile = "netdelta.lua"

// wrkEngine makes the load by wrk. It has no warm-up, and connects anew in each burst.
func wrkEngine() foreign.Engine {
	return foreign.Engine{
		Name:     wrk.Program,
		Programs: []workload.Program{{Name: wrk.Program, Package: wrk.Program}},
		Check: func(p result.Params) error {
			if threads := p.Own.Count(threadsKey); threads > max(p.Connections, 1) {
				return fmt.Errorf("threads %d are more than the connections that they share (%d)", threads, max(p.Connections, 1))
			}
			return foreign.Lacks(map[string]bool{
				"request rate": p.RequestRate != 0, "congestion control": p.CongestionControl != defaults().CongestionControl, "nagle": p.Nagle, "a target": p.Target != "",
			})
		},
		Connect: func(ctx context.Context, c *foreign.Client) error {
			c.Params = fill(c.Params)
			if err := c.Home.Write(scriptFile, []byte(wrk.Script), 0o644, ""); err != nil {
				return err
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.Server.String()) // a server that does not answer is found out now
			if err != nil {
				return err
			}
			_ = conn.Close() // nothing was said
			_, err = daemon.Look(wrk.Program)
			return err
		},
		Measure: func(ctx context.Context, c *foreign.Client, spec engine.BurstSpec) (b engine.Burst, more engine.More, err error) {
			deadline, _ := ctx.Deadline()
			ran, err := c.Execute(ctx, wrk.Program, wrk.Args(wrk.Load{
				URL: "http://" + c.Server.String() + "/" + fileName(c.Params), Headers: headers(c.Params, c.Server), Connections: c.Params.Connections, Threads: c.Params.Own.Count(threadsKey),
				Duration: spec.Duration, Timeout: time.Until(deadline), Script: c.Home.Path(scriptFile),
			}))
			if err != nil {
				return b, more, err
			}
			report, err := wrk.Parse(ran.Output)
			if err != nil {
				return b, more, err
			}
			good := report.Requests - report.Errors.Status
			if good <= 0 {
				return b, more, fmt.Errorf("none of %d requests was answered as asked: %+v", report.Requests, report.Errors)
			}
			moved := int64(report.Bytes) + report.Requests*int64(len(request(c.Params, c.Server)))
			b = engine.Burst{
				Duration: report.Duration, Transactions: good, Bytes: moved, Errors: report.Errors.Sum(), Throughput: float64(moved) * 8 / report.Duration.Seconds(),
				CPU: ran.CPU, Switches: ran.Switches, Work: report.Requests, Moved: moved,
			}
			describe(&b, report.Latencies)
			more.Latencies = func(h *latency.Histogram) {
				for _, l := range report.Latencies {
					h.Record(int64(l.Latency), l.Requests)
				}
			}
			return b, more, nil
		},
	}
}

// describe fills in what a burst says of its latencies.
func describe(b *engine.Burst, latencies []wrk.Count) {
	var n int64
	var sum float64
	for _, l := range latencies {
		n += l.Requests
		sum += float64(l.Latency) * float64(l.Requests)
	}
	if n == 0 {
		return
	}
	b.Mean = sum / float64(n)
	b.Min, b.Max = float64(latencies[0].Latency), float64(latencies[len(latencies)-1].Latency)
	for _, q := range []struct {
		share float64
		to    *float64
	}{{0.5, &b.P50}, {0.9, &b.P90}, {0.99, &b.P99}} {
		*q.to = quantile(latencies, q.share*float64(n))
	}
}

// quantile is the latency that so many requests did not exceed. wrk counts in whole microseconds: within one, the requests are taken
// to be spread evenly.
func quantile(latencies []wrk.Count, rank float64) float64 {
	for _, l := range latencies {
		if rank <= float64(l.Requests) {
			return float64(l.Latency) + (rank/float64(l.Requests)-0.5)*float64(time.Microsecond)
		}
		rank -= float64(l.Requests)
	}
	return float64(latencies[len(latencies)-1].Latency)
}
