// Package tcprr is the workload tcp-rr: requests and responses of one size on open TCP connections.
package tcprr

import (
	"netdelta/engine"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/foreign"
	"netdelta/workload/tool/netperf"
)

// Workload is tcp-rr.
func Workload() workload.Workload {
	return foreign.With(workload.Bind(workload.Workload{
		Name:       "tcp-rr",
		Protocol:   network.TCP,
		Summary:    "requests and responses of one size on open TCP connections",
		UsedBy:     "calls between services on kept connections: gRPC, Redis, databases",
		Headline:   "p50",
		Metrics:    workload.LatencyMetrics(),
		Defaults:   result.Params{Message: 64 * unit.Byte, Connections: 1, CPU: "same", CongestionControl: "cubic"},
		Parameters: workload.Iterations(),
	}, engine.StreamRR, engine.Limits{
		BusyPoll:          true,
		MessageLeast:      1,
		MessageMost:       16 * unit.MiB,
		ConnectionsMost:   engine.MaxConnections,
		RequestRateMost:   engine.RequestRateMost,
		CongestionControl: true,
		NoDelay:           true,
	}), foreign.Sockperf(network.TCP), foreign.Netperf(netperf.TCPRR))
}
