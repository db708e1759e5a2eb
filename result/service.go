package result

import (
	"time"

	"netdelta/unit"
)

// Service is a daemon that served a trial.
type Service struct {
	Name    string `json:"name"` // "ceph-osd.1"
	Pod     string `json:"pod"`
	Version string `json:"version,omitempty"`
	// Memory is its resident set at the end of the trial.
	Memory unit.Bytes `json:"memory"`
	// Restarts is how often it had to be started again since the run began.
	Restarts int `json:"restarts,omitempty"`
}

// Disk is what a server's storage does without a network, measured before its clients came, with the operation, block size
// and depth of the trial.
type Disk struct {
	Rate       float64            `json:"rate"` // operations per second
	Throughput unit.BitsPerSecond `json:"throughput"`
	P50        time.Duration      `json:"p50_ns"`
	P99        time.Duration      `json:"p99_ns"`
}

// Replication is what a cluster measured of its own replication during a trial (Galera's wsrep_evs_repl_latency): the time
// from sending a message to all nodes until each has it.
type Replication struct {
	Min     time.Duration `json:"min_ns"`
	Mean    time.Duration `json:"mean_ns"`
	Max     time.Duration `json:"max_ns"`
	Samples int64         `json:"samples"`
}

// What can bound a workload.
const (
	BoundLink    = "link"
	BoundCPU     = "cpu"
	BoundDisk    = "disk"
	BoundLatency = "latency" // it waits for answers, and nothing is busy: the usual state of one request at a time
)

// Bound is what kept a workload from doing more, with the shares that it follows from. Shares are 0 to 1, and -1 where they
// could not be read.
type Bound struct {
	By   string  `json:"by"`   // link, cpu, disk or latency
	Link float64 `json:"link"` // of the most used direction of an underlay link's rate
	CPU  float64 `json:"cpu"`  // of the processors that the workload may run on
	Disk float64 `json:"disk"` // of what the storage does without a network
}
