// Package tcpstream is the workload tcp-stream: bulk transfer over one or several TCP connections.
package tcpstream

import (
	"netdelta/engine"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/foreign"
	"netdelta/workload/tool/netperf"
)

// Workload is tcp-stream.
func Workload() workload.Workload {
	return foreign.With(workload.Bind(workload.Workload{
		Name:     "tcp-stream",
		Protocol: network.TCP,
		Summary:  "bulk transfer over TCP, as fast as it goes",
		UsedBy:   "backups, images, replication, object storage",
		Headline: "throughput",
		Metrics:  []workload.Metric{{Name: "throughput", Unit: "bit/s", Better: "higher"}},
		Defaults: result.Params{Message: 128 * unit.KiB, Connections: 1, CPU: "same", CongestionControl: "cubic"},
	}, engine.StreamOut, engine.Limits{
		BusyPoll:          true,
		MessageLeast:      1,
		MessageMost:       16 * unit.MiB,
		ConnectionsMost:   256,
		CongestionControl: true,
		NoDelay:           true,
	}), foreign.Iperf3(network.TCP), foreign.Netperf(netperf.TCPStream))
}
