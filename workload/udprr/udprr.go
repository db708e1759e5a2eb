// Package udprr is the workload udp-rr: requests and responses as UDP datagrams. A datagram whose response does not come is
// counted as lost and sent again.
package udprr

import (
	"netdelta/engine"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/foreign"
	"netdelta/workload/tool/netperf"
)

// largestDatagram is what fits into an IPv4 packet of 65535 bytes with the IP and UDP headers.
const largestDatagram = 65507

// Workload is udp-rr.
func Workload() workload.Workload {
	return foreign.With(workload.Bind(workload.Workload{
		Name:       "udp-rr",
		Protocol:   network.UDP,
		Summary:    "requests and responses as UDP datagrams; lost ones are counted and sent again",
		UsedBy:     "name resolution, QUIC, games, telemetry",
		Headline:   "p50",
		Metrics:    workload.LatencyMetrics(workload.LossMetric()),
		Defaults:   result.Params{Message: 64 * unit.Byte, Connections: 1, CPU: "same"},
		Parameters: workload.Iterations(),
	}, engine.DatagramRR, engine.Limits{
		BusyPoll:        true,
		MessageLeast:    unit.Bytes(engine.HeaderSize),
		MessageMost:     largestDatagram,
		ConnectionsMost: engine.MaxConnections,
		RequestRateMost: engine.RequestRateMost,
	}), foreign.Sockperf(network.UDP), foreign.Netperf(netperf.UDPRR))
}
