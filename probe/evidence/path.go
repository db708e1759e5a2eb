package evidence

import "netdelta/result"

// Path is what was read of one path while it was loaded.
type Path struct {
	// Network is what the path is called.
	Network string
	// Transactions is how many the workload did meanwhile: requests with their responses, or messages of a stream.
	Transactions int64
	// Visits are the times at which the path was loaded, the other paths in between.
	Visits []Visit
	// Histogram holds the latencies of all transactions, as result.Trial has it; "" for workloads without.
	Histogram string
	// Failed says why the load did not get through to its end, "" where it did.
	Failed string
	// Ends are settings that differ between two places of the path that should be alike.
	Ends []Difference
}

// Visit is what was counted during one load of a path.
type Visit struct {
	// Counters are by the name of the network namespace: client, server, node0, and "machine" for what the whole machine counts.
	Counters map[string]Counters
	Drops    []Drop
}

// Drop are packets that the kernel dropped in one place.
type Drop struct {
	Space, Device, Reason string
	Packets               uint64
}

// Difference is a setting that differs between two places.
type Difference struct {
	Place, Other string // such as node0 and node1
	result.ConfigChange
}
