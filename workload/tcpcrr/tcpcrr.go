// Package tcpcrr is the workload tcp-crr: a new TCP connection for each request and response.
package tcpcrr

import (
	"netdelta/engine"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
)

// Workload is tcp-crr. Its latency is the time of connecting, the request, the response and closing together.
func Workload() workload.Workload {
	return workload.Bind(workload.Workload{
		Name:       "tcp-crr",
		Protocol:   network.TCP,
		Connects:   true,
		Summary:    "connect, request, response, close: a new TCP connection for each transaction",
		UsedBy:     "clients without kept connections: health checks, CGI, short HTTP calls",
		Headline:   "p50",
		Metrics:    workload.LatencyMetrics(),
		Defaults:   result.Params{Message: 64 * unit.Byte, Connections: 1, CPU: "same", CongestionControl: "cubic"},
		Parameters: workload.Iterations(),
	}, engine.ConnectRR, engine.Limits{
		BusyPoll:          true,
		MessageLeast:      1,
		MessageMost:       16 * unit.MiB,
		ConnectionsMost:   1,
		RequestRateMost:   engine.RequestRateMost,
		CongestionControl: true,
		NoDelay:           true,
	})
}
