package result

import (
	"time"

	"netdelta/unit"
)

// Path is the proof that a trial's packets went the way that its network says.
type Path struct {
	// OK is false for a trial that was misrouted: it then enters no delta.
	OK bool `json:"ok"`
	// Weak names the parts of the proof that could not be had here, each with its reason.
	Weak []string `json:"weak,omitempty"`
	// Findings are what was wrong, a sentence each.
	Findings []string `json:"findings,omitempty"`
	// Notes are what was seen of the way that no plan says and that is not wrong, a sentence each: on a cluster, how packets
	// were wrapped and whose addresses were translated.
	Notes []string `json:"notes,omitempty"`
	// Payload is what the workload moved, both ways, while the devices were watched.
	Payload unit.Bytes `json:"payload"`
	// Hops are the devices on the way from client to server, in order, with what they carried.
	Hops []PathHop `json:"hops"`
	// Stray are devices off the way that carried more than the odd packet.
	Stray []PathHop `json:"stray,omitempty"`
	// Encapsulation is what the sampled packets on the underlay were wrapped in: "vxlan", "none", "" without a sample.
	Encapsulation string `json:"encapsulation,omitempty"`
	// Overhead is what encapsulation adds to each packet, as counted; zero without.
	Overhead unit.Bytes `json:"overhead,omitempty"`
	// Sampled is how many packets were looked at, Fragments how many of them were IP fragments, and Largest the largest IP
	// packet of them on the wire, segments of offloaded packets counted one by one.
	Sampled   int        `json:"sampled,omitempty"`
	Fragments int        `json:"fragments,omitempty"`
	Largest   unit.Bytes `json:"largest,omitempty"`
	// MTU is the largest IP packet that was seen to get from client to server whole; zero if it was not tried.
	MTU unit.Bytes `json:"mtu,omitempty"`
}

// PathProof sums up the proofs of the trials of one network in one placement.
type PathProof struct {
	Network   string     `json:"network"`
	Placement Placement  `json:"placement"`
	MTU       unit.Bytes `json:"mtu,omitempty"`    // as in Params
	Family    Family     `json:"family,omitempty"` // as in Params
	// Trials is how many there are that have a proof or lack one, and Proved how many went the way that the network says.
	Trials int `json:"trials"`
	Proved int `json:"proved"`
	// Weak names the parts of a proof that some trial lacks.
	Weak []string `json:"weak,omitempty"`
	// Seen is the proof of the last proved trial; of the last one at all where none is proved.
	Seen *Path `json:"seen,omitempty"`
}

// PathHop is what one device carried while it was watched.
type PathHop struct {
	Device string `json:"device"` // "node0/eth0"
	Role   string `json:"role,omitempty"`
	// Sends tells whether the device transmits the request (or receives it), as its counters see it.
	Sends bool `json:"sends"`
	// Encapsulated says that the packet is inside the encapsulation here.
	Encapsulated bool `json:"encapsulated,omitempty"`
	// Packets and Bytes count the request's direction.
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// Sockets is what the kernel says of a trial's sockets.
type Sockets struct {
	// Dropped counts packets that a socket's full receive buffer turned away, Overflows the connections that a full listen
	// queue did.
	Dropped   uint64 `json:"dropped"`
	Overflows uint64 `json:"overflows"`
	// SendBuffer and ReceiveBuffer are the buffers of the client's first socket.
	SendBuffer    unit.Bytes `json:"send_buffer"`
	ReceiveBuffer unit.Bytes `json:"receive_buffer"`
	// Server is TCP_INFO of the server's end; nil without TCP.
	Server *TCPInfo `json:"server,omitempty"`
}

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

// Whether what a network adds to a request matters: is beyond the run's margin.
const (
	MattersYes     = "yes"
	MattersNo      = "no"
	MattersUnknown = "unknown"
)

// Request is a request of the user's own, with what each network is of it.
type Request struct {
	Took   float64        `json:"took"`  // in nanoseconds
	Calls  int            `json:"calls"` // across the network, one after the other
	Shares []RequestShare `json:"shares"`
}

// RequestShare is what one network adds to a request, against the baseline.
type RequestShare struct {
	Network  string `json:"network"`
	Baseline string `json:"baseline"`
	Setting
	Path string `json:"path"`
	// Added is what all calls take more, in nanoseconds, and Share what part of the request that is. They have intervals where the delta
	// that they rest on has one.
	Added     float64  `json:"added"`
	AddedLow  *float64 `json:"added_low"`
	AddedHigh *float64 `json:"added_high"`
	Share     float64  `json:"share"`
	ShareLow  *float64 `json:"share_low"`
	ShareHigh *float64 `json:"share_high"`
	Matters   string   `json:"matters"` // yes, no, unknown
}
