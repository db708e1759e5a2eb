package evidence

import "netdelta/result"

// Path is what was read of one path while it was loaded.
type Path struct {
	// Network is what the path is called.
	Network string `json:"network"`
	// Transactions is how many the workload did meanwhile: requests with their responses, or messages of a stream.
	Transactions int64 `json:"transactions"`
	// Visits are the times at which the path was loaded, the other paths in between.
	Visits []Visit `json:"visits"`
	// Histogram holds the latencies of all transactions, as result.Trial has it; "" for workloads without.
	Histogram string `json:"histogram,omitempty"`
	// Failed says why the load did not get through to its end, "" where it did.
	Failed string `json:"failed,omitempty"`
	// Ends are settings that differ between two places of the path that should be alike.
	Ends []Difference `json:"ends_differ,omitempty"`
}

// Visit is what was counted during one load of a path.
type Visit struct {
	// Counters are by the name of the network namespace: client, server, node0, and "machine" for what the whole machine counts.
	Counters map[string]Counters `json:"counters"`
	Drops    []Drop              `json:"drops,omitempty"`
}

// Drop are packets that the kernel dropped in one place.
type Drop struct {
	Space   string `json:"namespace"`
	Device  string `json:"device,omitempty"`
	Reason  string `json:"reason"`
	Packets uint64 `json:"packets"`
}

// Difference is a setting that differs between two places.
type Difference struct {
	Place string `json:"place"` // such as node0
	Other string `json:"other"` // and node1
	result.ConfigChange
}
