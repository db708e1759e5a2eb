// Package http is the workload http: a file asked of nginx again and again, on kept connections or on a new one for each request.
package http

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"netdelta/engine"
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
		Programs: []workload.Program{{Name: nginxProgram, Package: "nginx-light"}},
		Memory:   room(p) + nginxMemory(p),
		Burst:    fileTime(p),
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
