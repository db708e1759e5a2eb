// Package http is the workload http: a file asked of nginx again and again, on kept connections or on a new one for each request.
package http

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/latency"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/foreign"
	"netdelta/workload/tool/wrk"
)

// Bounds of the parameters.
const (
	leastFile       = 1
	mostFile        = unit.GiB
	mostConnections = 1024
	mostThreads     = 64
)

// threadsKey is the parameter that says how many threads wrk has.
const threadsKey = "threads"

// Workload is http.
func Workload() workload.Workload {
	w := foreign.With(workload.Workload{
		Name:        "http",
		Protocol:    network.TCP,
		Summary:     "a file of one size asked of nginx by HTTP/1.1",
		UsedBy:      "web servers, REST calls, object stores, images and artefacts that are pulled",
		Headline:    "rate",
		Metrics:     append([]workload.Metric{{Name: "rate", Unit: "1/s", Better: "higher"}}, workload.LatencyMetrics()...),
		Defaults:    defaults(),
		Parameters:  parameters(),
		Check:       check,
		SourcePorts: sourcePorts,
		Demand:      demand,
		Serve: func(ctx context.Context, p result.Params, listen netip.AddrPort, cpu int) (engine.Server, error) {
			if err := check(p); err != nil {
				return nil, err
			}
			return serve(ctx, fill(p), listen, cpu)
		},
		Dial:   dial,
		Target: targeted(),
	}, wrkEngine())
	w.Check = threadsOfWrk(w.Check)
	return w
}

// parameters are those that the workload declares.
func parameters() []result.Parameter {
	return result.Declare(result.Parameter{
		Key: threadsKey, Kind: result.KindCount, Low: 1, High: mostThreads, ID: "threads=%", Label: "% threads", Usual: "1",
		Says: "Threads of wrk, which share its connections; one where it is left out.",
	})
}

// threadsOfWrk is a check that also refuses threads without wrk: netdelta's own client has one.
func threadsOfWrk(check func(result.Params) error) func(result.Params) error {
	return func(p result.Params) error {
		if p.Own.Count(threadsKey) > 0 && p.Engine != wrk.Program {
			return fmt.Errorf("http: threads are wrk's: add engine: %s, or leave threads out", wrk.Program)
		}
		return check(p)
	}
}

func defaults() result.Params {
	return result.Params{File: 600 * unit.Byte, Connections: 1, CPU: "same", CongestionControl: "cubic"}
}

// fill gives zero values their defaults.
func fill(p result.Params) result.Params {
	p.File = cmp.Or(p.File, defaults().File)
	return engine.Fill(p, defaults())
}

// check returns an error that names the first parameter out of range, and the range.
func check(p result.Params) error {
	if err := checkOwn(p); err != nil {
		return fmt.Errorf("http: %w", err)
	}
	return engine.Limits{
		Workload:          "http",
		ConnectionsMost:   mostConnections,
		RequestRateMost:   engine.RequestRateMost,
		CongestionControl: true,
		NoDelay:           true,
		Own:               parameters(),
		Used:              []string{"file", "reconnect", "target"},
	}.Check(p)
}

// checkOwn checks what the engine does not know of.
func checkOwn(p result.Params) error {
	if err := checkTarget(p); err != nil {
		return err
	}
	switch {
	case p.Message != 0:
		return fmt.Errorf("message is no parameter of this workload; leave it out, and give the size of the file")
	case p.File != 0 && (p.File < leastFile || p.File > mostFile):
		return fmt.Errorf("file %d bytes is out of range: %d to %d bytes", int64(p.File), int64(leastFile), int64(mostFile))
	}
	return nil
}

// checkTarget checks the parameters that a target excludes.
func checkTarget(p result.Params) error {
	if err := workload.CheckTarget(p, workload.SchemeHTTP); err != nil {
		return err
	}
	if p.Target != "" && p.File != 0 && p.File != defaults().File {
		return fmt.Errorf("file is what netdelta's own server has; leave it out with a target, whose answers are as long as they are")
	}
	return nil
}

// sourcePorts are one for each connection, and others in turn: for connections that take the place of broken ones, or, where
// there is one for each request, so that no port is used again before the end of its last connection has crossed the network.
func sourcePorts(p result.Params) int { return max(p.Connections, 1) + engine.ConnectPorts }

// demand is what the workload needs with parameters p.
func demand(p result.Params) workload.Demand {
	if p.Target != "" {
		return workload.Demand{} // whatever serves is there already
	}
	p = fill(p)
	return workload.Demand{
		Programs:    []workload.Program{{Name: nginxProgram, Package: "nginx-light"}},
		Memory:      room(p) + nginxMemory(p),
		Transaction: fileTime(p),
	}
}

// fileTime is how long a file takes, about; 0 for one that is no matter.
func fileTime(p result.Params) time.Duration {
	rate := float64(8 * unit.Gbit) // of a machine that does nothing else
	if link := float64(p.Conditions.SlowestLink().Rate); link > 0 {
		rate = min(rate, link)
	}
	took := time.Duration(float64(p.File) * 8 * float64(p.Connections) / rate * float64(time.Second))
	if took < 20*time.Millisecond {
		return 0
	}
	return took.Round(time.Millisecond)
}

// fileName is the name of the file that is asked for.
func fileName(p result.Params) string { return strconv.FormatInt(int64(p.File), 10) }

// headers are a request's headers, without the line before them and the one after.
func headers(p result.Params, server netip.AddrPort) []string {
	all := []string{"Host: " + server.String()}
	if p.Reconnect {
		all = append(all, "Connection: close")
	}
	return all
}

// request is what a client sends, to the byte: the same by netdelta's own engine and by wrk.
func request(p result.Params, server netip.AddrPort) string {
	text := "GET /" + fileName(p) + " HTTP/1.1\r\n"
	for _, h := range headers(p, server) {
		text += h + "\r\n"
	}
	return text + "\r\n"
}

// dial opens the client's side.
func dial(ctx context.Context, p result.Params, local, server netip.AddrPort, cpu int) (engine.Client, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	p = fill(p)
	return engine.Dial(ctx, engine.Config{
		Workload: "http", Kind: engine.HTTPGet, Params: p, Local: local, Remote: server, CPU: cpu, Request: request(p, server),
	})
}

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
