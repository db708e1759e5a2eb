// Package udpstream is the workload udp-stream: UDP datagrams at a given rate, with losses and reordering counted by the
// receiver.
package udpstream

import (
	"netdelta/engine"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/foreign"
)

// largestDatagram is what fits into an IPv4 packet of 65535 bytes with the IP and UDP headers.
const largestDatagram = 65507

// Workload is udp-stream.
func Workload() workload.Workload {
	return foreign.With(workload.Bind(workload.Workload{
		Name:     "udp-stream",
		Protocol: network.UDP,
		Summary:  "UDP datagrams at a given rate; the receiver counts losses and reordering",
		UsedBy:   "voice, video, metrics, tunnels",
		Headline: "loss",
		Metrics: []workload.Metric{
			workload.LossMetric(),
			{Name: "throughput", Unit: "bit/s", Better: "higher"},
		},
		Defaults: result.Params{Message: 1400, Connections: 1, Rate: 100 * unit.Mbit, CPU: "same"},
	}, engine.DatagramOut, engine.Limits{
		BusyPoll:        true,
		MessageLeast:    unit.Bytes(engine.FlowHeaderSize),
		MessageMost:     largestDatagram,
		ConnectionsMost: 256,
		RateLeast:       unit.Kbit,
		RateMost:        engine.RateMost,
		Search:          true,
	}), foreign.Iperf3(network.UDP))
}
