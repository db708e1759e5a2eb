// Package catalogue lists the workloads. It stands apart from package workload, whose types the workloads are made of.
package catalogue

import (
	"netdelta/workload"
	"netdelta/workload/block"
	"netdelta/workload/http"
	"netdelta/workload/oltp"
	"netdelta/workload/tcpcrr"
	"netdelta/workload/tcprr"
	"netdelta/workload/tcpstream"
	"netdelta/workload/udprr"
	"netdelta/workload/udpstream"
)

// Workloads returns all workloads, in the order in which they are shown.
func Workloads() []workload.Workload {
	return []workload.Workload{
		tcprr.Workload(),
		udprr.Workload(),
		tcpcrr.Workload(),
		tcpstream.Workload(),
		udpstream.Workload(),
		http.Workload(),
		block.Workload(),
		oltp.Workload(),
	}
}
